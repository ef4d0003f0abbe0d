use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::postgres::PostgresStore;
use super::sqlite::SqliteStore;
use super::{SharedStore, StoreError};

/// Where the tables are.
#[derive(Clone)]
pub enum Location {
    /// A PostgreSQL database, 13 or later.
    Postgres {
        /// `postgres://...`; may hold a password, so it is never shown.
        url: String,
        /// The password, if it is not in the URL, `PGPASSWORD` or `~/.pgpass`.
        password: Option<String>,
        /// Whether a transaction-mode pooler stands between: no named statement is used, and no
        /// startup option that such a pooler refuses.
        pooler: bool,
        /// Where migrations go instead.
        direct_url: Option<String>,
    },
    /// A file on a local file system.
    Sqlite {
        /// The file; made if missing and [`OpenOptions::create`] says so.
        path: PathBuf,
    },
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres { pooler, .. } => f.debug_struct("Postgres").field("pooler", pooler).finish_non_exhaustive(),
            Self::Sqlite { path } => f.debug_struct("Sqlite").field("path", path).finish(),
        }
    }
}

/// How the store is used.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Where the tables are.
    pub location: Location,
    /// Whether a missing file of SQLite is made.
    pub create: bool,
    /// How many connections this process may have, the heartbeat's own included; at least 2.
    pub max_connections: u32,
    /// How long a call may take, the wait for a connection included.
    pub call_timeout: Duration,
    /// The same for renewals and beats; at most a third of the shortest heartbeat.
    pub heartbeat_timeout: Duration,
    /// What the database's administrator sees as this client's name.
    pub application: String,
}

/// Makes a store. No connection is made before the first call: a database that is away is no
/// reason not to start.
///
/// # Errors
/// [`StoreError::Unusable`] when the place can't ever serve: an unreadable URL, a file on a
/// network file system.
pub fn open(options: &OpenOptions) -> Result<SharedStore, StoreError> {
    Ok(match &options.location {
        Location::Postgres { .. } => Arc::new(PostgresStore::new(options)?),
        Location::Sqlite { path } => Arc::new(SqliteStore::new(path, options)?),
    })
}

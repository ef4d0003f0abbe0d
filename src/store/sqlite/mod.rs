//! The adapter for SQLite: any number of daemons on one machine.
//!
//! Every write is one transaction that begins with `BEGIN IMMEDIATE` (a read that turns into a
//! write fails at once, in spite of the busy timeout) and reads the clock after it has the file, so
//! that no wait makes a reading stale. Writers pass a gate file one at a time, for SQLite's own wait
//! starves some of them; a process that is stopped inside stalls all daemons on the file until
//! their deadlines come and their jobs are stopped. The clock is the host's wall clock. WAL, `synchronous =
//! FULL`: with NORMAL a power failure may lose the last commits, and with them a token.

mod claims;
mod decode;
mod filesystem;
mod fleet;
mod gate;
mod held;
mod jobs;
mod locks;
mod pruning;
mod recovery;
mod requests;
mod rows;
mod runs;
mod schema;
mod sql;
mod transaction;

use std::path::Path;

use sqlx::query::Query;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Executor, Sqlite};

use super::connections::{Call, Connections};
use super::{OpenOptions, StoreError};

/// The shared tables in one file.
#[derive(Debug)]
pub(super) struct SqliteStore {
    work: Connections<SqliteConnection>,
    heartbeat: Connections<SqliteConnection>,
    gate: gate::Gate,
}

impl SqliteStore {
    pub(super) fn new(path: &Path, options: &OpenOptions) -> Result<Self, StoreError> {
        filesystem::refuse_network(path)?;
        let connect = |timeout: std::time::Duration| {
            SqliteConnectOptions::new()
                .filename(path)
                .create_if_missing(options.create)
                .disable_statement_logging()
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                // The driver's thread waits in here: it has to be back before the call times out,
                // or the connection is lost with it.
                .busy_timeout(timeout * 3 / 4)
        };
        let most = options.max_connections.saturating_sub(1);
        Ok(Self {
            work: Connections::new(connect(options.call_timeout), most, options.call_timeout),
            heartbeat: Connections::new(connect(options.heartbeat_timeout), 1, options.heartbeat_timeout),
            gate: gate::Gate::of(path),
        })
    }
}

type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

/// Runs one reading statement on a connection that serves again if it went well.
async fn all(mut call: Call<'_, SqliteConnection>, query: Statement<'_>) -> Result<Vec<SqliteRow>, StoreError> {
    match call.run(|connection| query.fetch_all(connection)).await {
        Ok(rows) => {
            call.done();
            Ok(rows)
        }
        Err(error) => Err(call.failed(error)),
    }
}

/// Runs statements without an answer of interest.
async fn execute(call: &mut Call<'_, SqliteConnection>, sql: &'static str) -> Result<(), StoreError> {
    call.run(|connection| connection.execute(sql)).await?;
    Ok(())
}

//! The adapter for PostgreSQL 13 and later, also through a transaction-mode pooler.
//!
//! What has to be decided in one round trip are versioned functions of the schema (`..._v1`), each
//! of whose statements sees what was committed before it. `READ COMMITTED` is set at connecting;
//! behind a pooler, which refuses that, a serialisation failure is an error like any other lock
//! conflict, and tried again. No session state, no LISTEN; the two advisory locks are of a transaction.

mod decode;
mod fleet;
mod locks;
mod pruning;
mod recovery;
mod runs;
mod schema;
mod sql;

use std::str::FromStr;

use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{Executor, Postgres};

use super::connections::{Call, Connections};
use super::{Location, OpenOptions, StoreError};

/// The shared tables in PostgreSQL.
#[derive(Debug)]
pub(super) struct PostgresStore {
    work: Connections<PgConnection>,
    heartbeat: Connections<PgConnection>,
    /// Past any pooler.
    direct: Connections<PgConnection>,
    pooler: bool,
}

impl PostgresStore {
    pub(super) fn new(options: &OpenOptions) -> Result<Self, StoreError> {
        let Location::Postgres { url, password, pooler, direct_url } = &options.location else {
            return Err(StoreError::Unusable("not a place of PostgreSQL".to_owned()));
        };
        let connect = |url: &str, pooler: bool| -> Result<PgConnectOptions, StoreError> {
            // The driver's error may quote the URL, and with it the password.
            let mut connect = PgConnectOptions::from_str(url)
                .map_err(|_| StoreError::Unusable("the database's url can't be read".to_owned()))?
                .application_name(&options.application);
            if let Some(password) = password {
                connect = connect.password(password);
            }
            if pooler {
                return Ok(connect.statement_cache_capacity(0));
            }
            Ok(connect.options([("default_transaction_isolation", "read committed")]))
        };
        let through = connect(url, *pooler)?;
        let direct = connect(direct_url.as_deref().unwrap_or(url), direct_url.is_none() && *pooler)?;
        Ok(Self {
            work: Connections::new(through.clone(), options.max_connections.saturating_sub(1), options.call_timeout),
            heartbeat: Connections::new(through, 1, options.heartbeat_timeout),
            direct: Connections::new(direct, 1, schema::MIGRATION_TIMEOUT),
            pooler: *pooler,
        })
    }

    /// A statement; named only where no pooler stands between.
    fn query(&self, sql: &'static str) -> Query<'_, Postgres, PgArguments> {
        sqlx::query(sql).persistent(!self.pooler)
    }
}

/// Runs one statement that gives one row, on a connection that serves again if it went well.
async fn one(mut call: Call<'_, PgConnection>, query: Query<'_, Postgres, PgArguments>) -> Result<PgRow, StoreError> {
    match call.run(|connection| query.fetch_one(connection)).await {
        Ok(row) => {
            call.done();
            Ok(row)
        }
        Err(error) => Err(call.failed(error)),
    }
}

/// Runs one statement that gives any number of rows.
async fn all(
    mut call: Call<'_, PgConnection>,
    query: Query<'_, Postgres, PgArguments>,
) -> Result<Vec<PgRow>, StoreError> {
    match call.run(|connection| query.fetch_all(connection)).await {
        Ok(rows) => {
            call.done();
            Ok(rows)
        }
        Err(error) => Err(call.failed(error)),
    }
}

/// Begins a transaction whose waits for rows are bounded, as in the functions of the schema.
async fn begin(call: &mut Call<'_, PgConnection>) -> Result<(), StoreError> {
    call.run(|connection| connection.execute(sql::BEGIN)).await?;
    Ok(())
}

/// Commits it.
async fn commit(call: &mut Call<'_, PgConnection>) -> Result<(), StoreError> {
    call.run(|connection| connection.execute(sql::COMMIT)).await?;
    Ok(())
}

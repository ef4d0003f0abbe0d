//! The adapter for PostgreSQL 13 and later, also through a transaction-mode pooler.
//!
//! What has to be decided in one round trip are versioned functions of the schema (`..._v1`), each
//! of whose statements sees what was committed before it. `READ COMMITTED` is set at connecting;
//! behind a pooler, which refuses that, a serialisation failure is an error like any other lock
//! conflict, and tried again. No session state, no LISTEN; the advisory locks, one a job and one
//! for the first migration, are of a transaction.

mod decode;
mod fleet;
mod jobs;
mod locks;
mod pruning;
mod recovery;
mod requests;
mod rows;
mod runs;
mod schema;
mod sql;

use std::str::FromStr;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions, Executor, Postgres};
use tokio::time::Instant;

use super::connections::{Call, Connections};
use super::{Location, OpenOptions, StoreError};
use crate::clock::{BootInstant, Expected};

type Statement<'q> = Query<'q, Postgres, PgArguments>;

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
                .application_name(&options.application)
                .disable_statement_logging();
            if let Some(password) = password {
                connect = connect.password(password);
            }
            if pooler {
                // Poolers refuse startup parameters that they don't know.
                return Ok(connect.statement_cache_capacity(0).extra_float_digits(None));
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
    fn query(&self, sql: &'static str) -> Statement<'_> {
        sqlx::query(sql).persistent(!self.pooler)
    }
}

impl PostgresStore {
    /// Runs one statement that gives one row, on a connection that serves again if it went well.
    async fn one(&self, call: Call<'_, PgConnection>, query: Statement<'_>) -> Result<PgRow, StoreError> {
        let rows = self.all(call, query).await?;
        rows.into_iter().next().ok_or_else(|| decode::malformed("an answer without a row"))
    }

    /// Runs one statement that gives any number of rows.
    async fn all(&self, mut call: Call<'_, PgConnection>, query: Statement<'_>) -> Result<Vec<PgRow>, StoreError> {
        match self.run(&mut call, query).await {
            Ok(rows) => {
                call.done();
                Ok(rows)
            }
            // Inside a transaction, the connection can't be used any more.
            Err(error) if self.pooler => Err(error),
            Err(error) => Err(call.failed(error)),
        }
    }

    /// Runs one of several statements of a call. Behind a pooler each is a transaction: the driver
    /// prepares and executes in two steps, which may meet two sessions otherwise.
    async fn run(&self, call: &mut Call<'_, PgConnection>, query: Statement<'_>) -> Result<Vec<PgRow>, StoreError> {
        if !self.pooler {
            return call.run(|connection| query.fetch_all(connection)).await;
        }
        call.run(|connection| connection.execute(sql::BEGIN)).await?;
        let rows = call.run(|connection| query.fetch_all(connection)).await?;
        call.run(|connection| connection.execute(sql::COMMIT)).await?;
        Ok(rows)
    }
}

/// What a request says of time: what the database's clock should show, and when nobody waits for an
/// answer any more.
#[derive(Clone, Copy)]
struct Timeliness {
    /// Before the request is sent.
    sent: BootInstant,
    expected_now: Option<DateTime<Utc>>,
    give_up_at: Option<DateTime<Utc>>,
}

impl Timeliness {
    /// To be made right before the request is sent.
    fn of(expected: Option<Expected>, call: &Call<'_, PgConnection>) -> Self {
        let sent = BootInstant::now();
        let expected_now = expected.map(|expected| expected.at(sent));
        let left = call.deadline().saturating_duration_since(Instant::now());
        Self { sent, expected_now, give_up_at: expected_now.map(|now| now + left) }
    }

    /// The same for a second try, after the database said what its clock shows: an answer that came in
    /// time was not late, whatever this host expected.
    fn corrected(mut self, read_at: DateTime<Utc>, call: &Call<'_, PgConnection>) -> Self {
        self.sent = BootInstant::now();
        self.give_up_at = Some(read_at + call.deadline().saturating_duration_since(Instant::now()));
        self
    }
}

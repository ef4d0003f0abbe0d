//! A few connections, each lent to one call at a time, under a deadline.
//!
//! Not sqlx's pool, for three reasons: a connection whose call timed out has to be closed, never
//! pooled, for nobody knows what it still does; the wait for a connection has to be part of the
//! call's deadline; and the pool's ping before each use halves the rate of short statements.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::StoreError;

/// How long a connection may lie idle and still be used: firewalls and address translators forget
/// silent ones.
const LONGEST_IDLE: Duration = Duration::from_secs(60);

/// Lends connections.
pub(super) struct Connections<C: Connection> {
    options: C::Options,
    /// Connected and unused; the last used on top. Written by calls that end.
    idle: Mutex<Vec<(C, Instant)>>,
    permits: Semaphore,
    timeout: Duration,
}

impl<C: Connection> fmt::Debug for Connections<C> {
    /// Without the options, which hold the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// One call under way. Dropped before [`Call::done`], its connection is closed: the answer of
/// whatever runs on it would otherwise meet the next call.
pub(super) struct Call<'a, C: Connection> {
    home: &'a Connections<C>,
    connection: Option<C>,
    operation: &'static str,
    deadline: Instant,
    timeout: Duration,
    _permit: SemaphorePermit<'a>,
}

impl<C: Connection> Connections<C> {
    pub(super) fn new(options: C::Options, most: u32, timeout: Duration) -> Self {
        let most = usize::try_from(most.max(1)).unwrap_or(1);
        Self { options, idle: Mutex::default(), permits: Semaphore::new(most), timeout }
    }

    /// How long a call may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Begins a call: waits for a connection and, if none is idle, connects.
    pub(super) async fn call(&self, operation: &'static str) -> Result<Call<'_, C>, StoreError> {
        self.call_within(operation, self.timeout).await
    }

    /// The same with a bound of its own.
    pub(super) async fn call_within(
        &self,
        operation: &'static str,
        timeout: Duration,
    ) -> Result<Call<'_, C>, StoreError> {
        let deadline = Instant::now() + timeout;
        let late = || Box::new(sqlx::Error::PoolTimedOut);
        let permit = timeout_at(deadline, self.permits.acquire())
            .await
            .map_err(|_| StoreError::Busy { operation, source: late() })?
            .expect("the semaphore is never closed");
        let connection = match self.fresh_idle() {
            Some(connection) => connection,
            None => timeout_at(deadline, self.options.connect())
                .await
                .map_err(|_| StoreError::NotSent { operation, source: late() })?
                .map_err(|source| not_sent(operation, source))?,
        };
        Ok(Call { home: self, connection: Some(connection), operation, deadline, timeout, _permit: permit })
    }

    /// The connection that was used last, if the network can be trusted not to have forgotten it.
    fn fresh_idle(&self) -> Option<C> {
        let mut idle = self.idle();
        idle.retain(|(_, since)| since.elapsed() < LONGEST_IDLE);
        idle.pop().map(|(connection, _)| connection)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(C, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Connection> Call<'_, C> {
    /// Runs one statement. After an error the call is over.
    pub(super) async fn run<'c, T, F>(&'c mut self, statement: impl FnOnce(&'c mut C) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, sqlx::Error>> + 'c,
    {
        let connection = self.connection.as_mut().expect("a call that failed is not used again");
        match timeout_at(self.deadline, statement(connection)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(classify(self.operation, source)),
            Err(_) => Err(StoreError::TimedOut { operation: self.operation, after: self.timeout }),
        }
    }

    /// When the call is over, whatever happens.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Ends a call that went well: the connection serves again.
    pub(super) fn done(mut self) {
        if let Some(connection) = self.connection.take() {
            self.home.idle().push((connection, Instant::now()));
        }
    }

    /// Ends a call whose one statement failed: the connection serves again if the database itself
    /// said no to that statement alone. If it broke, the idle ones of the same server most likely
    /// are broken, too, and go with it.
    pub(super) fn failed(mut self, error: StoreError) -> StoreError {
        match &error {
            StoreError::Busy { .. } => {
                if let Some(connection) = self.connection.take() {
                    self.home.idle().push((connection, Instant::now()));
                }
            }
            StoreError::Unavailable { .. } | StoreError::TimedOut { .. } | StoreError::ReadOnly { .. } => {
                self.home.idle().clear();
            }
            _ => {}
        }
        error
    }
}

/// What it means that no connection could be made: nothing was asked yet.
fn not_sent(operation: &'static str, source: sqlx::Error) -> StoreError {
    match classify(operation, source) {
        StoreError::Unavailable { operation, source } => StoreError::NotSent { operation, source },
        other => other,
    }
}

/// What an error of the driver means to the callers of the store.
fn classify(operation: &'static str, source: sqlx::Error) -> StoreError {
    let code = source.as_database_error().and_then(|error| error.code()).map(|code| code.into_owned());
    let kind = code.as_deref().map_or(Kind::Unavailable, kind_of);
    if let (sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_), None) = (&source, &code) {
        return StoreError::Malformed { operation, what: source.to_string() };
    }
    let source = Box::new(source);
    match kind {
        Kind::Busy => StoreError::Busy { operation, source },
        Kind::ReadOnly => StoreError::ReadOnly { operation, source },
        Kind::Refused => StoreError::Refused { operation, source },
        Kind::Unavailable => StoreError::Unavailable { operation, source },
    }
}

enum Kind {
    Busy,
    ReadOnly,
    Refused,
    Unavailable,
}

/// Sorts SQLSTATEs (PostgreSQL, appendix A; five characters) and SQLite's extended result codes
/// (a number, whose lowest byte is the primary code).
fn kind_of(code: &str) -> Kind {
    if code.len() == 5 {
        return match code {
            // lock_not_available, serialization_failure, deadlock_detected
            "55P03" | "40001" | "40P01" => Kind::Busy,
            // read_only_sql_transaction; disk_full
            "25006" | "53100" => Kind::ReadOnly,
            // 08 connection, 53 resources, 57P shutdown, 58 system, XX internal
            _ if ["08", "53", "57", "58", "XX"].iter().any(|class| code.starts_with(class)) => Kind::Unavailable,
            _ => Kind::Refused,
        };
    }
    match code.parse::<i64>().map(|code| code & 0xff) {
        // SQLITE_BUSY, SQLITE_LOCKED
        Ok(5 | 6) => Kind::Busy,
        // SQLITE_READONLY, SQLITE_FULL
        Ok(8 | 13) => Kind::ReadOnly,
        // SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_CANTOPEN, SQLITE_PROTOCOL
        Ok(10 | 11 | 14 | 15) => Kind::Unavailable,
        _ => Kind::Refused,
    }
}

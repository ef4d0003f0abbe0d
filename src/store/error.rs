use std::time::Duration;

/// Why the store gave no answer. An expected answer is never an error: see the outcome enums.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database broke off. What was asked may have been done.
    #[error("{operation}: the database broke off: {}", said(source))]
    Unavailable {
        /// What was asked.
        operation: &'static str,
        /// What the driver said.
        source: Box<sqlx::Error>,
    },
    /// No connection could be made: what was asked never left this host.
    #[error("{operation}: the database is not reachable: {}", said(source))]
    NotSent {
        /// What was asked.
        operation: &'static str,
        /// What the driver said.
        source: Box<sqlx::Error>,
    },
    /// No answer in time, the wait for a connection included. What was asked may have been done.
    #[error("{operation}: no answer from the database within {} ms", after.as_millis())]
    TimedOut {
        /// What was asked.
        operation: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// Somebody else holds a row or the file locked, or all connections are in use. Nothing was done.
    #[error("{operation}: busy: {}", said(source))]
    Busy {
        /// What was asked.
        operation: &'static str,
        /// What the driver said.
        source: Box<sqlx::Error>,
    },
    /// The database answers, but takes no writes: a replica, a full or read-only disk.
    #[error("{operation}: the database takes no writes: {}", said(source))]
    ReadOnly {
        /// What was asked.
        operation: &'static str,
        /// What the driver said.
        source: Box<sqlx::Error>,
    },
    /// The database refused the statement: a missing right, a wrong password, a foreign schema.
    #[error("{operation}: refused by the database: {}", said(source))]
    Refused {
        /// What was asked.
        operation: &'static str,
        /// What the driver said.
        source: Box<sqlx::Error>,
    },
    /// The tables are not there, or not those of this version.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A row holds what no version of cronlatch writes.
    #[error("{operation}: a row is not as cronlatch writes it: {what}")]
    Malformed {
        /// What was asked.
        operation: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The place of the database can't serve.
    #[error("{0}")]
    Unusable(String),
}

/// Why the schema can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// No tables at all.
    #[error("the database holds no cronlatch tables; run `cronlatch migrate`")]
    Missing,
    /// Tables of an earlier version.
    #[error("the database has schema version {found}, this binary needs {needed}; run `cronlatch migrate`")]
    Older {
        /// What is there.
        found: i64,
        /// What this binary needs.
        needed: i64,
    },
    /// Tables that only later versions can read.
    #[error(
        "the database has schema version {found}, which needs a binary that knows version {min_reader}; \
         this one knows {known}: upgrade cronlatch on this host"
    )]
    Newer {
        /// What is there.
        found: i64,
        /// The oldest binary's version that may use it.
        min_reader: i64,
        /// What this binary knows.
        known: i64,
    },
}

/// What a driver's error says, without the line of PostgreSQL's source that said it.
fn said(error: &sqlx::Error) -> String {
    match error.as_database_error() {
        Some(database) => database.message().to_owned(),
        None => error.to_string(),
    }
}

impl StoreError {
    /// Whether trying again may help without anybody changing anything. Everything that a
    /// database does by itself is weather, a missing right included: rights come back, too.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Schema(SchemaError::Newer { .. }) | Self::Malformed { .. } | Self::Unusable(_))
    }

    /// Whether what was asked may have been done all the same.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::TimedOut { .. })
    }
}

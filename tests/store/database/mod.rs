//! A database of its own for each test, with the handles that a test needs and a host never has:
//! raw SQL, another clock, rows locked by somebody else.

mod blocker;
mod postgres;
mod sqlite;

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use cronlatch::store::{Location, OpenOptions, SharedStore, open};

pub use blocker::Blocker;
use postgres::PostgresDatabase;
pub use postgres::cluster;
use sqlite::SqliteDatabase;
pub use sqlite::connect as connect_to_file;

/// One test's database.
pub enum TestDb {
    Postgres(PostgresDatabase),
    Sqlite(SqliteDatabase),
}

impl TestDb {
    /// A migrated database of the test process' own cluster.
    pub async fn postgres() -> Self {
        Self::Postgres(PostgresDatabase::migrated().await)
    }

    /// A migrated file.
    pub async fn sqlite() -> Self {
        let db = Self::Sqlite(SqliteDatabase::empty());
        db.store().migrate().await.unwrap();
        db
    }

    /// Another database of the same kind, without any tables.
    pub async fn unmigrated(&self) -> Self {
        match self {
            Self::Postgres(_) => Self::Postgres(PostgresDatabase::empty().await),
            Self::Sqlite(_) => Self::Sqlite(SqliteDatabase::empty()),
        }
    }

    /// Drops it.
    pub async fn remove(self) {
        if let Self::Postgres(database) = self {
            database.remove().await;
        }
    }

    /// A store as another host would open it: it shares nothing with the others but the tables.
    pub fn store(&self) -> SharedStore {
        self.store_with(|_| {})
    }

    /// As [`Self::store`], with other options. Calls have time enough for a loaded machine.
    pub fn store_with(&self, change: impl FnOnce(&mut OpenOptions)) -> SharedStore {
        let mut options = OpenOptions {
            location: self.location(),
            create: true,
            max_connections: 3,
            call_timeout: Duration::from_secs(20),
            heartbeat_timeout: Duration::from_secs(20),
            application: "cronlatch-test".to_owned(),
        };
        change(&mut options);
        open(&options).unwrap()
    }

    /// Where it is.
    pub fn location(&self) -> Location {
        match self {
            Self::Postgres(database) => database.location(),
            Self::Sqlite(database) => database.location(),
        }
    }

    /// Runs statements and returns their rows: columns parted by `|`, NULL empty. Panics when one
    /// fails.
    pub async fn sql(&self, sql: impl AsRef<str>) -> Vec<String> {
        let sql = sql.as_ref();
        self.try_sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// As [`Self::sql`], but a failure is an answer.
    pub async fn try_sql(&self, sql: impl AsRef<str>) -> Result<Vec<String>, sqlx::Error> {
        match self {
            Self::Postgres(database) => database.sql(sql.as_ref()).await,
            Self::Sqlite(database) => database.sql(sql.as_ref()).await,
        }
    }

    /// How many rows of a table meet a condition.
    pub async fn count(&self, table: &str, condition: &str) -> u64 {
        let rows = self.sql(format!("SELECT count(*) FROM {table} WHERE {condition}")).await;
        rows.concat().parse().unwrap()
    }

    /// The database's now, cut to milliseconds.
    pub async fn now(&self) -> DateTime<Utc> {
        let now = match self {
            Self::Postgres(database) => database.now().await,
            Self::Sqlite(database) => database.now().await,
        };
        now.trunc_subsecs(3)
    }

    /// Makes the database's clock stand still.
    pub async fn freeze_clock(&self, at: DateTime<Utc>) {
        match self {
            Self::Postgres(database) => database.set_clock(&format!("''{}''::timestamptz", text(at))).await,
            Self::Sqlite(database) => database.set_clock(&format!("'{}'", text(at))).await,
        }
    }

    /// Makes the database's clock run ahead of (or, negative, behind) this machine's.
    pub async fn set_clock(&self, offset: TimeDelta) {
        let ms = offset.num_milliseconds();
        match self {
            Self::Postgres(database) => {
                database.set_clock(&format!("clock_timestamp() + {ms} * interval ''1 millisecond''")).await;
            }
            Self::Sqlite(database) => {
                #[expect(clippy::cast_precision_loss, reason = "years in milliseconds fit")]
                let seconds = ms as f64 / 1000.0;
                let modifier = format!("'{seconds:+.3} seconds'");
                database.set_clock(&format!("strftime('%Y-%m-%dT%H:%M:%fZ', 'now', {modifier})")).await;
            }
        }
    }

    /// Ages a lock's row: it ran out a second ago and nobody released it.
    pub async fn let_expire(&self, resource: &str) {
        let now = self.now().await;
        let (began, ended) = (text(now - TimeDelta::hours(1)), text(now - TimeDelta::seconds(1)));
        self.sql(format!(
            "UPDATE distributed_locks SET acquired_at = '{began}', renewed_at = '{began}', expires_at = '{ended}' \
             WHERE resource = '{resource}'"
        ))
        .await;
    }

    /// Locks rows as another session would, until told to let go: on PostgreSQL the rows of a
    /// table that meet a condition, on SQLite the file.
    pub async fn block(&self, table: &str, condition: &str) -> Blocker {
        match self {
            Self::Postgres(database) => {
                let sql = format!("BEGIN; SELECT FROM {table} WHERE {condition} FOR UPDATE");
                Blocker::begin(database.connect().await, &sql).await
            }
            Self::Sqlite(database) => Blocker::begin(database.connect().await, "BEGIN IMMEDIATE").await,
        }
    }

    /// What the server logged as an error about this database. SQLite has no log.
    pub fn errors_logged(&self) -> Vec<String> {
        match self {
            Self::Postgres(database) => database.errors_logged(),
            Self::Sqlite(_) => Vec::new(),
        }
    }

    /// Makes the server tell deadlocks from other waits for a lock: it looks before these give up.
    /// Sessions that are open already don't take part.
    pub async fn look_for_deadlocks(&self) {
        if let Self::Postgres(database) = self {
            let name = database.name();
            self.sql(format!("ALTER DATABASE {name} SET deadlock_timeout = '20ms'")).await;
        }
    }

    /// The deadlocks that it found.
    pub fn deadlocks_logged(&self) -> Vec<String> {
        self.errors_logged().into_iter().filter(|line| line.contains("deadlock")).collect()
    }

    /// The PostgreSQL database, in cases that run there alone.
    pub fn as_postgres(&self) -> &PostgresDatabase {
        let Self::Postgres(database) = self else { panic!("a case for PostgreSQL alone") };
        database
    }

    /// The file, in cases that run on SQLite alone.
    pub fn as_sqlite(&self) -> &SqliteDatabase {
        let Self::Sqlite(database) = self else { panic!("a case for SQLite alone") };
        database
    }
}

/// An instant as SQL text that both databases read.
pub fn text(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Millis, true)
}

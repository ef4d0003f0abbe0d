//! The shared tables as a test reads them: by SQL of its own, whatever the store's code says.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqlSafeStr};
use tokio::runtime::Runtime;

use super::postgres::Cluster;
use super::wait::{PATIENCE, eventually_some};

/// A database, and a connection to look into it. It blocks, and is not for async tests.
#[derive(Debug)]
pub struct Database {
    url: String,
    runtime: Runtime,
    /// `None` until it is needed, and after the server was restarted.
    connection: Mutex<Option<Link>>,
}

#[derive(Debug)]
enum Link {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

/// A row of `runs`.
#[derive(Clone, Debug)]
pub struct Run {
    /// The whole row, by column.
    pub row: Value,
    /// Its name.
    pub id: String,
    /// Of which job.
    pub job: String,
    /// The nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// Which attempt.
    pub attempt: i64,
    /// For whom: empty, or a host.
    pub target: String,
    /// What made it.
    pub trigger: String,
    /// Where it is in its life.
    pub state: String,
    /// Why.
    pub reason: Option<String>,
    /// Whose it is.
    pub host: Option<String>,
    /// Its lock's token.
    pub token: Option<i64>,
    /// When it had its lock.
    pub claimed_at: Option<DateTime<Utc>>,
    /// When it was over.
    pub finished_at: Option<DateTime<Utc>>,
    /// `started_at`.
    pub started_at: Option<DateTime<Utc>>,
    /// How its process ended.
    pub exit_code: Option<i64>,
    /// By which signal its process ended.
    pub signal: Option<i64>,
    /// The run that held it off.
    pub blocked_by: Option<String>,
}

/// A row of `distributed_locks`.
#[derive(Clone, Debug)]
pub struct LockRow {
    /// Of this ownership.
    pub token: i64,
    /// Since when.
    pub acquired_at: DateTime<Utc>,
    /// Last time.
    pub renewed_at: DateTime<Utc>,
    /// Until when unless renewed.
    pub expires_at: DateTime<Utc>,
    /// Whether it was given back.
    pub is_released: bool,
}

/// A row of `trigger_ranges`.
#[derive(Clone, Debug)]
pub struct MissedRange {
    /// For whom: empty, or a host.
    pub target: String,
    /// What took them: `missed`, `paused` or `blackout`.
    pub kind: String,
    /// The first instant.
    pub from: DateTime<Utc>,
    /// The last.
    pub to: DateTime<Utc>,
    /// How many between them had no row.
    pub count: i64,
    /// Why.
    pub reason: String,
}

impl Database {
    /// An empty one in the shared cluster.
    pub fn postgres() -> Self {
        Self::postgres_in(Cluster::shared())
    }

    /// An empty one in a cluster of one's own.
    pub fn postgres_in(cluster: &Cluster) -> Self {
        let runtime = runtime();
        let url = runtime.block_on(cluster.create_database());
        Self { url, runtime, connection: Mutex::default() }
    }

    /// A file in a folder; the first daemon makes it.
    pub fn sqlite_in(folder: &Path) -> Self {
        let url = format!("sqlite://{}", folder.join("cronlatch.db").display());
        Self { url, runtime: runtime(), connection: Mutex::default() }
    }

    /// What the configuration says.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// All rows of a table, as objects; none before the first daemon has made the tables.
    pub fn rows(&self, table: &str) -> Vec<Value> {
        if !self.has_tables() {
            return Vec::new();
        }
        let query = if self.is_postgres() {
            format!("SELECT row_to_json(t)::text FROM {table} t")
        } else {
            let columns = self.query(&format!("SELECT name FROM pragma_table_info('{table}')"));
            let pairs: Vec<_> = columns.iter().map(|name| format!("'{name}', {name}")).collect();
            format!("SELECT json_object({}) FROM {table}", pairs.join(", "))
        };
        let parse = |text: &String| serde_json::from_str(text).expect("the database writes JSON");
        self.query(&query).iter().map(parse).collect()
    }

    /// The one value of each row of a statement, as text.
    pub fn query(&self, sql: &str) -> Vec<String> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // A second try, because the server may have been restarted since the last look.
        let answer = self.try_query(&mut connection, sql).or_else(|_| self.try_query(&mut connection, sql));
        answer.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Every run so far, in the order in which they were made.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<_> = self.rows("runs").into_iter().map(Run::of).collect();
        runs.sort_by(|a, b| a.id.cmp(&b.id));
        runs
    }

    /// The runs of one job, by instant and attempt.
    pub fn runs_of(&self, job: &str) -> Vec<Run> {
        let mut runs: Vec<_> = self.runs().into_iter().filter(|run| run.job == job).collect();
        runs.sort_by_key(|run| (run.scheduled_at, run.attempt));
        runs
    }

    /// Waits for a run of a job for which `pred` is true.
    #[track_caller]
    pub fn wait_for_run(&self, job: &str, what: &str, pred: impl Fn(&Run) -> bool) -> Run {
        let found = || self.runs_of(job).into_iter().find(&pred);
        eventually_some(format!("a run of {job} {what}; {}", self.explained()), PATIENCE, found)
    }

    /// The row of a lock.
    pub fn lock(&self, resource: &str) -> Option<LockRow> {
        let row = self.rows("distributed_locks").into_iter().find(|row| row["resource"] == resource)?;
        Some(LockRow {
            token: row["token"].as_i64().expect("a lock has a token"),
            acquired_at: instant(&row["acquired_at"]).expect("not null"),
            renewed_at: instant(&row["renewed_at"]).expect("not null"),
            expires_at: instant(&row["expires_at"]).expect("not null"),
            is_released: !row["released_at"].is_null(),
        })
    }

    /// The locks that nobody gave back.
    pub fn held_locks(&self) -> Vec<String> {
        let held = self.rows("distributed_locks").into_iter().filter(|row| row["released_at"].is_null());
        held.map(|row| row["resource"].to_string()).collect()
    }

    /// The triggers of a job that are over without a row each.
    pub fn missed_ranges(&self, job: &str) -> Vec<MissedRange> {
        let rows = self.rows("trigger_ranges").into_iter().filter(|row| row["job"] == job);
        let range = |row: Value| MissedRange {
            target: row["target"].as_str().expect("not null").to_owned(),
            kind: row["kind"].as_str().expect("not null").to_owned(),
            from: instant(&row["range_from"]).expect("not null"),
            to: instant(&row["range_to"]).expect("not null"),
            count: row["count"].as_i64().expect("not null"),
            reason: row["reason"].as_str().expect("not null").to_owned(),
        };
        rows.map(range).collect()
    }

    fn has_tables(&self) -> bool {
        match self.url.strip_prefix("sqlite://") {
            // Made under another daemon's eyes: the file may be there before its tables are.
            Some(path) => {
                Path::new(path).exists() && !self.query("SELECT name FROM pragma_table_info('runs')").is_empty()
            }
            None => self.query("SELECT to_regclass('runs')::text WHERE to_regclass('runs') IS NOT NULL").len() == 1,
        }
    }

    fn is_postgres(&self) -> bool {
        self.url.starts_with("postgres")
    }

    /// How to see more, if the folders are kept.
    fn explained(&self) -> String {
        format!("see {}", self.url)
    }

    fn try_query(&self, connection: &mut Option<Link>, sql: &str) -> Result<Vec<String>, sqlx::Error> {
        let answer = self.runtime.block_on(async {
            let link = match connection.take() {
                Some(link) => link,
                None => self.connect().await?,
            };
            let (link, answer) = link.query(sql).await?;
            *connection = Some(link);
            Ok::<_, sqlx::Error>(answer)
        })?;
        Ok(answer)
    }

    async fn connect(&self) -> Result<Link, sqlx::Error> {
        match self.url.strip_prefix("sqlite://") {
            Some(path) => Ok(Link::Sqlite(SqliteConnectOptions::new().filename(path).connect().await?)),
            None => Ok(Link::Postgres(PgConnection::connect(&self.url).await?)),
        }
    }
}

impl Link {
    async fn query(self, sql: &str) -> Result<(Self, Vec<String>), sqlx::Error> {
        let sql = AssertSqlSafe(sql.to_owned()).into_sql_str();
        match self {
            Self::Postgres(mut connection) => {
                let rows = sqlx::query_scalar(sql).persistent(false).fetch_all(&mut connection).await?;
                Ok((Self::Postgres(connection), rows))
            }
            Self::Sqlite(mut connection) => {
                let rows = sqlx::query_scalar(sql).persistent(false).fetch_all(&mut connection).await?;
                Ok((Self::Sqlite(connection), rows))
            }
        }
    }
}

impl Run {
    /// Whether its story is over.
    pub fn is_final(&self) -> bool {
        !["waiting", "claimed", "running"].contains(&self.state.as_str())
    }

    fn of(row: Value) -> Self {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        let word = |name: &str| text(name).unwrap_or_else(|| panic!("{name} of {row}"));
        Self {
            id: word("id"),
            job: word("job"),
            scheduled_at: instant(&row["scheduled_at"]).expect("not null"),
            attempt: row["attempt"].as_i64().expect("not null"),
            target: word("target"),
            trigger: word("trigger"),
            state: word("state"),
            reason: text("reason"),
            host: text("host"),
            token: row["token"].as_i64(),
            claimed_at: instant(&row["claimed_at"]),
            finished_at: instant(&row["finished_at"]),
            started_at: instant(&row["started_at"]),
            exit_code: row["exit_code"].as_i64(),
            signal: row["signal"].as_i64(),
            blocked_by: text("blocked_by"),
            row,
        }
    }
}

/// An instant as either database, or an event, writes it.
pub fn instant(value: &Value) -> Option<DateTime<Utc>> {
    let text = value.as_str()?;
    let at = DateTime::parse_from_rfc3339(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Some(at.to_utc())
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

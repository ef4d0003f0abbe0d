use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronlatch::store::Location;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqliteConnection, TypeInfo, ValueRef};
use tempfile::TempDir;

/// A file in a folder of its own.
pub struct SqliteDatabase {
    path: PathBuf,
    _folder: TempDir,
}

impl SqliteDatabase {
    /// Without tables, nor even the file.
    pub fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        Self { path: folder.path().join("cronlatch.db"), _folder: folder }
    }

    pub fn location(&self) -> Location {
        Location::Sqlite { path: self.path.clone() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub async fn connect(&self) -> SqliteConnection {
        connect(&self.path).await
    }

    pub async fn sql(&self, sql: &str) -> Result<Vec<String>, sqlx::Error> {
        let mut connection = self.connect().await;
        let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await;
        connection.close().await?;
        Ok(rows?.iter().map(printed).collect())
    }

    pub async fn now(&self) -> DateTime<Utc> {
        self.sql("SELECT now FROM cronlatch_now_v1").await.unwrap().concat().parse().unwrap()
    }

    /// `now` is an SQL expression.
    pub async fn set_clock(&self, now: &str) {
        let sql = format!(
            "BEGIN IMMEDIATE; DROP VIEW cronlatch_now_v1; CREATE VIEW cronlatch_now_v1(now) AS SELECT {now}; COMMIT"
        );
        self.sql(&sql).await.unwrap();
    }
}

/// A session as another program would have it: it makes no file and waits for its turn.
pub async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(Duration::from_secs(20));
    options.connect().await.unwrap()
}

fn printed(row: &SqliteRow) -> String {
    let column = |at| {
        let value = row.try_get_raw(at).unwrap();
        match value.type_info().name() {
            _ if value.is_null() => String::new(),
            "INTEGER" => row.get_unchecked::<i64, _>(at).to_string(),
            "REAL" => row.get_unchecked::<f64, _>(at).to_string(),
            _ => row.get_unchecked(at),
        }
    };
    (0..row.len()).map(column).collect::<Vec<_>>().join("|")
}

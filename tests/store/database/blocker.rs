use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

/// A session that has something locked.
pub enum Blocker {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl From<PgConnection> for Blocker {
    fn from(connection: PgConnection) -> Self {
        Self::Postgres(connection)
    }
}

impl From<SqliteConnection> for Blocker {
    fn from(connection: SqliteConnection) -> Self {
        Self::Sqlite(connection)
    }
}

impl Blocker {
    /// Runs statements that begin a transaction and lock something in it.
    pub async fn begin(connection: impl Into<Self>, sql: &str) -> Self {
        let mut blocker = connection.into();
        blocker.sql(sql).await;
        blocker
    }

    /// Lets go.
    pub async fn end(mut self) {
        self.sql("ROLLBACK").await;
        match self {
            Self::Postgres(connection) => connection.close().await.unwrap(),
            Self::Sqlite(connection) => connection.close().await.unwrap(),
        }
    }

    async fn sql(&mut self, sql: &str) {
        let statements = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Postgres(connection) => statements.execute(connection).await.map(drop).unwrap(),
            Self::Sqlite(connection) => statements.execute(connection).await.map(drop).unwrap(),
        }
    }
}

use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use cronlatch::store::{Location, OpenOptions, open};
use sqlx::{Connection, PgConnection};
use tokio::sync::OnceCell;

use crate::support::postgres::{Cluster, Setup};

/// A database of [`cluster`].
pub struct PostgresDatabase {
    url: String,
}

/// Not the shared one: the log has to tell the databases apart, and fifty hosts at once have many
/// connections.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let settings = [("log_line_prefix", "%m [%p] <%d> "), ("max_connections", "600")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Cluster::start_with(Setup { settings, ..Setup::default() })
    })
}

impl PostgresDatabase {
    /// Without tables.
    pub async fn empty() -> Self {
        Self { url: cluster().create_database().await }
    }

    /// A copy of one that was migrated once for all tests.
    pub async fn migrated() -> Self {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let template = TEMPLATE
            .get_or_init(|| async {
                let template = Self::empty().await;
                open(&options(template.location())).unwrap().migrate().await.unwrap();
                template.url
            })
            .await;
        Self { url: cluster().create_database_from(template).await }
    }

    pub fn location(&self) -> Location {
        Location::Postgres { url: self.url.clone(), password: None, pooler: false, direct_url: None }
    }

    /// Its URL, for another user.
    pub fn url_as(&self, user: &str) -> String {
        self.url.replacen("postgres@", &format!("{user}@"), 1)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        let path = self.url.split('?').next().unwrap();
        path.rsplit('/').next().unwrap()
    }

    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    pub async fn sql(&self, sql: &str) -> Result<Vec<String>, sqlx::Error> {
        let rows = cluster().try_psql(self.name(), sql).await?;
        Ok(rows.lines().map(str::to_owned).collect())
    }

    pub async fn now(&self) -> DateTime<Utc> {
        let mut connection = self.connect().await;
        sqlx::query_scalar("SELECT cronlatch_now_v1()").fetch_one(&mut connection).await.unwrap()
    }

    /// `now` is an SQL expression inside a quoted text.
    pub async fn set_clock(&self, now: &str) {
        let sql = format!(
            "CREATE OR REPLACE FUNCTION cronlatch_now_v1() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT {now}'"
        );
        self.sql(&sql).await.unwrap();
    }

    pub fn errors_logged(&self) -> Vec<String> {
        let ours = format!("<{}>", self.name());
        cluster().errors_in_log().into_iter().filter(|line| line.contains(&ours)).collect()
    }

    pub async fn remove(self) {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name());
        cluster().psql("postgres", &sql).await;
    }
}

fn options(location: Location) -> OpenOptions {
    OpenOptions {
        location,
        create: true,
        max_connections: 2,
        call_timeout: std::time::Duration::from_secs(20),
        heartbeat_timeout: std::time::Duration::from_secs(20),
        application: "cronlatch-test-template".to_owned(),
    }
}

use std::path::Path;
use std::time::Duration;

use super::Failure;
use crate::config::{self, DatabaseUrl, Settings};
use crate::store::{self, Location, OpenOptions, SharedStore, StoreError};

/// How long a command waits for an answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The database of a command that asks and ends.
pub(super) struct Opened {
    store: SharedStore,
    runtime: tokio::runtime::Runtime,
}

impl Opened {
    /// Reads the settings and opens what they name.
    ///
    /// # Errors
    /// [`Failure`]: the settings are not fit.
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        let settings = settings(path)?;
        let options = open_options(&settings, CALL_TIMEOUT, CALL_TIMEOUT)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::bug(format!("can't start the runtime: {error}")))?;
        Ok(Self { store: store::open(&options)?, runtime })
    }

    /// Asks the database, and waits for the answer.
    ///
    /// # Errors
    /// [`Failure`]: there was no answer.
    pub(super) fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&SharedStore) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        Ok(self.runtime.block_on(question(&self.store))?)
    }

    /// Asks a database whose tables this binary knows.
    ///
    /// # Errors
    /// [`Failure`]: there was no answer, or the tables are of another version.
    pub(super) fn ask_known<T>(
        &self,
        question: impl AsyncFnOnce(&SharedStore) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        self.ask(async |store| {
            store.check_schema().await?;
            question(store).await
        })
    }
}

/// The settings alone: a job that is not fit is no reason not to look into the database.
fn settings(path: &Path) -> Result<Settings, Failure> {
    let loaded = config::load(path);
    loaded.settings.ok_or_else(|| {
        let problems: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
        Failure::config(problems.join("\n"))
    })
}

/// How the store is opened for these settings.
///
/// # Errors
/// [`Failure`]: the password file can't be read.
pub(super) fn open_options(
    settings: &Settings,
    call_timeout: Duration,
    heartbeat_timeout: Duration,
) -> Result<OpenOptions, Failure> {
    let database = &settings.database;
    let location = match &database.url {
        DatabaseUrl::Sqlite(path) => Location::Sqlite { path: path.clone() },
        DatabaseUrl::Postgres(url) => Location::Postgres {
            url: url.reveal().to_owned(),
            password: database.password_file.as_deref().map(password).transpose()?,
            pooler: database.pooler,
            direct_url: database.direct_url.as_ref().and_then(|url| match url {
                DatabaseUrl::Postgres(url) => Some(url.reveal().to_owned()),
                DatabaseUrl::Sqlite(_) => None,
            }),
        },
    };
    Ok(OpenOptions {
        location,
        max_connections: database.max_connections,
        call_timeout,
        heartbeat_timeout,
        application: format!("cronlatch {}", settings.daemon.host),
    })
}

/// The first line of the password file.
fn password(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::config(format!("database.password_file {}: {error}", path.display())))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

use std::path::Path;
use std::time::Duration;

use super::Failure;
use crate::config::{self, DatabaseUrl, Loaded, Settings};
use crate::store::{self, Location, OpenOptions, SharedStore, StoreError};

/// How long a command waits for an answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The database of a command that asks and ends.
pub(super) struct Opened {
    loaded: Loaded,
    store: SharedStore,
    runtime: tokio::runtime::Runtime,
}

impl Opened {
    /// Reads the settings and opens what they name, if it is there.
    ///
    /// # Errors
    /// [`Failure`]: the settings are not fit, or there is no such file of SQLite.
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        Self::open(path, Missing::IsRefused)
    }

    /// The same; a missing file of SQLite is made.
    ///
    /// # Errors
    /// [`Failure`]: the settings are not fit.
    pub(super) fn new_or_made(path: &Path) -> Result<Self, Failure> {
        Self::open(path, Missing::IsMade)
    }

    fn open(path: &Path, missing: Missing) -> Result<Self, Failure> {
        let loaded = config::load(path);
        let options = open_options(settings(&loaded)?, CALL_TIMEOUT, CALL_TIMEOUT, missing)?;
        if let (Location::Sqlite { path }, false) = (&options.location, options.create) {
            require_there(path)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::bug(format!("can't start the runtime: {error}")))?;
        Ok(Self { loaded, store: store::open(&options)?, runtime })
    }

    /// What was read to find the database.
    pub(super) fn loaded(&self) -> &Loaded {
        &self.loaded
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
fn settings(loaded: &Loaded) -> Result<&Settings, Failure> {
    loaded.settings.as_ref().ok_or_else(|| {
        let problems: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
        Failure::config(problems.join("\n"))
    })
}

/// What is done about a file of SQLite that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    IsMade,
    IsRefused,
}

fn require_there(file: &Path) -> Result<(), Failure> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Failure::unavailable(format!(
            "the database {} doesn't exist; start the daemon or run `cronlatch migrate`, or mend database.url",
            file.display()
        ))),
        // Any other fault is the store's to tell.
        _ => Ok(()),
    }
}

/// How the store is opened for these settings.
///
/// # Errors
/// [`Failure`]: the password file is not fit.
pub(super) fn open_options(
    settings: &Settings,
    call_timeout: Duration,
    heartbeat_timeout: Duration,
    missing: Missing,
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
        create: missing == Missing::IsMade,
        max_connections: database.max_connections,
        call_timeout,
        heartbeat_timeout,
        application: format!("cronlatch {}", settings.daemon.host),
    })
}

fn password(path: &Path) -> Result<String, Failure> {
    config::read_password(path).map_err(|unfit| {
        let remedy = unfit.remedy(path);
        Failure::config(format!("database.password_file = {:?}: {unfit}; {remedy}", path.display().to_string()))
    })
}

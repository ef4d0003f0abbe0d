use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use chrono_tz::Tz;

use super::DatabaseUrl;
use crate::fleet::{HostName, Label};
use crate::lock::LeaseTiming;

/// All of the main file but its jobs, as it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `[database]`.
    pub database: DatabaseSettings,
    /// `[daemon]`.
    pub daemon: DaemonSettings,
    /// `[lock]`: the timing of jobs that set none, and of locks that are no job's.
    pub lock: LeaseTiming,
    /// `[history]`.
    pub history: HistorySettings,
    /// `[log]`.
    pub log: LogSettings,
}

/// `[database]`: how to reach the tables that all hosts share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// Which database.
    pub url: DatabaseUrl,
    /// A file that holds the password; read at each connecting, so that it can be rotated.
    pub password_file: Option<PathBuf>,
    /// Whether a transaction-mode pooler stands in between: no session state can be used then.
    pub pooler: bool,
    /// The way around the pooler, for migrations.
    pub direct_url: Option<DatabaseUrl>,
    /// Who brings the schema up to date.
    pub migrate: Migrate,
    /// How many connections this host opens at most, the heartbeat's included. At least 3; each one
    /// more costs the server memory on every host.
    pub max_connections: u32,
}

/// Who brings the schema up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrate {
    /// The daemon, when it starts.
    Auto,
    /// An operator, with `cronlatch migrate`.
    Manual,
}

/// `[daemon]`: this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonSettings {
    /// Its name in tables, logs and metrics.
    pub host: HostName,
    /// What it can do, for jobs that ask for it.
    pub labels: BTreeSet<Label>,
    /// The zone of jobs that name none.
    pub timezone: Tz,
    /// How many jobs it runs at once; a trigger beyond that is left to other hosts.
    pub max_running_jobs: u32,
    /// How long jobs may go on after the first signal to stop.
    pub drain: Drain,
}

/// How long jobs may go on after the first signal to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Up to this long; then they are told to stop.
    Within(Duration),
    /// Until they end by themselves.
    Infinite,
}

/// `[history]`: which finished runs are kept. A run goes when it is beyond either bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistorySettings {
    /// How long.
    pub keep: Duration,
    /// How many of each job.
    pub keep_runs: u32,
}

/// `[log]`: how the daemon speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// In which form.
    pub format: LogFormat,
    /// From which level on.
    pub level: LogLevel,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// How much is logged, from little to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Somebody must act.
    Error,
    /// Something is degraded, or a run was lost.
    Warn,
    /// One line for each start and end of a run.
    Info,
    /// The expected too, as lost races.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// Every one, from little to all.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The word in the file, which is also what log filters understand.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

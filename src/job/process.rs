use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a job's process is set up before its program is executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSetup {
    /// The login name of the user that it runs as; `None` for the daemon's own.
    pub user: Option<String>,
    /// The group that it runs as; `None` for the user's.
    pub group: Option<String>,
    /// Which permissions its files don't get (`umask(2)`).
    pub umask: Umask,
    /// A file of `NAME=VALUE` lines, read by the job's own user right before the start.
    pub env_file: Option<PathBuf>,
    /// What it reads from its standard input.
    pub stdin: Stdin,
    /// How nice it is (`nice(2)`): -20, which only root may give, to 19.
    pub nice: i8,
    /// What it may use.
    pub limits: Limits,
}

/// Which permissions files don't get: nine bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Umask(pub u16);

impl Default for Umask {
    fn default() -> Self {
        Self(0o022)
    }
}

/// What a job reads from its standard input: never the daemon's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    #[default]
    Empty,
    /// This text.
    Text(String),
    /// A file, opened by the job's own user.
    File(PathBuf),
}

/// What each process of a job may use (`setrlimit(2)`), soft and hard; `None` for as much as the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Address space, in bytes (`RLIMIT_AS`).
    pub memory: Option<u64>,
    /// Time of the processor (`RLIMIT_CPU`), in whole seconds.
    pub cpu_time: Option<Duration>,
    /// Descriptors (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
    /// Processes of its user (`RLIMIT_NPROC`); the kernel doesn't hold root to it.
    pub processes: Option<u64>,
}

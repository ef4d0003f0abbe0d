use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where a job's output goes, besides the tail that its run's row keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputTo {
    /// Line by line to the daemon's log.
    #[default]
    Log,
    /// Nowhere.
    Discard,
    /// To files, opened and rotated as the job's own user.
    File(Box<OutputFile>),
}

/// The files that a job's output goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// An absolute path, in which `{job}`, `{host}`, `{run}`, `{date}` and `{time}` stand for the run's.
    pub pattern: String,
    /// What is kept of them.
    pub keep: OutputKeep,
}

/// What is kept of a job's output files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputKeep {
    /// A file that would grow beyond this many bytes is rotated.
    pub size: u64,
    /// How many rotated files are kept.
    pub files: u32,
    /// Rotated files that are older are removed; `None` for no bound.
    pub age: Option<Duration>,
}

impl Default for OutputKeep {
    fn default() -> Self {
        Self { size: 10 * 1024 * 1024, files: 5, age: None }
    }
}

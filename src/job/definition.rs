use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::schedule::Schedule;
use super::{JobName, Notices, OnLeaseLost, OutputTo, Placement, ProcessSetup, Retries, SuccessCodes};
use crate::lock::{LeaseTiming, Resource};

/// A job as it is meant: validated, defaults merged, nothing left to interpret.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name, unique in the schedule.
    pub name: JobName,
    /// What it is for, in its author's words.
    pub description: Option<String>,
    /// Whether it ticks at all.
    pub enabled: bool,
    /// When it ticks; never by itself, if it runs by hand or after other jobs.
    pub schedule: Schedule,
    /// How long after its instant a run starts; see [`start_delay`](super::start_delay). The instant
    /// stays the trigger's name.
    pub start_delay: Duration,
    /// The jobs after whose success it runs, when all of them succeeded for the same instant.
    pub after: Vec<JobName>,
    /// Where it may run.
    pub placement: Placement,
    /// What it runs.
    pub command: Command,
    /// What it locks while it runs; jobs that name the same lock exclude one another.
    pub resource: Resource,
    /// How its lease is timed.
    pub timing: LeaseTiming,
    /// What becomes of a trigger whose lock is held.
    pub overlap: Overlap,
    /// How long one run may take; `None` for ever.
    pub timeout: Option<Duration>,
    /// Variables on top of the base environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs; `None` for the home directory of its user.
    pub directory: Option<PathBuf>,
    /// How its process is set up besides.
    pub process: ProcessSetup,
    /// Which exit codes mean success.
    pub success_codes: SuccessCodes,
    /// How often a failed run is tried again.
    pub retries: Retries,
    /// What becomes of it when its lease is lost.
    pub on_lease_lost: OnLeaseLost,
    /// Where its output goes.
    pub output: OutputTo,
    /// Who is told how it fares.
    pub notices: Option<Box<Notices>>,
    /// What becomes of a run whose host died.
    pub on_crash: OnCrash,
    /// How long a trigger may wait to be started while the database is reachable.
    pub start_deadline: Duration,
    /// What becomes of triggers that nobody could take.
    pub catch_up: CatchUp,
    /// How far back it catches up.
    pub catch_up_max_age: Duration,
}

impl Job {
    /// When it runs, in words: `at 02:15, Europe/Berlin`, or `after extract and load`.
    pub fn ticks_in_words(&self) -> String {
        let names: Vec<&str> = self.after.iter().map(JobName::as_str).collect();
        match names.as_slice() {
            [] => self.schedule.words(),
            [one] => format!("after {one}"),
            [first @ .., last] => format!("after {} and {last}", first.join(", ")),
        }
    }
}

/// What a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A program and its arguments, without a shell. Never empty.
    Argv(Vec<String>),
    /// A line for `/bin/sh -c`.
    Shell(String),
}

impl Command {
    /// Program and arguments.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Argv(argv) => argv.clone(),
            Self::Shell(line) => vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()],
        }
    }
}

/// What becomes of a trigger whose lock is held by another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// It is skipped, and its row says by whom it was held off.
    Skip,
    /// It waits for the lock up to this long; at most one trigger of a job waits.
    Wait(Duration),
    /// A run of the same job is stopped, and it takes the lock as soon as that is gone; it waits up to
    /// this long. Held by anybody else, it is skipped.
    Replace(Duration),
}

/// What becomes of a run whose host died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCrash {
    /// It is recorded as lost: at most once.
    Record,
    /// It is run again, up to `max` times: at least once.
    Rerun {
        /// How many reruns one trigger may have.
        max: u32,
    },
}

/// What becomes of triggers that nobody could take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchUp {
    /// The newest is run late, the others are recorded as missed.
    Latest,
    /// The newest `max_runs` are run late, oldest first, the others are recorded as missed.
    All {
        /// How many at most; at least 1.
        max_runs: u32,
        /// The time between the starts of two late runs, at least.
        spacing: Duration,
    },
    /// All are recorded as missed.
    None,
}

//! How runs end: by their host, by recovery, by their time being over.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::JobName;
use crate::lock::{FencingToken, Owner, Resource};
use crate::trigger::{RunId, RunState, Trigger};

/// What proves that a run is the caller's: the row is matched by all of it.
#[derive(Clone, Debug)]
pub struct RunKey {
    /// Which run.
    pub run: RunId,
    /// Its owner.
    pub owner: Owner,
    /// Its lock.
    pub resource: Resource,
    /// Its lock's token.
    pub token: FencingToken,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// A final state.
    pub state: RunState,
    /// The exit code, if the process exited.
    pub exit_code: Option<i32>,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
    /// Why, in one word or sentence, where the state alone doesn't say.
    pub reason: Option<String>,
    /// When the process was started, by the database's clock as this host knew it.
    pub started_at: Option<DateTime<Utc>>,
    /// When it had ended, by the same clock.
    pub finished_at: DateTime<Utc>,
    /// The last lines of its output.
    pub output_tail: Option<String>,
    /// The time of the processor that all its processes used, user and system, to the millisecond.
    pub cpu: Option<Duration>,
    /// The most memory that one of its processes had in use at once (resident), in KiB.
    pub memory_peak_kib: Option<u64>,
}

/// A job that is due once others have succeeded, seen from one of those.
#[derive(Clone, Debug)]
pub struct Follower {
    /// The name of its run, if this success makes one.
    pub run: RunId,
    /// Which job.
    pub job: JobName,
    /// All jobs that must have succeeded, for the same instant and target; the one that ends now
    /// is one of them.
    pub upstreams: Vec<JobName>,
    /// What it locks.
    pub resource: Resource,
    /// How long it may wait for a host.
    pub start_deadline: Duration,
    /// How often it may be run again after a crash.
    pub reruns_left: u32,
}

/// The answer to the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Whether the row took the ending: not if another result was recorded before.
    pub recorded: bool,
    /// What became of the lock.
    pub lock: LockAtEnd,
    /// The followers that wait since this success, with their runs.
    pub followed: Vec<(JobName, RunId)>,
}

/// The answer to a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// The failure is recorded and the next attempt is the caller's, under the same lease. Also the answer
    /// when the same retry is sent again.
    Claimed {
        /// Its number.
        attempt: u32,
    },
    /// Somebody wants the run stopped. Nothing was written.
    Cancelled,
    /// The run is not the caller's any more, or its lock isn't. Nothing was written.
    Gone,
}

/// What was found of a run's lock when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAtEnd {
    /// It was held to the end and is free now.
    Released,
    /// It had expired before, but nobody had taken it; it is free now.
    Expired,
    /// It was not the run's any more.
    Gone,
}

/// A run that recovery found without a live lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRun {
    /// Which run.
    pub run: RunId,
    /// Of which trigger.
    pub trigger: Trigger,
    /// Which attempt.
    pub attempt: u32,
    /// Whose it was.
    pub host: String,
    /// Its lock.
    pub resource: Resource,
    /// Its lock's token.
    pub token: FencingToken,
    /// The run that waits now in its place, if it is to be run again.
    pub rerun: Option<RunId>,
}

/// A waiting run that nobody took in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverdueRun {
    /// Which run.
    pub run: RunId,
    /// Of which trigger.
    pub trigger: Trigger,
    /// Which attempt.
    pub attempt: u32,
    /// The lock that it waited for.
    pub resource: Resource,
    /// What it is now: skipped or missed.
    pub state: RunState,
    /// Why.
    pub reason: String,
}

/// What recovery did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Runs marked lost; their locks are free.
    pub lost: Vec<LostRun>,
    /// Waiting runs that are over.
    pub overdue: Vec<OverdueRun>,
}

/// Followers as SQL reads them; `None` where this ending has none.
pub(super) fn followers_json(ending: &Ending, followers: &[Follower]) -> Option<String> {
    if ending.state != RunState::Succeeded || followers.is_empty() {
        return None;
    }
    let as_json = |follower: &Follower| {
        serde_json::json!({
            "run": follower.run.to_string(),
            "job": follower.job.as_str(),
            "upstreams": follower.upstreams.iter().map(JobName::as_str).collect::<Vec<_>>(),
            "resource": follower.resource.as_str(),
            "start_deadline_ms": i64::try_from(follower.start_deadline.as_millis()).unwrap_or(i64::MAX),
            "reruns_left": i32::try_from(follower.reruns_left).unwrap_or(i32::MAX),
        })
    };
    Some(serde_json::Value::Array(followers.iter().map(as_json).collect()).to_string())
}

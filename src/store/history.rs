//! What is known of the past, and how long it is kept.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::JobName;
use crate::lock::FencingToken;
use crate::trigger::{Origin, RangeKind, RunId, RunState, Target, TriggerKind};

/// Which rows of the history to list.
#[derive(Clone, Debug)]
pub struct RunFilter {
    /// Of one job only.
    pub job: Option<JobName>,
    /// In one state only.
    pub state: Option<RunState>,
    /// Scheduled at or after this instant only.
    pub since: Option<DateTime<Utc>>,
    /// Before this run only: the next page.
    pub before: Option<RunId>,
    /// At most this many, newest first.
    pub limit: u32,
}

/// Triggers that are over without a row each, as the history lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedRow {
    /// Of which job; text, for it may be of a job that no file holds any more.
    pub job: String,
    /// For whom.
    pub target: Target,
    /// What took them.
    pub kind: RangeKind,
    /// The first.
    pub from: DateTime<Utc>,
    /// The last.
    pub to: DateTime<Utc>,
    /// How many, at least.
    pub count: u64,
    /// Why.
    pub reason: String,
    /// When it was recorded.
    pub recorded_at: DateTime<Utc>,
}

/// Which outcomes of a job's triggers are asked for.
#[derive(Clone, Debug)]
pub struct OutcomeQuery {
    /// Of which job.
    pub job: JobName,
    /// For whom.
    pub target: Target,
    /// Of triggers at or before this instant.
    pub through: DateTime<Utc>,
    /// At most this many.
    pub limit: u32,
}

/// How a trigger ended, or how several did that have no row each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerOutcome {
    /// The run that decided it, the last attempt; `None` for triggers without a row each.
    pub run: Option<RunId>,
    /// Its instant; the last one of several.
    pub at: DateTime<Utc>,
    /// Succeeded, failed, lost or missed.
    pub state: RunState,
    /// How many triggers; at least 1.
    pub count: u64,
}

/// What of the history is kept.
#[derive(Clone, Debug)]
pub struct Retention {
    /// Everything is kept at least this long, unless there are too many runs of a job.
    pub keep: Duration,
    /// So many runs of a job are kept; failures, losses and the last success stay for `keep` even
    /// beyond.
    pub keep_runs: u32,
    /// Nothing younger than this is ever pruned: it could still be claimed.
    pub horizon: Duration,
    /// The job after which to go on counting, from [`Pruned::next`].
    pub after: Option<JobName>,
}

/// What one step of pruning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many runs are gone.
    pub runs: u64,
    /// The last job that was counted; `None` after the last of all.
    pub next: Option<JobName>,
}

/// A row of `runs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Which run.
    pub run: RunId,
    /// Of which job; text, for it may be of a job that no file holds any more.
    pub job: String,
    /// The nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// For whom.
    pub target: Target,
    /// What made the trigger.
    pub origin: Origin,
    /// Which attempt.
    pub attempt: u32,
    /// What made the run.
    pub kind: TriggerKind,
    /// Where it is in its life.
    pub state: RunState,
    /// Whose it is or was.
    pub host: Option<String>,
    /// What it locks.
    pub resource: String,
    /// Its lock's token.
    pub token: Option<FencingToken>,
    /// When it was claimed.
    pub claimed_at: Option<DateTime<Utc>>,
    /// When its process was started.
    pub started_at: Option<DateTime<Utc>>,
    /// When it was over.
    pub finished_at: Option<DateTime<Utc>>,
    /// Until when it may wait.
    pub wait_until: Option<DateTime<Utc>>,
    /// Before when nobody takes it; when it was taken, if late runs after it keep their distance.
    pub not_before: Option<DateTime<Utc>>,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why.
    pub reason: Option<String>,
    /// The run that held it off.
    pub blocked_by: Option<RunId>,
    /// The last lines of its output.
    pub output_tail: Option<String>,
    /// The time of the processor that it used.
    pub cpu: Option<Duration>,
    /// The most memory that one of its processes had in use at once, in KiB.
    pub memory_peak_kib: Option<u64>,
}

//! What is known of the past, what is missing in it, and how long it is kept.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::JobName;
use crate::lock::{FencingToken, Resource};
use crate::trigger::{MissedReason, Origin, RunId, RunState, Target, TriggerKind};

/// Which job's progress is asked for.
#[derive(Clone, Debug)]
pub struct ProgressQuery {
    /// Which job.
    pub job: JobName,
    /// How far back each trigger's row is looked up.
    pub since: DateTime<Utc>,
}

/// Which of a job's triggers have a row, past a watermark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// Which job.
    pub job: JobName,
    /// The watermark: what was accounted for by rows or ranges when somebody last looked.
    pub caught_up_through: DateTime<Utc>,
    /// Everything up to here is accounted for: the watermark, or later where the history is pruned.
    pub settled_through: DateTime<Utc>,
    /// The newest scheduled instant with a row that is not later than `since`.
    pub newest_before: Option<DateTime<Utc>>,
    /// Scheduled instants later than both `since` and the watermark which have a row, in order.
    pub with_row: Vec<DateTime<Utc>>,
}

/// What to do about a job's triggers that nobody took.
#[derive(Clone, Debug)]
pub struct CatchUpPlan {
    /// Which job.
    pub job: JobName,
    /// The watermark that the plan was made from; another host may have moved it since.
    pub from: DateTime<Utc>,
    /// The watermark afterwards.
    pub through: DateTime<Utc>,
    /// How many rows the plan saw between `rows_since` and `through`; with another number now, some
    /// trigger was claimed meanwhile, and nothing is done.
    pub rows_seen: u64,
    /// From where on it saw them, exclusive.
    pub rows_since: DateTime<Utc>,
    /// What is recorded as missed.
    pub missed: Vec<MissedRange>,
    /// What is to be run late: it waits for any eligible host.
    pub late: Option<LateRun>,
}

/// Triggers that are over without a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedRange {
    /// The first.
    pub from: DateTime<Utc>,
    /// The last.
    pub to: DateTime<Utc>,
    /// How many.
    pub count: u64,
    /// Why.
    pub reason: MissedReason,
}

/// A trigger that is to be run late.
#[derive(Clone, Debug)]
pub struct LateRun {
    /// The run's name.
    pub run: RunId,
    /// The trigger's instant.
    pub scheduled_at: DateTime<Utc>,
    /// What it locks.
    pub resource: Resource,
    /// How long it may wait for a host.
    pub start_deadline: Duration,
    /// How often it may be run again after a crash.
    pub reruns_left: u32,
}

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
}

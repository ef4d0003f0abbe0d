//! Which triggers are accounted for, and what becomes of those that are not.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::JobName;
use crate::lock::Resource;
use crate::trigger::{MissedReason, RangeKind, RunId, Target};

/// Which job's progress is asked for.
#[derive(Clone, Debug)]
pub struct ProgressQuery {
    /// Which job.
    pub job: JobName,
    /// For whom.
    pub target: Target,
}

/// Which of a job's triggers for one target have a row, past a watermark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// Which job.
    pub job: JobName,
    /// For whom.
    pub target: Target,
    /// The watermark: what was accounted for by rows or ranges when somebody last looked. Later than
    /// the database's now it means nothing: a clock was wrong.
    pub caught_up_through: DateTime<Utc>,
    /// Everything up to here is accounted for: the watermark, or later where the history is pruned.
    pub settled_through: DateTime<Utc>,
    /// All scheduled instants later than `settled_through` which have a row, in order.
    pub with_row: Vec<DateTime<Utc>>,
    /// The pause that the job is in, or its last one if that ended later than the watermark.
    pub pause: Option<Pause>,
    /// When the job was last edited, if it was since it was new. `None`, too, if that is later than the
    /// database's now: a clock was wrong.
    pub edited_at: Option<DateTime<Utc>>,
}

/// A stretch of time in which nothing of a job is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Since when.
    pub from: DateTime<Utc>,
    /// Until when; `None` until somebody resumes the job.
    pub until: Option<DateTime<Utc>>,
}

/// What to do about a job's triggers for one target that nobody took.
#[derive(Clone, Debug)]
pub struct CatchUpPlan {
    /// Which job.
    pub job: JobName,
    /// For whom.
    pub target: Target,
    /// The watermark that the plan was made from; another host may have moved it since.
    pub from: DateTime<Utc>,
    /// The watermark afterwards. Earlier than `from` where a wrong clock had left that in the future.
    pub through: DateTime<Utc>,
    /// How many rows the plan saw between `rows_since` and `through`; with another number now, some
    /// trigger was claimed meanwhile, and nothing is done.
    pub rows_seen: u64,
    /// From where on it saw them, exclusive.
    pub rows_since: DateTime<Utc>,
    /// Whether nothing may run late after a newer trigger was claimed: with a row by now that is later
    /// than all of `late`, nothing is done.
    pub only_newest: bool,
    /// What is over without a row each.
    pub ranges: Vec<TriggerRange>,
    /// What is to be run late, oldest first: each waits for any eligible host, and for those before it.
    pub late: Vec<LateRun>,
}

/// Triggers that are over without a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggerRange {
    /// What took them.
    pub kind: RangeKind,
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
    /// How long from now nobody takes it, longer if those before it start later than they may; `None`:
    /// not at all.
    pub not_before: Option<Duration>,
    /// How long from now it may wait for a host, the time of `not_before` included; longer as that is.
    pub waits: Duration,
    /// How long a rerun of it may wait.
    pub start_deadline: Duration,
    /// How often it may be run again after a crash.
    pub reruns_left: u32,
}

/// Adds a row that was found to the job's progress; `progress` is sorted by job and target.
pub(super) fn add_row(progress: &mut [JobProgress], job: &str, target: &str, scheduled_at: DateTime<Utc>) {
    let found = progress.binary_search_by(|known| (known.job.as_str(), known.target.as_str()).cmp(&(job, target)));
    if let Ok(place) = found {
        progress[place].with_row.push(scheduled_at);
    }
}

/// In the order that [`add_row`] asks for.
pub(super) fn sort(progress: &mut [JobProgress]) {
    progress.sort_by(|a, b| (a.job.as_str(), a.target.as_str()).cmp(&(b.job.as_str(), b.target.as_str())));
}

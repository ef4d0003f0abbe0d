//! The port for runs: claims, their end, recovery, history.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use super::locks::{Grant, Holder};
use crate::fleet::{HostName, InstanceId};
use crate::job::JobName;
use crate::lock::{FencingToken, Owner, Resource, Ttl};
use crate::trigger::{MissedReason, Origin, RunId, RunState, SkipReason, Target, Trigger, TriggerKind};

/// Who claims, and with what lock.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// The host's name, for people.
    pub host: HostName,
    /// Which start of the daemon.
    pub instance: InstanceId,
    /// The owner made for this run.
    pub owner: Owner,
    /// What to lock.
    pub resource: Resource,
    /// For how long unless renewed.
    pub ttl: Ttl,
    /// See [`Acquire::expected_now`](super::Acquire::expected_now).
    pub expected_now: Option<DateTime<Utc>>,
}

/// One host's claim to one trigger.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The run's name. Sent again with the same one, the claim is the same claim.
    pub run: RunId,
    /// What is claimed.
    pub trigger: Trigger,
    /// Which attempt; 1 is the first.
    pub attempt: u32,
    /// What made it.
    pub kind: TriggerKind,
    /// By whom.
    pub claimant: Claimant,
    /// How long the trigger may wait if the lock is held; `None`: it is skipped.
    pub wait: Option<Duration>,
    /// How long it may wait for a host when it is given back.
    pub start_deadline: Duration,
    /// How often it may be run again after a crash.
    pub reruns_left: u32,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The caller runs it. Also the answer when the same claim is sent again.
    Granted(Grant),
    /// Another host has claimed it, or it is over: the normal case on all hosts but one.
    AlreadyClaimed {
        /// Which run.
        run: RunId,
        /// Whose, if anybody's.
        host: Option<String>,
        /// Where it is in its life.
        state: RunState,
    },
    /// The lock is held by another run.
    Held {
        /// By whom; `None` when the same claim is sent again and the holder has gone since.
        holder: Option<Holder>,
        /// What became of the trigger.
        became: Became,
    },
    /// It is not yet time by the database's clock.
    TooEarly {
        /// By this much.
        by: Duration,
    },
    /// The job is paused.
    Paused,
    /// It lies before what the history still knows: it can't be claimed any more.
    Forgotten,
}

/// What became of a trigger that could not be run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// It is over.
    Skipped(SkipReason),
    /// Any eligible host may take it, until then.
    Waiting {
        /// By the database's clock.
        until: DateTime<Utc>,
    },
}

/// The answer to an attempt to take a waiting run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The caller runs it.
    Granted(Grant),
    /// Its lock is still held; it goes on waiting.
    Held(Holder),
    /// The database's clock is not believed, or the job is paused; it goes on waiting.
    NotNow,
    /// It doesn't wait any more.
    Gone,
}

/// A run that waits for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRun {
    /// Which run.
    pub run: RunId,
    /// Of which trigger.
    pub trigger: Trigger,
    /// Which attempt.
    pub attempt: u32,
    /// What made it.
    pub kind: TriggerKind,
    /// Since when it waits.
    pub since: DateTime<Utc>,
    /// Until when it may.
    pub wait_until: DateTime<Utc>,
}

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
    /// The last lines of its output.
    pub output_tail: Option<String>,
}

/// The answer to the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Whether the row took the ending: not if another result was recorded before.
    pub recorded: bool,
    /// What became of the lock.
    pub lock: LockAtEnd,
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
    /// Everything up to here is accounted for, by rows or by ranges.
    pub caught_up_through: DateTime<Utc>,
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

/// Runs in the shared tables.
///
/// Every writing call matches the run by its key, so that a host that was overtaken writes nothing
/// over its successor's row. Lock order everywhere: run row, then lock row.
#[async_trait]
pub trait Runs: Send + Sync {
    /// Claims a trigger and its lock, in one transaction and, on PostgreSQL, one round trip.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::is_unknown`] the claim may have been granted: send the
    /// same claim again.
    ///
    /// # Cancel safety
    /// Dropped, it may have been granted, as after an unknown error.
    async fn claim(&self, claim: &Claim) -> Result<Claimed, StoreError>;

    /// Which of these triggers have no first attempt yet. A cheap look before a claim.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn unclaimed(&self, triggers: &[Trigger]) -> Result<Vec<Trigger>, StoreError>;

    /// Marks a claimed run as started. `Ok(false)`: it is not the caller's any more.
    ///
    /// # Errors
    /// [`StoreError`]; marking again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn start(&self, key: &RunKey, started_at: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Records how a run ended and frees its lock, in one transaction. An ending in state lost makes
    /// the rerun wait, as recovery does. A late result is taken from
    /// state lost, too. The same ending sent again answers as the first time, but for the lock.
    ///
    /// # Errors
    /// [`StoreError`]; finishing again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn finish(&self, key: &RunKey, ending: &Ending) -> Result<Finished, StoreError>;

    /// Gives a claimed run back that was never started: it waits for any eligible host, within its
    /// `start_deadline`, and its lock is free. `Ok(false)`: it is not the caller's any more.
    ///
    /// # Errors
    /// [`StoreError`]; giving back again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn give_back(&self, key: &RunKey, reason: &str) -> Result<bool, StoreError>;

    /// Runs that wait for a host, oldest first, at most 1,000.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn waiting(&self) -> Result<Vec<WaitingRun>, StoreError>;

    /// Tries to take a waiting run with its lock.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::is_unknown`] ask again with the same claimant.
    ///
    /// # Cancel safety
    /// Dropped, it may have been granted, as after an unknown error.
    async fn take(&self, run: RunId, claimant: &Claimant) -> Result<Taken, StoreError>;

    /// Marks open runs without a live lock as lost, makes their reruns wait, and closes waiting
    /// runs whose time is over; at most 100 of each. Does nothing about lost runs while the
    /// database's clock differs from `expected_now` by more than a second.
    ///
    /// # Errors
    /// [`StoreError`]; recovering again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done; what was recovered is then only in the tables.
    async fn recover(&self, expected_now: Option<DateTime<Utc>>) -> Result<Recovered, StoreError>;

    /// What is accounted for, of each of these jobs that is registered.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError>;

    /// Carries a catch-up plan out, if the watermark still stands where the plan began.
    /// `Ok(false)`: another host has moved it; nothing was written.
    ///
    /// # Errors
    /// [`StoreError`]; sent again, it answers false.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn catch_up(&self, plan: &CatchUpPlan) -> Result<bool, StoreError>;

    /// Takes one bounded step of pruning: at most 1,000 runs by age, the same for each of the next
    /// 50 jobs by count, and locks and ranges that are as old. What was pruned can't be claimed any
    /// more, and no token falls.
    ///
    /// # Errors
    /// [`StoreError`]; pruning again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn prune(&self, retention: &Retention) -> Result<Pruned, StoreError>;

    /// The history, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn history(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError>;
}

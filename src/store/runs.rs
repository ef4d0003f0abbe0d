//! The port for runs: claims, their end, recovery, history.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use super::claims::{Claim, Claimant, Claimed, Taken, WaitingRun};
use super::endings::{Ending, Finished, Follower, Recovered, Retried, RunKey};
use super::history::{MissedRow, OutcomeQuery, Pruned, Retention, RunFilter, RunRow, TriggerOutcome};
use crate::clock::Expected;
use crate::fleet::HostName;
use crate::trigger::{RunId, Trigger};

/// Runs in the shared tables.
///
/// Every writing call matches the run by its key, so that a host that was overtaken writes nothing
/// over its successor's row. Lock order everywhere: run row, then lock row. Whoever claims, takes, pauses
/// or catches up has the job's own lock before both; an end has its run's row before its followers'
/// locks, and nobody who has one of those waits for a row of another job's run.
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
    /// A success makes each follower wait, in the same transaction, if all of its upstreams have
    /// succeeded for the same instant and target, and none of their successes has made it wait before.
    /// Of a follower that is paused it is recorded as missed; while another run of it waits for the same
    /// target because of a success, as skipped.
    ///
    /// # Errors
    /// [`StoreError`]; finishing again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn finish(&self, key: &RunKey, ending: &Ending, followers: &[Follower]) -> Result<Finished, StoreError>;

    /// Records how one attempt at a trigger ended and claims the next one, under the same lease, in one
    /// transaction. The lock is looked at, not touched: renewals go on. The next attempt has the owner and
    /// the token of the one before, so its key is that with `next` for the run. It is claimed from
    /// now on: in the pause before its start it may be given back, ended or lost as any claimed run.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::is_unknown`] ask again with the same `next`: until there is an
    /// answer nobody knows which of the two runs is to be ended.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done, as after an unknown error.
    async fn retry(&self, key: &RunKey, ending: &Ending, next: RunId) -> Result<Retried, StoreError>;

    /// Gives a claimed run back that was never started: it waits for any eligible host, within its
    /// `start_deadline`, and its lock is free. One that somebody wants stopped is cancelled instead. `Ok(false)`: it is not the caller's any more.
    ///
    /// # Errors
    /// [`StoreError`]; giving back again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn give_back(&self, key: &RunKey, reason: &str) -> Result<bool, StoreError>;

    /// Runs that wait for any host, or for this one, and may be taken by now; oldest first, at most
    /// 1,000. Of the late runs of one job and target only the oldest may.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn waiting(&self, host: &HostName) -> Result<Vec<WaitingRun>, StoreError>;

    /// Tries to take a waiting run with its lock. One that waits to replace another run sees to it that this
    /// is asked to stop. Late runs of one job and target are taken oldest
    /// first; by how much one is later than it might have been, those of its plan that have a time to
    /// wait for are moved.
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
    async fn recover(&self, expected_now: Option<Expected>) -> Result<Recovered, StoreError>;

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

    /// Triggers that are over without a row each, newest first, by job, state and `since` of the
    /// filter, at most its `limit`. In state missed are those that nobody could run, not what a pause
    /// or a blackout took; in no other state is any.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn missed(&self, filter: &RunFilter) -> Result<Vec<MissedRow>, StoreError>;

    /// The history, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn history(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError>;

    /// How a job's triggers for one target ended, newest instant first.
    ///
    /// Only what went well or badly is told: succeeded, failed, lost, and missed where
    /// [`MissedReason::is_failure`](crate::trigger::MissedReason::is_failure). A trigger ends with its last
    /// attempt: one that is to be tried again has no outcome yet, and an attempt that was cancelled or
    /// skipped leaves the one before it in force. It looks at the newest 10,000 rows of the job, whatever
    /// their state.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn outcomes(&self, query: &OutcomeQuery) -> Result<Vec<TriggerOutcome>, StoreError>;
}

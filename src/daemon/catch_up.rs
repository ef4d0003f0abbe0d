//! What becomes of triggers that nobody took: the decision, and the sweep that carries it out.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use tokio::sync::Notify;

use super::Shared;
use super::queue::PASSED_OVER;
use crate::events;
use crate::job::{CatchUp, Job, JobName, OnCrash};
use crate::store::{CatchUpPlan, JobProgress, LateRun, MissedRange, ProgressQuery, StoreError};
use crate::trigger::{MissedReason, RunId};

/// How many triggers of a long outage are counted one by one; past that the count is a lower bound.
const COUNTED: usize = 1_000_000;

/// How long a sweep waits: what was given up just now is passed over by then, and a whole second of
/// the schedule more.
const SETTLING: Duration = Duration::from_secs(6);

/// Jobs of which some trigger may have no row: written by whoever gives one up, taken by the sweep.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    jobs: Mutex<BTreeSet<JobName>>,
    changed: Notify,
}

impl Unsettled {
    pub(super) fn add(&self, jobs: impl IntoIterator<Item = JobName>) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).extend(jobs);
        self.changed.notify_one();
    }

    fn take(&self) -> BTreeSet<JobName> {
        std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there are any, and takes them.
    async fn wait(&self) -> BTreeSet<JobName> {
        loop {
            let jobs = self.take();
            if !jobs.is_empty() {
                return jobs;
            }
            self.changed.notified().await;
        }
    }
}

/// Sweeps until it is dropped.
///
/// It waits until what was given up last is old enough to be settled, too: an outage, or the time
/// before a start, is settled by one sweep, so that it brings one late run of a job and no more.
///
/// # Cancel safety
/// Dropped, a plan may have been carried out without its events.
pub(super) async fn sweep_on(shared: &Shared) {
    loop {
        let mut jobs = shared.unsettled.wait().await;
        shared.health.wait_until_reachable().await;
        jobs.append(&mut shared.unsettled.take());
        // What is given up from here on is too young for this sweep, and has the next one.
        tokio::time::sleep(SETTLING).await;
        if let Err(error) = sweep(shared, &jobs).await {
            shared.health.failed(&error);
            shared.unsettled.add(jobs);
        }
    }
}

async fn sweep(shared: &Shared, names: &BTreeSet<JobName>) -> Result<(), StoreError> {
    let plan = shared.plan();
    let now = shared.clock.now();
    // What is not older than this may still be on its way through some host's claim.
    let through = (now - PASSED_OVER).trunc_subsecs(0);
    let since = |job: &Job| now - TimeDelta::from_std(job.catch_up_max_age).unwrap_or(TimeDelta::MAX);
    let queries: Vec<_> = names
        .iter()
        .filter_map(|name| plan.get(name))
        .map(|job| ProgressQuery { job: job.name.clone(), since: since(job) })
        .collect();
    for progress in shared.store.progress(&queries).await? {
        let Some(job) = plan.get(&progress.job) else { continue };
        let Some(decided) = decide(job, &progress, since(job), through) else { continue };
        if shared.store.catch_up(&decided).await? {
            for range in &decided.missed {
                events::triggers_missed(&job.name, range.from, range.to, range.count, range.reason);
            }
            shared.look_for_waiting.notify_one();
        }
    }
    shared.health.answered();
    Ok(())
}

/// What to do about the triggers of a job that have no row: those in `(watermark, through]`.
/// `None`: there are none. `since` is how far back it catches up; what is older is missed.
fn decide(job: &Job, progress: &JobProgress, since: DateTime<Utc>, through: DateTime<Utc>) -> Option<CatchUpPlan> {
    let from = progress.caught_up_through;
    let settled = progress.settled_through;
    let old_from = progress.newest_before.map_or(settled, |newest| newest.max(settled));
    let mut missed = Vec::new();
    missed.extend(range(instants(job, old_from, since.min(through)), MissedReason::TooOld));
    let mut gaps: Vec<_> =
        instants(job, settled.max(since), through).filter(|at| progress.with_row.binary_search(at).is_err()).collect();
    let late = match job.catch_up {
        CatchUp::Latest => gaps.pop(),
        CatchUp::None => None,
    };
    let reason = match job.catch_up {
        CatchUp::Latest => MissedReason::Superseded,
        CatchUp::None => MissedReason::NoCatchUp,
    };
    missed.extend(range(gaps.into_iter(), reason));
    if missed.is_empty() && late.is_none() {
        return None;
    }
    let late = late.map(|scheduled_at| LateRun {
        run: RunId::generate(),
        scheduled_at,
        resource: job.resource.clone(),
        start_deadline: job.start_deadline,
        reruns_left: reruns(job),
    });
    let seen = progress.with_row.iter().filter(|at| **at <= through).count();
    let rows_seen = u64::try_from(seen).unwrap_or(u64::MAX);
    Some(CatchUpPlan { job: job.name.clone(), from, through, rows_seen, rows_since: from.max(since), missed, late })
}

/// The nominal instants later than `after`, up to `through`.
fn instants(job: &Job, after: DateTime<Utc>, through: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    let next = move |at: &DateTime<Utc>| job.schedule.next_after(*at).filter(|at| *at <= through);
    std::iter::successors(next(&after), next).take(COUNTED)
}

fn range(mut instants: impl Iterator<Item = DateTime<Utc>>, reason: MissedReason) -> Option<MissedRange> {
    let first = instants.next()?;
    let (to, count) = instants.fold((first, 1), |(_, count), at| (at, count + 1));
    Some(MissedRange { from: first, to, count, reason })
}

/// How often a run of this job may be run again after a crash.
pub(super) fn reruns(job: &Job) -> u32 {
    match job.on_crash {
        OnCrash::Record => 0,
        OnCrash::Rerun { max } => max,
    }
}

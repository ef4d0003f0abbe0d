//! What becomes of triggers that nobody took: the decision, and the sweep that carries it out.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use tokio::sync::Notify;

use super::Shared;
use super::gaps::{Gaps, gaps};
use super::queue::PASSED_OVER;
use crate::events;
use crate::job::{CatchUp, Job, JobName, OnCrash, Overlap};
use crate::store::{CatchUpPlan, JobProgress, LateRun, ProgressQuery, RangeKind, StoreError, TriggerRange};
use crate::trigger::{MissedReason, RunId, Target};

/// How often all jobs are swept, whatever is known to be given up: that is known in memory only, and
/// by a host that may be gone.
const SWEEP_ALL: Duration = Duration::from_secs(600);

/// How often the clock is looked at while it is not believed.
const DOUBT_STEP: Duration = Duration::from_secs(1);

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
    let mut all_after = SWEEP_ALL.mul_f64(0.75 + fastrand::f64() / 2.0);
    loop {
        let mut jobs = tokio::select! {
            jobs = shared.unsettled.wait() => jobs,
            () = tokio::time::sleep(all_after) => shared.plan().jobs().map(|job| job.name.clone()).collect(),
        };
        all_after = SWEEP_ALL.mul_f64(0.75 + fastrand::f64() / 2.0);
        shared.health.wait_until_reachable().await;
        jobs.append(&mut shared.unsettled.take());
        // What is given up from here on is too young for this sweep, and has the next one.
        tokio::time::sleep(SETTLING).await;
        while shared.clock.is_doubted() {
            tokio::time::sleep(DOUBT_STEP).await;
        }
        if let Err(error) = sweep(shared, &jobs).await {
            shared.health.failed(&error);
            shared.unsettled.add(jobs);
        }
    }
}

async fn sweep(shared: &Shared, names: &BTreeSet<JobName>) -> Result<(), StoreError> {
    let plan = shared.plan();
    let now = shared.clock.now();
    let jobs: Vec<_> = names.iter().filter_map(|name| plan.get(name)).collect();
    let query = |job: &&std::sync::Arc<Job>| ProgressQuery {
        job: job.name.clone(),
        target: Target::fleet(),
        since: Stretch::of(job, now).since,
    };
    let queries: Vec<_> = jobs.iter().map(query).collect();
    for progress in shared.store.progress(&queries).await? {
        let Some(job) = plan.get(&progress.job).cloned() else { continue };
        // A long outage of a frequent job takes a while to count: not on a thread that others need.
        let deciding = tokio::task::spawn_blocking(move || decide(&job, &progress, Stretch::of(&job, now)));
        // A panic was said already, and the next sweep tries again.
        let Ok(Some(mut decided)) = deciding.await else { continue };
        if let Some(job) = plan.get(&decided.job) {
            at_most_one_late(shared, job, &mut decided).await?;
        }
        if shared.store.catch_up(&decided).await? {
            for range in &decided.ranges {
                events::triggers_missed(&decided.job, range.from, range.to, range.count, range.reason);
            }
            shared.look_for_waiting.notify_one();
        } else {
            // Some trigger was claimed meanwhile, or another host was first: it will see.
            shared.unsettled.add([decided.job]);
        }
    }
    shared.health.answered();
    Ok(())
}

/// A job that skips doesn't get a second late run while one still waits: they would run one after
/// the other.
async fn at_most_one_late(shared: &Shared, job: &Job, decided: &mut CatchUpPlan) -> Result<(), StoreError> {
    if job.overlap != Overlap::Skip || decided.late.is_empty() {
        return Ok(());
    }
    let waiting = shared.store.waiting(&shared.host).await?;
    if waiting.iter().any(|waiting| waiting.trigger.job == job.name)
        && let Some(late) = decided.late.pop()
    {
        let (from, to) = (late.scheduled_at, late.scheduled_at);
        let (kind, reason) = (RangeKind::Missed, MissedReason::Superseded);
        decided.ranges.push(TriggerRange { kind, from, to, count: 1, reason });
    }
    Ok(())
}

/// Which of a job's triggers a sweep is about.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// How far back the job catches up; what is older is missed.
    since: DateTime<Utc>,
    /// What is not older than this may still be on its way through some host's claim.
    through: DateTime<Utc>,
    now: DateTime<Utc>,
}

impl Stretch {
    fn of(job: &Job, now: DateTime<Utc>) -> Self {
        let max_age = TimeDelta::from_std(job.catch_up_max_age).unwrap_or(TimeDelta::MAX);
        let since = now.checked_sub_signed(max_age).unwrap_or(DateTime::UNIX_EPOCH);
        Self { since, through: (now - PASSED_OVER).trunc_subsecs(0), now }
    }
}

/// What to do about the triggers of a job that have no row: those in `(watermark, through]`.
/// `None`: there are none.
///
/// The newest is run late, unless a later trigger has come, whatever has become of that: what is
/// newer is never followed by what is older.
fn decide(job: &Job, progress: &JobProgress, stretch: Stretch) -> Option<CatchUpPlan> {
    let Stretch { since, through, now } = stretch;
    let from = progress.caught_up_through;
    let settled = progress.settled_through;
    let old_from = progress.newest_before.map_or(settled, |newest| newest.max(settled));
    let old = gaps(job, old_from, since.min(through), &[]);
    let recent = gaps(job, settled.max(since), through, &progress.with_row);
    let is_newest = |at: &DateTime<Utc>| {
        progress.with_row.last().is_none_or(|newest| newest < at)
            && job.schedule.next_after(*at).is_none_or(|next| next > now)
    };
    let late = recent.map(|gaps| gaps.last).filter(|at| job.catch_up == CatchUp::Latest && is_newest(at));
    let reason = match job.catch_up {
        CatchUp::Latest | CatchUp::All { .. } => MissedReason::Superseded,
        CatchUp::None => MissedReason::NoCatchUp,
    };
    let old = old.map(|gaps| range(gaps, false, MissedReason::TooOld));
    let recent = recent.map(|gaps| range(gaps, late.is_some(), reason));
    let missed: Vec<_> = [old, recent].into_iter().flatten().flatten().collect();
    if missed.is_empty() && late.is_none() {
        return None;
    }
    let seen = progress.with_row.iter().filter(|at| **at <= through).count();
    Some(CatchUpPlan {
        job: job.name.clone(),
        target: progress.target.clone(),
        from,
        through,
        rows_seen: u64::try_from(seen).unwrap_or(u64::MAX),
        rows_since: from.max(since),
        ranges: missed,
        late: late.map(|at| late_run(job, at)).into_iter().collect(),
    })
}

fn late_run(job: &Job, scheduled_at: DateTime<Utc>) -> LateRun {
    LateRun {
        run: RunId::generate(),
        scheduled_at,
        resource: job.resource.clone(),
        not_before: None,
        waits: job.start_deadline,
        start_deadline: job.start_deadline,
        reruns_left: reruns(job),
    }
}

/// Gaps as they are recorded, all or all but the last.
fn range(gaps: Gaps, but_the_last: bool, reason: MissedReason) -> Option<TriggerRange> {
    let (to, count) = if but_the_last { (gaps.last_but_one, gaps.count - 1) } else { (gaps.last, gaps.count) };
    (count > 0).then_some(TriggerRange { kind: RangeKind::Missed, from: gaps.first, to, count, reason })
}

/// How often a run of this job may be run again after a crash.
pub(super) fn reruns(job: &Job) -> u32 {
    match job.on_crash {
        OnCrash::Record => 0,
        OnCrash::Rerun { max } => max,
    }
}

#[cfg(test)]
mod tests;

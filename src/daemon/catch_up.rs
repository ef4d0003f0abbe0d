//! What becomes of triggers that nobody took: `decision` says what, from the `gaps` in the history; the
//! sweep here carries it out.

mod decision;
mod gaps;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Notify;

use super::Shared;
use crate::events;
use crate::job::{CatchUp, Job, JobName, OnCrash, Overlap};
use crate::store::{CatchUpPlan, ProgressQuery, RangeKind, StoreError, TriggerRange};
use crate::trigger::MissedReason;
use decision::{Stretch, decide};

/// How often all jobs are swept, whatever is known to be given up: that is known in memory only, and
/// by a host that may be gone.
const SWEEP_ALL: Duration = Duration::from_secs(600);

/// How often the clock is looked at while it is not believed.
const DOUBT_STEP: Duration = Duration::from_secs(1);

/// How long a sweep waits: what was given up just now is passed over by then, and a whole second of
/// the schedule more.
const SETTLING: Duration = Duration::from_secs(6);

/// How long before its start a host that is alone knows that nobody claims: another one that began
/// meanwhile claims only what is due after its own beat.
const ALONE_SINCE: TimeDelta = TimeDelta::seconds(1);

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

/// Sweeps until it is dropped. Nothing that was due by `from` is claimed by this host.
///
/// It waits until what was given up last is old enough to be settled, too: an outage is settled by one
/// sweep, so that it brings one late run of a job and no more. A host that is alone at its start waits
/// for nobody.
///
/// # Cancel safety
/// Dropped, a plan may have been carried out without its events.
pub(super) async fn sweep_on(shared: &Shared, from: DateTime<Utc>) {
    if shared.is_alone() {
        let jobs = shared.unsettled.take();
        try_to_sweep(shared, jobs, Some(from - ALONE_SINCE)).await;
    }
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
        try_to_sweep(shared, jobs, None).await;
    }
}

/// Sweeps, and keeps what failed for the next time.
async fn try_to_sweep(shared: &Shared, jobs: BTreeSet<JobName>, until: Option<DateTime<Utc>>) {
    while shared.clock.is_doubted() {
        tokio::time::sleep(DOUBT_STEP).await;
    }
    if let Err(error) = sweep(shared, &jobs, until).await {
        shared.health.failed(&error);
        shared.unsettled.add(jobs);
    }
}

/// Settles what was due by `until`, or what nobody can be claiming any more.
async fn sweep(shared: &Shared, names: &BTreeSet<JobName>, until: Option<DateTime<Utc>>) -> Result<(), StoreError> {
    let plan = shared.plan();
    let now = shared.clock.now();
    let stretch = |job: &Job| until.map_or_else(|| Stretch::of(job, now), |until| Stretch::up_to(job, now, until));
    // Triggers of each host are settled by that host.
    let jobs = names.iter().filter_map(|name| plan.get(name)).filter(|job| shared.site.settles(job));
    let query = |job: &std::sync::Arc<Job>| ProgressQuery {
        job: job.name.clone(),
        target: shared.site.target(job),
        since: stretch(job).rows_since,
    };
    let queries: Vec<_> = jobs.map(query).collect();
    for progress in shared.store.progress(&queries).await? {
        let Some(job) = plan.get(&progress.job).cloned() else { continue };
        let (site, stretch) = (shared.site.clone(), stretch(&job));
        // Odd schedules take a while to count: not on a thread that others need.
        let deciding = tokio::task::spawn_blocking(move || decide(&job, &site, &progress, stretch));
        // A panic was said already, and the next sweep tries again.
        let Ok(Some(mut decided)) = deciding.await else { continue };
        if let Some(job) = plan.get(&decided.job) {
            at_most_one_late(shared, job, &mut decided).await?;
        }
        if shared.store.catch_up(&decided).await? {
            for range in &decided.ranges {
                say_range(&decided.job, range);
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

fn say_range(job: &JobName, range: &TriggerRange) {
    match range.kind {
        RangeKind::Missed => events::triggers_missed(job, range.from, range.to, range.count, range.reason),
        RangeKind::Paused | RangeKind::Blackout => {
            events::triggers_left_out(job, range.from, range.to, range.count, range.reason);
        }
    }
}

/// A job that skips doesn't get a second late run while one still waits: they would run one after
/// the other.
async fn at_most_one_late(shared: &Shared, job: &Job, decided: &mut CatchUpPlan) -> Result<(), StoreError> {
    if job.overlap != Overlap::Skip || job.catch_up != CatchUp::Latest || decided.late.is_empty() {
        return Ok(());
    }
    let waiting = shared.store.waiting(&shared.site.host).await?;
    if waiting.iter().any(|waiting| waiting.trigger.job == job.name && waiting.trigger.target == decided.target) {
        let single = |at| TriggerRange {
            kind: RangeKind::Missed,
            from: at,
            to: at,
            count: 1,
            reason: MissedReason::Superseded,
        };
        decided.ranges.extend(decided.late.drain(..).map(|late| single(late.scheduled_at)));
    }
    Ok(())
}

/// How often a run of this job may be run again after a crash.
pub(super) fn reruns(job: &Job) -> u32 {
    match job.on_crash {
        OnCrash::Record => 0,
        OnCrash::Rerun { max } => max,
    }
}


//! What becomes of triggers that nobody took: `decision` says what, from the `gaps` in the history; the
//! sweep here carries it out.

mod decision;
mod gaps;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Shared;
use super::beat::Heard;
use super::queue::PASSED_OVER;
use crate::clock::BootInstant;
use crate::events;
use crate::job::{CatchUp, Job, JobName, OnCrash, Overlap};
use crate::run::Occasion;
use crate::store::{CatchUpPlan, JobProgress, ProgressQuery, RangeKind, StoreError, TriggerRange, WaitingRun};
use crate::trigger::{MissedReason, Target};
use decision::{Bounds, Settle, decide};

/// The longest pause between two sweeps of all jobs, whatever is known to be given up: that is known in
/// memory only, and by a host that may be gone.
pub(super) const LONGEST_SWEEP_PAUSE: Duration = Duration::from_secs(750);

/// The pause after a sweep of all jobs that could not settle some.
const SWEEP_AGAIN: Duration = Duration::from_secs(60);

/// How many jobs are asked about at once.
const BATCH: usize = 100;

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
/// It waits until what was given up last is old enough to be settled, too: an outage is settled by one
/// sweep, so that it brings one late run of a job and no more. A daemon that is alone at its start
/// settles at once what was over before its first beat.
///
/// # Cancel safety
/// Dropped, a plan may have been carried out without its events.
pub(super) async fn sweep_on(shared: &Shared, heard: Heard) {
    if heard.alone {
        // What is left over has the sweep of everything that a start brings.
        sweep(shared, &all_jobs(shared), Settle::UpTo(heard.at - PASSED_OVER)).await;
    }
    let mut all_at = BootInstant::now() + pause_before_all();
    loop {
        let jobs = tokio::select! {
            biased;
            () = all_at.reached() => None,
            jobs = shared.unsettled.wait() => Some(jobs),
        };
        shared.health.wait_until_reachable().await;
        // What is given up from here on is too young for this sweep, and has the next one.
        tokio::time::sleep(SETTLING).await;
        if let Some(jobs) = jobs {
            shared.unsettled.add(sweep(shared, &jobs, Settle::GivenUp).await);
        } else {
            // Not added: what is only looked at must not be taken for given up.
            let again = sweep(shared, &all_jobs(shared), Settle::Neglected).await;
            let pause = if again.is_empty() { pause_before_all() } else { SWEEP_AGAIN };
            all_at = BootInstant::now() + pause;
        }
    }
}

fn all_jobs(shared: &Shared) -> BTreeSet<JobName> {
    shared.plan().jobs().map(|job| job.name.clone()).collect()
}

fn pause_before_all() -> Duration {
    LONGEST_SWEEP_PAUSE.mul_f64(0.6 + fastrand::f64() * 0.4)
}

/// Sweeps some jobs, a few at a time; gives those that are to be looked at again.
async fn sweep(shared: &Shared, names: &BTreeSet<JobName>, settle: Settle) -> BTreeSet<JobName> {
    while shared.clock.is_doubted() {
        tokio::time::sleep(DOUBT_STEP).await;
    }
    let plan = shared.registered.borrow().clone();
    // Triggers of each host are settled by that host, the others by a host that may run them while
    // there is one.
    let live = shared.live();
    let settles = |job: &&Arc<Job>| {
        shared.site.settles(job) && (shared.site.may_run(job) || !live.iter().any(|peer| peer.site.may_run(job)))
    };
    let jobs: Vec<_> = names.iter().filter_map(|name| plan.get(name)).filter(settles).cloned().collect();
    let mut again = BTreeSet::new();
    for batch in jobs.chunks(BATCH) {
        match sweep_batch(shared, batch, settle).await {
            Ok(moved) => again.extend(moved),
            Err(error) => {
                shared.health.failed(&error);
                again.extend(batch.iter().map(|job| job.name.clone()));
            }
        }
    }
    again
}

/// An error of one job is no reason to leave the others, but a second one speaks of the database. Gives the
/// jobs of which something moved.
async fn sweep_batch(shared: &Shared, jobs: &[Arc<Job>], settle: Settle) -> Result<Vec<JobName>, StoreError> {
    let query = |job: &Arc<Job>| ProgressQuery { job: job.name.clone(), target: shared.site.target(job) };
    let mut waiting = None;
    let mut again = Vec::new();
    let mut failed = None;
    for progress in shared.store.progress(&jobs.iter().map(query).collect::<Vec<_>>()).await? {
        let Some(job) = jobs.iter().find(|job| job.name == progress.job) else { continue };
        match sweep_job(shared, job, progress, settle, &mut waiting).await {
            Ok(true) => {}
            // Some trigger was claimed meanwhile, or another host was first: it will see.
            Ok(false) => again.push(job.name.clone()),
            Err(error) if failed.is_none() => failed = Some(error),
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) => Err(error),
        None => {
            shared.health.answered();
            Ok(again)
        }
    }
}

/// Settles one job. False: something moved, and it is to be looked at again.
async fn sweep_job(
    shared: &Shared,
    job: &Arc<Job>,
    progress: JobProgress,
    settle: Settle,
    waiting: &mut Option<Vec<WaitingRun>>,
) -> Result<bool, StoreError> {
    let (job, site) = (job.clone(), shared.site.clone());
    let bounds = Bounds::of(&job, shared.clock.now(), settle);
    // Odd schedules take a while to count: not on a thread that others need.
    let deciding = tokio::task::spawn_blocking(move || (decide(&job, &site, &progress, bounds), job));
    // A panic was said already, and the next sweep tries again.
    let Ok((Some(mut decided), job)) = deciding.await else { return Ok(true) };
    at_most_one_late(shared, &job, &mut decided, waiting).await?;
    if !shared.store.catch_up(&decided).await? {
        return Ok(false);
    }
    for range in &decided.ranges {
        say_range(&decided.job, range);
        notice(shared, &job, &decided.target, range);
    }
    if !decided.late.is_empty() {
        shared.look_for_waiting.notify_one();
    }
    Ok(true)
}

fn say_range(job: &JobName, range: &TriggerRange) {
    match range.kind {
        RangeKind::Missed => events::triggers_missed(job, range.from, range.to, range.count, range.reason),
        RangeKind::Paused | RangeKind::Blackout => {
            events::triggers_left_out(job, range.from, range.to, range.count, range.reason);
        }
    }
}

/// Tells whom the job tells about triggers that nobody could run, and nothing ran for.
fn notice(shared: &Shared, job: &Arc<Job>, target: &Target, range: &TriggerRange) {
    if range.kind == RangeKind::Missed && range.reason.is_failure() {
        let TriggerRange { from, to, count, reason, .. } = *range;
        shared.runner.notices.take_found(job, target, Occasion::Missed { from, to, count, reason });
    }
}

/// A job that skips doesn't get a second late run while one still waits: they would run one after
/// the other. `waiting` is what waits, once it was asked for.
async fn at_most_one_late(
    shared: &Shared,
    job: &Job,
    decided: &mut CatchUpPlan,
    waiting: &mut Option<Vec<WaitingRun>>,
) -> Result<(), StoreError> {
    if job.overlap != Overlap::Skip || job.catch_up != CatchUp::Latest || decided.late.is_empty() {
        return Ok(());
    }
    let waiting = match waiting {
        Some(waiting) => waiting,
        None => waiting.insert(shared.store.waiting(&shared.site.host).await?),
    };
    if waiting.iter().any(|waiting| waiting.trigger.job == job.name && waiting.trigger.target == decided.target) {
        let single =
            |at| TriggerRange { kind: RangeKind::Missed, from: at, to: at, count: 1, reason: MissedReason::Superseded };
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

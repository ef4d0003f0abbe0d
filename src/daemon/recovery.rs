use std::time::Duration;

use super::Shared;
use crate::events::{self, AfterLoss, RunLabel};
use crate::lock::{FencingToken, Resource};
use crate::run::{EndedRun, Occasion};
use crate::store::{LostRun, OverdueRun};
use crate::trigger::{RunId, RunState, SkipReason, Trigger};

/// Looks for runs that nobody will end, until it is dropped.
///
/// # Cancel safety
/// Dropped, what was recovered is in the tables, but may not be in the log.
pub(super) async fn recover_on(shared: &Shared, interval: Duration) {
    loop {
        tokio::select! {
            // Not all daemons at once.
            () = tokio::time::sleep(interval.mul_f64(0.75 + fastrand::f64() / 2.0)) => {}
            () = shared.look_for_lost.notified() => {}
        }
        // Nobody's time is over by a clock that is not believed.
        if shared.clock.is_doubted() {
            continue;
        }
        match shared.store.recover(shared.clock.expected()).await {
            Ok(recovered) => {
                shared.health.answered();
                recovered.lost.iter().for_each(|lost| shared.lost(lost));
                recovered.overdue.iter().for_each(|overdue| shared.overdue(overdue));
                if recovered.lost.iter().any(|lost| lost.rerun.is_some()) {
                    shared.look_for_waiting.notify_one();
                }
            }
            Err(error) => shared.health.failed(&error),
        }
    }
}

impl Shared {
    /// Says so, and tells whom the job tells: nobody else will.
    fn lost(&self, lost: &LostRun) {
        say_lost(lost);
        if lost.rerun.is_none() {
            let found = Found { run: lost.run, trigger: &lost.trigger, attempt: lost.attempt, lock: &lost.resource };
            let host = Some(lost.host.clone());
            self.notice(found.ended(RunState::Lost, "lease_expired", host, Some(lost.token)));
        }
    }

    fn overdue(&self, overdue: &OverdueRun) {
        say_overdue(overdue);
        if overdue.state == RunState::Missed {
            let OverdueRun { run, trigger, attempt, resource: lock, .. } = overdue;
            let found = Found { run: *run, trigger, attempt: *attempt, lock };
            self.notice(found.ended(RunState::Missed, &overdue.reason, None, None));
        }
    }

    fn notice(&self, ended: EndedRun) {
        if let Some(job) = self.plan().get(&ended.trigger.job) {
            let target = ended.trigger.target.clone();
            self.runner.notices.take_found(job, &target, Occasion::Ended(Box::new(ended)));
        }
    }
}

/// A run that recovery found.
struct Found<'a> {
    run: RunId,
    trigger: &'a Trigger,
    attempt: u32,
    lock: &'a Resource,
}

impl Found<'_> {
    fn ended(&self, state: RunState, reason: &str, host: Option<String>, token: Option<FencingToken>) -> EndedRun {
        EndedRun {
            run: self.run,
            trigger: self.trigger.clone(),
            attempt: self.attempt,
            kind: None,
            state,
            reason: Some(reason.to_owned()),
            exit_code: None,
            signal: None,
            host,
            resource: self.lock.clone(),
            token,
            started_at: None,
            finished_at: None,
            output_tail: None,
        }
    }
}

fn say_lost(lost: &LostRun) {
    let label = RunLabel {
        trigger: &lost.trigger,
        run: lost.run,
        attempt: lost.attempt,
        lock: &lost.resource,
        token: Some(lost.token),
    };
    events::run_lost(label, &lost.host, "lease_expired", lost.rerun.map_or(AfterLoss::NotRerun, AfterLoss::Rerun));
}

fn say_overdue(overdue: &OverdueRun) {
    let label = RunLabel {
        trigger: &overdue.trigger,
        run: overdue.run,
        attempt: overdue.attempt,
        lock: &overdue.resource,
        token: None,
    };
    if overdue.state == RunState::Skipped {
        events::run_skipped(label, SkipReason::WaitTimedOut);
    } else {
        events::run_missed(label, &overdue.reason);
    }
}

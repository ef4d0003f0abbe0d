use std::time::Duration;

use super::Shared;
use crate::events::{self, AfterLoss, RunLabel};
use crate::run::Occasion;
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
            self.notice(&lost.trigger, lost.run);
        }
    }

    fn overdue(&self, overdue: &OverdueRun) {
        say_overdue(overdue);
        if overdue.state == RunState::Missed {
            self.notice(&overdue.trigger, overdue.run);
        }
    }

    fn notice(&self, trigger: &Trigger, run: RunId) {
        if let Some(job) = self.plan().get(&trigger.job) {
            self.runner.notices.take(job, &trigger.target, Occasion::Ended(run));
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

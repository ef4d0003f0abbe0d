use std::time::Duration;

use super::Shared;
use crate::events::{self, AfterLoss, RunLabel};
use crate::store::{LostRun, OverdueRun};
use crate::trigger::{RunState, SkipReason};

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
                recovered.lost.iter().for_each(say_lost);
                recovered.overdue.iter().for_each(say_overdue);
                if recovered.lost.iter().any(|lost| lost.rerun.is_some()) {
                    shared.look_for_waiting.notify_one();
                }
            }
            Err(error) => shared.health.failed(&error),
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

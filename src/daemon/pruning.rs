use std::time::Duration;

use super::Shared;
use crate::job::JobName;
use crate::store::Retention;

/// The time between two steps, and after a step that left something to do.
const INTERVAL: Duration = Duration::from_secs(600);
const SOON: Duration = Duration::from_secs(1);

/// How many runs make a step a large one.
const MUCH: u64 = 1_000;

/// Prunes the history in small steps until it is dropped, if this daemon is the one of the fleet
/// that does.
///
/// # Cancel safety
/// Safe.
pub(super) async fn prune_on(shared: &Shared) {
    let mut after: Option<JobName> = None;
    let mut pause = INTERVAL;
    loop {
        tokio::time::sleep(pause.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
        if !shared.is_first() {
            (after, pause) = (None, INTERVAL);
            continue;
        }
        let retention = Retention {
            keep: shared.options.keep,
            keep_runs: shared.options.keep_runs,
            horizon: shared.plan().horizon(),
            after: after.take(),
        };
        pause = INTERVAL;
        match shared.store.prune(&retention).await {
            Ok(pruned) => {
                if pruned.runs >= MUCH || pruned.next.is_some() {
                    pause = SOON;
                }
                after = pruned.next;
            }
            Err(error) => shared.health.failed(&error),
        }
    }
}

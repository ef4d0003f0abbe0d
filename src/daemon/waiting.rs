//! Runs that wait for a host: because their lock was held, they were given back, or they are to be
//! caught up or run again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use crate::run::{Assignment, Stop};
use crate::store::{Claimant, StoreError, Taken, WaitingRun};
use crate::trigger::RunId;

/// How often the tables are asked. A run that ends here asks at once.
const INTERVAL: Duration = Duration::from_secs(1);

/// Attempts whose answer didn't come: asked again under the same owner.
type Unanswered = HashMap<RunId, Claimant>;

/// Takes waiting runs until the daemon stops.
///
/// # Cancel safety
/// Not to be dropped while the daemon goes on: a run may have been taken.
pub(super) async fn take_on(shared: Arc<Shared>) {
    let mut unanswered = Unanswered::new();
    let mut stop = shared.stop.subscribe();
    while *stop.borrow() == Stop::No {
        match look(&shared, &mut unanswered).await {
            Ok(()) => shared.health.answered(),
            Err(error) => shared.health.failed(&error),
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shared.look_for_waiting.notified() => {}
            _ = stop.changed() => {}
        }
    }
}

async fn look(shared: &Arc<Shared>, unanswered: &mut Unanswered) -> Result<(), StoreError> {
    let waiting = shared.store.waiting().await?;
    unanswered.retain(|run, _| waiting.iter().any(|waiting| waiting.run == *run));
    for waiting in waiting {
        take(shared, unanswered, waiting).await?;
    }
    Ok(())
}

async fn take(shared: &Arc<Shared>, unanswered: &mut Unanswered, waiting: WaitingRun) -> Result<(), StoreError> {
    let Some(job) = shared.plan().get(&waiting.trigger.job).cloned() else { return Ok(()) };
    // Full: another host may have room, or this one later.
    let Ok(permit) = shared.room.clone().try_acquire_owned() else { return Ok(()) };
    let mut claimant = unanswered.remove(&waiting.run).unwrap_or_else(|| shared.claimant(&job));
    claimant.expected_now = shared.clock.expected();
    match shared.store.take(waiting.run, &claimant).await {
        Ok(Taken::Granted(grant)) => {
            let assignment = Arc::new(Assignment {
                run: waiting.run,
                job,
                trigger: waiting.trigger,
                attempt: waiting.attempt,
                kind: waiting.kind,
                owner: claimant.owner,
                resource: claimant.resource,
            });
            let shared = shared.clone();
            shared.tasks.clone().spawn(async move { shared.run(assignment, grant, permit).await });
            Ok(())
        }
        Ok(Taken::Held(_) | Taken::NotNow | Taken::Gone) => Ok(()),
        Err(error) => {
            if error.is_unknown() {
                unanswered.insert(waiting.run, claimant);
            }
            Err(error)
        }
    }
}

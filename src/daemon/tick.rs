use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Shared;
use super::attend::attend;
use super::queue::Queue;
use crate::run::Stop;

/// The longest sleep: the clock may step, the machine may be suspended.
const SLICE: Duration = Duration::from_secs(1);

/// Hands triggers out as their instants come, until the daemon stops. `from`: what lies before is
/// somebody else's, or catch-up's.
///
/// # Cancel safety
/// Safe: a trigger is handed out or it is not.
pub(super) async fn tick_on(shared: &Arc<Shared>, from: DateTime<Utc>) {
    let mut plans = shared.plan.subscribe();
    let mut stop = shared.stop.subscribe();
    let plan = plans.borrow_and_update().clone();
    let mut queue = Queue::fill(&plan, from);
    let mut handed_out = from;
    while *stop.borrow() == Stop::No {
        let now = shared.clock.now();
        let found = queue.take_due(now);
        handed_out = handed_out.max(now);
        shared.queued.send_replace(queue.len());
        if !found.due.is_empty() {
            attend(shared, found.due);
        }
        if !found.passed_over.is_empty() {
            shared.unsettled.add(found.passed_over.iter().map(|job| job.name.clone()));
        }
        let until = queue.next().map_or(SLICE, |next| (next - shared.clock.now()).to_std().unwrap_or_default());
        tokio::select! {
            () = tokio::time::sleep(until.min(SLICE)) => {}
            _ = stop.changed() => {}
            Ok(()) = plans.changed() => {
                // Every instant up to here was handed out: a reload fires nothing at once.
                let plan = plans.borrow_and_update().clone();
                queue = Queue::fill(&plan, handed_out);
            }
        }
    }
}

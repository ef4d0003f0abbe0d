use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Shared;
use super::attend::attend;
use super::ticker::Ticker;
use crate::run::Stop;

/// The longest sleep: the clock may step, the machine may be suspended.
const SLICE: Duration = Duration::from_secs(1);

/// Hands triggers out as their time comes, until the daemon stops. `from`: what is due before is
/// somebody else's, or catch-up's.
///
/// # Cancel safety
/// Safe: a trigger is handed out or it is not.
pub(super) async fn tick_on(shared: &Arc<Shared>, from: DateTime<Utc>) {
    let mut plans = shared.plan.subscribe();
    let mut stop = shared.stop.subscribe();
    let jobs = plans.borrow_and_update().jobs_on(&shared.site);
    let mut ticker = Ticker::new(jobs, from);
    while *stop.borrow() == Stop::No {
        let found = ticker.look(shared.clock.now());
        shared.queued.send_replace(ticker.queued());
        if !found.due.is_empty() {
            attend(shared, found.due);
        }
        if !found.passed_over.is_empty() {
            shared.unsettled.add(found.passed_over.iter().map(|job| job.name.clone()));
        }
        let until = ticker.until_next(shared.clock.now()).map_or(SLICE, |until| until.to_std().unwrap_or_default());
        tokio::select! {
            () = tokio::time::sleep(until.min(SLICE)) => {}
            _ = stop.changed() => {}
            Ok(()) = plans.changed() => {
                let jobs = plans.borrow_and_update().jobs_on(&shared.site);
                ticker.replan(jobs);
            }
        }
    }
}

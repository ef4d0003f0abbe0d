//! What somebody asks of the runs here.
//!
//! A poll of its own, not a part of the one for waiting runs: that one pauses while this daemon drains or can't
//! start anything, and stands still behind each run that it takes; this one has to be on time just then, and
//! costs nothing while nothing runs here.

use std::time::Duration;

use super::Shared;
use crate::events;
use crate::store::OpenCancel;
use crate::trigger::RequestOutcome;

/// The time between two looks: with the look itself a request is seen within two seconds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looks for requests while any run is under way here, until it is dropped.
///
/// # Cancel safety
/// Safe: a run that was told and whose request was not answered is told again, which does nothing.
pub(super) async fn heed_on(shared: &Shared) {
    loop {
        shared.runner.stops.any().await;
        tokio::time::sleep(INTERVAL).await;
        match shared.store.open_cancels(shared.instance).await {
            Ok(asked) => {
                shared.health.answered();
                tell(shared, asked).await;
            }
            Err(error) => shared.health.failed(&error),
        }
    }
}

/// Tells all runs first: no answer is worth a wait of the next.
async fn tell(shared: &Shared, asked: Vec<OpenCancel>) {
    let mut told = Vec::new();
    for open in asked {
        // One that is not known here yet, or no more, is for the next look.
        if shared.runner.stops.ask(open.run, open.asked.clone()) {
            events::run_stop_asked(open.run, &open.asked.in_words());
            told.push(open.request);
        }
    }
    for request in told {
        if let Err(error) = shared.store.answer_request(request, shared.instance, RequestOutcome::Told).await {
            return shared.health.failed(&error);
        }
    }
}

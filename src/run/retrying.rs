//! Attempts after a failure, under the same lease.

use std::sync::Arc;
use std::time::Duration;

use super::assignment::Assignment;
use super::attempt::{Attempted, without_process};
use super::ending::StopCause;
use super::stops::StopTicket;
use super::supervise::{Runner, Stop, Tenure};
use crate::events;
use crate::job::Retries;
use crate::lease::LeaseState;
use crate::store::{Ending, Retried};
use crate::trigger::{RunId, RunState};

/// The pause between two tries to have a retry recorded.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// What follows an attempt.
pub(super) enum Next {
    /// This one, after a pause.
    Attempt(Arc<Assignment>),
    /// Nothing.
    End,
    /// The database has not said whether the next attempt is ours, and the lease is over.
    Unknown,
}

impl Runner {
    /// Records a failure and claims the next attempt, if the job has one left, the daemon lets it, and the lease
    /// is still ours.
    pub(super) async fn next(&self, current: &Arc<Assignment>, ending: &Ending, tenure: &Tenure) -> Next {
        if ending.state != RunState::Failed
            || current.retries >= current.job.retries.most
            || *self.stop.borrow() != Stop::No
        {
            return Next::End;
        }
        let (key, run) = (current.key(tenure.token), RunId::generate());
        let lease = tenure.lease.watch();
        let mut maybe_done = false;
        loop {
            let term_at = match &*lease.borrow() {
                LeaseState::Held(deadline) => deadline.term_at,
                LeaseState::Lost(..) if maybe_done => return Next::Unknown,
                LeaseState::Lost(..) => return Next::End,
            };
            if term_at.has_passed() {
                return if maybe_done { Next::Unknown } else { Next::End };
            }
            match self.store.retry(&key, ending, run).await {
                Ok(Retried::Claimed { attempt }) => return Next::Attempt(Arc::new(current.again(run, attempt))),
                Ok(Retried::Cancelled | Retried::Gone) => return Next::End,
                Err(error) => {
                    maybe_done |= error.is_unknown();
                    tracing::debug!(run = %key.run, "the next attempt is not claimed yet: {error}");
                    tokio::time::sleep(ASK_AGAIN).await;
                }
            }
        }
    }

    /// Waits until the next attempt is to start. If it is not to start any more: what became of it.
    pub(super) async fn pause(
        &self,
        next: &Arc<Assignment>,
        tenure: &Tenure,
        ticket: &mut StopTicket,
    ) -> Option<Attempted> {
        let pause = pause_before(&next.job.retries, next.retries).mul_f64(0.75 + fastrand::f64() / 2.0);
        events::run_retrying(next.label(Some(tenure.token)), pause);
        let mut stop = self.stop.clone();
        let mut lease = tenure.lease.watch();
        let over = async {
            loop {
                let state = lease.borrow_and_update().clone();
                match state {
                    LeaseState::Lost(loss, _) => return StopCause::LeaseLost(loss),
                    LeaseState::Held(deadline) => tokio::select! {
                        () = deadline.term_at.reached() => return StopCause::LeaseEnding,
                        // An error means that the keeper is gone; the deadline stands.
                        Ok(()) = lease.changed() => {}
                    },
                }
            }
        };
        let cause = tokio::select! {
            biased;
            // An error means that the daemon is gone.
            _ = stop.wait_for(|stop| *stop != Stop::No) => return Some(Attempted::NotStarted("draining".to_owned())),
            asked = ticket.asked() => StopCause::Asked(asked),
            cause = over => cause,
            () = tokio::time::sleep(pause) => return None,
        };
        let reason = cause.reason().into_owned();
        Some(Attempted::Ended(without_process(cause.state(), reason, self.clock.now())))
    }
}

/// The pause before this retry, the first being 1: it doubles up to the longest.
fn pause_before(retries: &Retries, number: u32) -> Duration {
    let doubled = retries.delay.checked_mul(1_u32.checked_shl(number.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.unwrap_or(retries.longest_delay).min(retries.longest_delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_the_longest() {
        let second = Duration::from_secs(1);
        let retries = Retries { most: 100, delay: 10 * second, longest_delay: 60 * second };
        let pauses: Vec<_> = [1, 2, 3, 4, 5, 40, 100].map(|number| pause_before(&retries, number).as_secs()).into();
        assert_eq!(pauses, [10, 20, 40, 60, 60, 60, 60]);
    }
}

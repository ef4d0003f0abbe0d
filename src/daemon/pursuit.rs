//! One claim, sent until there is an answer.

use std::time::Duration;

use super::Shared;
use super::queue::{Due, PASSED_OVER};
use crate::clock::BootInstant;
use crate::run::Stop;
use crate::store::{Claim, Claimed};

/// The pauses between claims while the database is away.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long after it was sent a claim may still be granted: what comes to the database later than
/// its caller waits for an answer is refused there, and what came in time waits for locks for less
/// than the rest.
const IN_FLIGHT: Duration = Duration::from_secs(10);

/// A claim on its way, over all of its tries. The same claim each time, so an earlier try that was
/// granted is found again.
pub(super) struct Pursuit {
    pub(super) claim: Claim,
    begun: BootInstant,
    /// When it was last sent without an answer; `None` while none of the tries can have been granted.
    unknown: Option<BootInstant>,
    pause: Duration,
}

/// What came of a claim.
pub(super) enum Pursued {
    /// An answer.
    Answered(Claimed),
    /// Nobody was granted it by this host, and it is not tried any more: catch-up decides.
    GivenUp,
}

impl Pursuit {
    pub(super) fn new(claim: Claim) -> Self {
        Self { claim, begun: BootInstant::now(), unknown: None, pause: FIRST_PAUSE }
    }

    /// Sends the claim until there is an answer. Given up when `start_deadline` has passed or a later
    /// trigger of the job has come, and when the daemon stops; unless an earlier try may have been
    /// granted: then what became of it is read, and the claim is only sent again if somebody has it.
    pub(super) async fn pursue(&mut self, shared: &Shared, due: &Due) -> Pursued {
        loop {
            if shared.stop_asked() >= Stop::Terminate {
                return Pursued::GivenUp;
            }
            let is_wanted = !shared.is_stopping() && !self.is_passed_over(shared, due);
            let may_send = match self.unknown {
                _ if is_wanted => true,
                Some(sent) if self.is_awaited(shared, sent) => match self.read_back(shared, due, sent).await {
                    Some(true) => true,
                    Some(false) => return Pursued::GivenUp,
                    None => false,
                },
                _ => return Pursued::GivenUp,
            };
            if may_send && let Some(answer) = self.send(shared).await {
                return Pursued::Answered(answer);
            }
            self.rest(shared).await;
        }
    }

    /// Whether it matters what became of a try: a daemon that stops waits for no answer that comes
    /// when the lock would be over anyway.
    fn is_awaited(&self, shared: &Shared, sent: BootInstant) -> bool {
        !shared.is_stopping() || BootInstant::now().since(sent) < self.claim.claimant.ttl.get()
    }

    /// One try; `None` if it brought no answer.
    async fn send(&mut self, shared: &Shared) -> Option<Claimed> {
        self.claim.claimant.expected_now = shared.clock.expected();
        let sent = BootInstant::now();
        match shared.store.claim(&self.claim).await {
            Ok(answer) => {
                shared.health.answered();
                Some(answer)
            }
            Err(error) => {
                shared.health.failed(&error);
                if error.is_unknown() {
                    self.unknown = Some(sent);
                }
                None
            }
        }
    }

    /// Whether another try is not worth it: while the database is away only the newest trigger of a
    /// job is tried again, so that its return brings no burst.
    fn is_passed_over(&self, shared: &Shared, due: &Due) -> bool {
        let late = BootInstant::now().since(self.begun) > due.job.start_deadline;
        let old = !shared.health.is_reachable() || shared.clock.now() - due.due_at() > PASSED_OVER;
        late || old && shared.gates.of(&due.job.name).is_superseded(due.at)
    }

    /// Whether somebody, this host perhaps, has been granted the trigger; `None` if that is not known
    /// yet.
    async fn read_back(&self, shared: &Shared, due: &Due, sent: BootInstant) -> Option<bool> {
        let surely_over = BootInstant::now().since(sent) > IN_FLIGHT;
        let trigger = shared.site.trigger(&due.job, due.at);
        match shared.store.unclaimed(&[trigger]).await {
            Ok(unclaimed) => {
                shared.health.answered();
                let is_claimed = unclaimed.is_empty();
                (is_claimed || surely_over).then_some(is_claimed)
            }
            Err(error) => {
                shared.health.failed(&error);
                None
            }
        }
    }

    async fn rest(&mut self, shared: &Shared) {
        let pause = self.pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let mut stop = shared.stop.subscribe();
        let asked = *stop.borrow_and_update();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // The sender is `shared`'s own, so the wait can't fail.
            _ = stop.wait_for(|stop| *stop > asked) => {}
        }
    }
}

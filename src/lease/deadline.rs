use std::time::Duration;

use crate::clock::BootInstant;
use crate::lock::LeaseTiming;
use crate::store::Loss;

/// Until when a holder may act, on this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The job is told to stop.
    pub term_at: BootInstant,
    /// The job is killed, without grace.
    pub kill_at: BootInstant,
}

/// What is known of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Ours until the deadline.
    Held(Deadline),
    /// Gone for good; the deadline that stood when it went.
    Lost(Loss, Deadline),
}

impl Deadline {
    /// The deadline of a grant that ends at `valid_until` on this host's clock.
    pub fn of(valid_until: BootInstant, timing: &LeaseTiming) -> Self {
        let kill_at = valid_until - timing.slack();
        Self { term_at: kill_at - timing.kill_grace(), kill_at }
    }

    /// When a job that is told to stop now is killed: after its grace, but never past `kill_at`.
    pub fn kill_after(&self, now: BootInstant, grace: Duration) -> BootInstant {
        self.kill_at.min(now + grace)
    }
}

impl LeaseState {
    /// The deadline, whatever the state.
    pub fn deadline(&self) -> Deadline {
        match self {
            Self::Held(deadline) | Self::Lost(_, deadline) => *deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn term_and_kill_both_lie_before_the_lock_can_be_taken() {
        let timing = LeaseTiming::new(secs(60), secs(15), secs(10)).expect("meets the rule");
        let sent = BootInstant::now();
        let deadline = Deadline::of(sent + secs(60), &timing);
        assert_eq!(deadline.kill_at, sent + secs(55));
        assert_eq!(deadline.term_at, sent + secs(45));
    }

    #[test]
    fn no_grace_reaches_past_the_kill() {
        let timing = LeaseTiming::new(secs(60), secs(15), secs(10)).expect("meets the rule");
        let sent = BootInstant::now();
        let deadline = Deadline::of(sent + secs(60), &timing);
        assert_eq!(deadline.kill_after(sent, secs(10)), sent + secs(10));
        assert_eq!(deadline.kill_after(sent + secs(50), secs(10)), sent + secs(55));
    }
}

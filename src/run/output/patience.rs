use std::time::Duration;

use tokio::time::Instant;

/// How long a job may be held up by the log at once. More: fewer lines of a burst are dropped, and a log
/// that hangs costs each job as much.
const MOST: Duration = Duration::from_secs(2);

/// Which part of its time it may be held up for good: a tenth.
const PART: u32 = 10;

/// How long a job may still be held up by the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    left: Duration,
    /// When `left` was right.
    at: Instant,
}

impl Patience {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: MOST, at: now }
    }

    /// The log has held the job up, from an instant to another.
    pub(super) fn spend(&mut self, from: Instant, to: Instant) {
        let regained = to.saturating_duration_since(self.at) / PART;
        self.at = to;
        self.left = (self.left + regained).min(MOST).saturating_sub(to.saturating_duration_since(from));
    }

    /// Whether there is none left.
    pub(super) fn is_spent(&self) -> bool {
        self.left.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_two_seconds_and_then_a_tenth_of_the_time() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut patience = Patience::new(start);
        patience.spend(at(0), at(1_900));
        assert!(!patience.is_spent());
        patience.spend(at(1_900), at(2_300));
        assert!(patience.is_spent(), "2.3 s of which it has regained 0.23");
        patience.spend(at(3_300), at(3_390));
        assert!(!patience.is_spent());
        patience.spend(at(3_390), at(3_420));
        assert!(patience.is_spent());
        patience.spend(at(1_000_000), at(1_001_999));
        assert!(!patience.is_spent(), "it has regained all of it, and no more");
        patience.spend(at(1_001_999), at(1_002_300));
        assert!(patience.is_spent());
    }
}

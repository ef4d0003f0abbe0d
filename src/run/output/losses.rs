use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How often it is told what was dropped, at most.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// So much output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// What a sink has been given and has not taken: what it still works on, and, while there is a gap, what
/// it dropped. If it is interrupted, all of that is dropped.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) pending: Amount,
    /// Since something was dropped that is not told yet: when it will be.
    gap_until: Option<Instant>,
}

impl Amount {
    /// Of bytes as they are; the lines are those that end in them.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        Self { lines: lines as u64, bytes: bytes.len() as u64 }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.bytes += other.bytes;
    }

    pub(super) fn take_off(&mut self, other: Self) {
        self.lines = self.lines.saturating_sub(other.lines);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

impl Losses {
    /// What is pending is dropped. It will be told in a while, with what is dropped until then.
    pub(super) fn drop_pending(&mut self) {
        self.gap_until.get_or_insert_with(|| Instant::now() + TELL_EVERY);
    }

    /// Whether there is a gap that has not been told.
    pub(super) fn has_gap(&self) -> bool {
        self.gap_until.is_some()
    }

    /// Whether it is time to tell.
    pub(super) fn is_due(&self) -> bool {
        self.gap_until.is_some_and(|until| until <= Instant::now())
    }

    /// Waits until it is time to tell; for ever, without a gap.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn due(&self) {
        match self.gap_until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// What is to be told, if anything. The gap is over.
    pub(super) fn take(&mut self) -> Option<Amount> {
        self.gap_until = None;
        let lost = std::mem::take(&mut self.pending);
        (lost.bytes > 0).then_some(lost)
    }
}

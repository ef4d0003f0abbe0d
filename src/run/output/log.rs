use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::lines::Block;
use super::losses::Losses;
use super::patience::Patience;
use super::printable::printable;
use super::sink::Source;
use crate::events::{self, OutputDropped};
use crate::telemetry;

/// How many lines are logged before other tasks of this thread have their turn, the heartbeat for one:
/// a fraction of a millisecond.
const AT_ONCE: usize = 64;

/// How often the log is asked whether it has room again.
const ASK_AGAIN: Duration = Duration::from_millis(2);

/// Sends blocks to the log, line by line.
#[derive(Debug)]
pub(in crate::run) struct LogSink {
    pub(super) source: Source,
    pub(super) losses: Losses,
    patience: Patience,
}

impl LogSink {
    pub(super) fn new(source: Source) -> Self {
        Self { source, losses: Losses::default(), patience: Patience::new(Instant::now()) }
    }

    /// Logs a block as far as the patience goes, and drops the rest.
    ///
    /// # Cancel safety
    /// What has not been logged stays pending.
    pub(super) async fn take(&mut self, stream: &'static str, block: Block<'_>) {
        if !events::run_output_is_wanted() {
            return;
        }
        if self.losses.is_due() {
            self.tell();
        }
        self.losses.pending.add(block.amount());
        if !self.losses.has_gap() && !self.log(stream, block).await {
            self.losses.drop_pending();
        }
    }

    /// Says what was dropped.
    pub(super) fn tell(&mut self) {
        if let Some(lost) = self.losses.take() {
            events::run_output_dropped(self.source.label(), lost.lines, lost.bytes, OutputDropped::LogIsBehind);
        }
    }

    /// Whether the patience was enough for the whole block.
    async fn log(&mut self, stream: &'static str, block: Block<'_>) -> bool {
        let mut since = Instant::now();
        for (n, line) in block.lines().enumerate() {
            if n % AT_ONCE == AT_ONCE - 1 {
                since = self.spend(since);
                yield_now().await;
            }
            while !telemetry::output_has_room() && !self.patience.is_spent() {
                sleep(ASK_AGAIN).await;
                since = self.spend(since);
            }
            if self.patience.is_spent() {
                return false;
            }
            events::run_output(self.source.label(), stream, &printable(line.bytes), line.is_cut);
            self.losses.pending.take_off(line.amount);
        }
        self.spend(since);
        true
    }

    /// Counts the time since an instant; now is the next one.
    fn spend(&mut self, since: Instant) -> Instant {
        let now = Instant::now();
        self.patience.spend(since, now);
        now
    }
}

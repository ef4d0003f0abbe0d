//! Which triggers to hand out at an instant: pure, whatever the clock does between two looks.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::queue::{Found, PASSED_OVER, Queue};
use crate::job::Job;

/// The queue, and up to where it was handed out.
///
/// The clock may step between two looks. Forwards, or over a suspend: what was passed over is not
/// handed out but named, for catch-up. Backwards: the triggers of the time that comes again are handed
/// out again, and those that ran have their row; a job never stands still until the clock is back
/// where it was.
#[derive(Debug)]
pub(super) struct Ticker {
    jobs: Vec<Arc<Job>>,
    queue: Queue,
    /// Every trigger that was due by then was handed out or passed over.
    handed_out: DateTime<Utc>,
}

impl Ticker {
    /// A ticker for these jobs. What is due by `from` is somebody else's, or catch-up's.
    pub(super) fn new(jobs: Vec<Arc<Job>>, from: DateTime<Utc>) -> Self {
        Self { queue: Queue::fill(jobs.clone(), from), jobs, handed_out: from }
    }

    /// Takes other jobs on. What is due by now was handed out: a reload fires nothing at once.
    pub(super) fn replan(&mut self, jobs: Vec<Arc<Job>>) {
        *self = Self::new(jobs, self.handed_out);
    }

    /// What has become due since the last look.
    pub(super) fn look(&mut self, now: DateTime<Utc>) -> Found {
        if self.handed_out - now > PASSED_OVER {
            *self = Self::new(std::mem::take(&mut self.jobs), now);
        }
        let found = self.queue.take_due(now);
        self.handed_out = self.handed_out.max(now);
        found
    }

    /// How long to sleep, at most until the next trigger.
    pub(super) fn until_next(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        self.queue.next().map(|next| next - now)
    }

    /// How many jobs have a trigger to come.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests;

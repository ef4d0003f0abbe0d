use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::plan::Plan;
use crate::job::Job;

/// A trigger that is this late when it is found was passed over, not due: the process or the
/// machine stood still, or the clock jumped. It goes through catch-up.
pub(super) const PASSED_OVER: TimeDelta = TimeDelta::seconds(5);

/// The next instant of each job, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
}

/// A trigger whose instant has come.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) job: Arc<Job>,
    pub(super) at: DateTime<Utc>,
}

/// What a look at the queue found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Due now, oldest first.
    pub(super) due: Vec<Due>,
    /// Jobs with triggers that were passed over.
    pub(super) passed_over: Vec<Arc<Job>>,
}

#[derive(Debug)]
struct Entry {
    at: DateTime<Utc>,
    job: Arc<Job>,
}

impl Queue {
    /// All jobs of a plan, each at its first instant later than `after`.
    pub(super) fn fill(plan: &Plan, after: DateTime<Utc>) -> Self {
        let mut queue = Self::default();
        for job in plan.jobs() {
            queue.push(job.clone(), after);
        }
        queue
    }

    /// When to look again; `None` if nothing will ever be due.
    pub(super) fn next(&self) -> Option<DateTime<Utc>> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// How many jobs have an instant to come.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Takes out everything up to `now`. Bounded, however long ago the last look was: what was
    /// passed over is not iterated.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>) -> Found {
        let mut found = Found::default();
        while let Some(Reverse(entry)) = self.heap.peek()
            && entry.at <= now
        {
            let Some(Reverse(Entry { at, job })) = self.heap.pop() else { break };
            if now - at > PASSED_OVER {
                self.push(job.clone(), now - PASSED_OVER);
                found.passed_over.push(job);
            } else {
                self.push(job.clone(), at);
                found.due.push(Due { job, at });
            }
        }
        found
    }

    fn push(&mut self, job: Arc<Job>, after: DateTime<Utc>) {
        if let Some(at) = job.schedule.next_after(after) {
            self.heap.push(Reverse(Entry { at, job }));
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at).then_with(|| self.job.name.cmp(&other.job.name))
    }
}

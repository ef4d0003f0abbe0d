use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::job::Job;

/// A trigger that is this late when it is found was passed over, not due: the process or the
/// machine stood still, or the clock jumped. It goes through catch-up.
pub(super) const PASSED_OVER: TimeDelta = TimeDelta::seconds(5);

/// The next trigger of each job, in the order in which they are due.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
}

/// A trigger whose time has come.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) job: Arc<Job>,
    /// Its instant: its name, and when it is due unless its job starts later.
    pub(super) at: DateTime<Utc>,
}

impl Due {
    /// When it was to be handed out.
    pub(super) fn due_at(&self) -> DateTime<Utc> {
        self.at + start_delay(&self.job)
    }
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
    due: DateTime<Utc>,
    at: DateTime<Utc>,
    job: Arc<Job>,
}

impl Queue {
    /// These jobs, each at its first trigger that is due later than `after`.
    pub(super) fn fill(jobs: impl IntoIterator<Item = Arc<Job>>, after: DateTime<Utc>) -> Self {
        let entries = jobs.into_iter().filter_map(|job| Entry::first_due_after(job, after).map(Reverse));
        Self { heap: entries.collect() }
    }

    /// When to look again; `None` if nothing will ever be due.
    pub(super) fn next(&self) -> Option<DateTime<Utc>> {
        self.heap.peek().map(|Reverse(entry)| entry.due)
    }

    /// How many jobs have a trigger to come.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Takes out everything that is due by `now`. Bounded, however long ago the last look was: of a job
    /// that was passed over only the newest trigger is due, and only if it is young enough, so that
    /// nothing comes in a burst.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>) -> Found {
        let mut found = Found::default();
        while let Some(Reverse(entry)) = self.heap.peek()
            && entry.due <= now
        {
            let Some(Reverse(Entry { due, at, job })) = self.heap.pop() else { break };
            let mut newest = Some(at);
            let mut next = Entry::first_due_after(job.clone(), due);
            if now - due > PASSED_OVER {
                newest = None;
                next = Entry::first_due_after(job.clone(), now - PASSED_OVER);
                while let Some(entry) = next.take_if(|entry| entry.due <= now) {
                    newest = Some(entry.at);
                    next = Entry::first_due_after(job.clone(), entry.due);
                }
                found.passed_over.push(job.clone());
            }
            found.due.extend(newest.map(|at| Due { job, at }));
            self.heap.extend(next.map(Reverse));
        }
        found
    }
}

impl Entry {
    fn first_due_after(job: Arc<Job>, after: DateTime<Utc>) -> Option<Self> {
        let delay = start_delay(&job);
        let at = job.schedule.next_after(after - delay)?;
        Some(Self { due: at + delay, at, job })
    }
}

/// How long after its instant a trigger of this job is due.
pub(super) fn start_delay(job: &Job) -> TimeDelta {
    TimeDelta::from_std(job.start_delay).unwrap_or(TimeDelta::zero())
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
        self.due.cmp(&other.due).then_with(|| self.job.name.cmp(&other.job.name))
    }
}

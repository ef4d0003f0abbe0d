//! Whether every trigger is accounted for: by a run that is over, or in a range.

use chrono::{DateTime, TimeDelta, Utc};

use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually_some};

/// Waits until each full second from the first run or missed trigger of a job up to `to` has a run that is over, or
/// is counted in a range of missed triggers, and returns the seconds without a run.
#[track_caller]
pub fn wait_until_accounted(database: &Database, job: &str, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let account = || Account::of(database, job, to);
    let what = std::fmt::from_fn(|f| write!(f, "all triggers of {job} are accounted for: {:#?}", account()));
    eventually_some(what, PATIENCE, || Some(account()).filter(Account::is_settled)).without_run
}

#[derive(Debug)]
struct Account {
    open: Vec<Run>,
    without_run: Vec<DateTime<Utc>>,
    /// Those of `without_run` that no range covers.
    lost: Vec<DateTime<Utc>>,
    /// How many triggers the ranges say they count.
    counted: i64,
}

impl Account {
    fn of(database: &Database, job: &str, to: DateTime<Utc>) -> Self {
        let runs: Vec<_> = database.runs_of(job).into_iter().filter(|run| run.scheduled_at <= to).collect();
        let ranges = database.missed_ranges(job);
        // What was missed right after the start lies before the first run.
        let first_run = runs.first().map_or(to, |run| run.scheduled_at);
        let first = ranges.iter().map(|range| range.from).fold(first_run, std::cmp::min);
        let seconds = std::iter::successors(Some(first), |at| Some(*at + TimeDelta::seconds(1)));
        let has_run = |at: &DateTime<Utc>| runs.iter().any(|run| run.scheduled_at == *at);
        let without_run: Vec<_> = seconds.take_while(|at| *at <= to).filter(|at| !has_run(at)).collect();
        let is_covered = |at: &DateTime<Utc>| ranges.iter().any(|range| range.from <= *at && *at <= range.to);
        let lost = without_run.iter().filter(|at| !is_covered(at)).copied().collect();
        let open = runs.into_iter().filter(|run| !run.is_final()).collect();
        Self { open, lost, counted: ranges.iter().map(|range| range.count).sum(), without_run }
    }

    fn is_settled(&self) -> bool {
        self.open.is_empty() && self.lost.is_empty() && self.counted == self.without_run.len() as i64
    }
}

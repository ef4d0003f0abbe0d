//! Lines for the shell that most tests here use, and what to wait for of them.

use std::fs;
use std::time::Duration;

use crate::support::fleet::Fleet;
use crate::support::ledger::{Entry, Mark};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually_some};

/// A job that is due every second. Its first run goes on until [`let_go`], and ends by SIGTERM; the
/// others end at once.
///
/// So nothing depends on when the daemons are up, and the lock is asked for every second.
pub fn first_run_holds(fleet: &Fleet, job: &str) -> String {
    first_run(fleet, job, "until test -e go; do mark beat; sleep 0.02; done")
}

/// As [`first_run_holds`], but the first run goes on for ever, and only notes SIGTERM.
pub fn first_run_endures(fleet: &Fleet, job: &str) -> String {
    first_run(fleet, job, "endure")
}

/// A job that marks its start and its end, and does nothing between.
pub fn short(fleet: &Fleet) -> String {
    fleet.ledger().job(Duration::ZERO)
}

fn first_run(fleet: &Fleet, job: &str, does: &str) -> String {
    format!("{}; mark start; if mkdir {job}.first 2>/dev/null; then {does}; fi; mark end", fleet.ledger().prelude())
}

/// Lets all first runs end.
pub fn let_go(fleet: &Fleet) {
    fs::write(fleet.folder().join("go"), "").unwrap();
}

/// Waits until a job's first run is under way: its first beat.
#[track_caller]
pub fn wait_for_beat(fleet: &Fleet, job: &str) -> Entry {
    let first = || fleet.ledger().read().marked(Mark::Beat).find(|entry| entry.job == job).cloned();
    eventually_some(format!("the first run of {job} beats"), PATIENCE, first)
}

/// The row of the run that wrote an entry.
#[track_caller]
pub fn run_of(database: &Database, entry: &Entry) -> Run {
    let runs = database.runs();
    runs.into_iter().find(|run| run.id == entry.run).unwrap_or_else(|| panic!("no row for {entry:?}"))
}

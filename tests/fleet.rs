//! Three daemons, twenty jobs, sixty seconds: every trigger runs once, and nothing overlaps.
//!
//! A test crate of its own, so that nothing else runs beside it.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use support::fleet::Fleet;
use support::ledger::Entries;
use support::schedule::{EVERY_SECOND, Schedule};
use support::tables::{Database, Run};
use support::wait::{PATIENCE, eventually};

const HOSTS: [&str; 3] = ["a", "b", "c"];
const JOBS: usize = 20;
const SECONDS: usize = 60;
const TRIGGERS: usize = JOBS * SECONDS;

/// One at a time: each has the machine for itself.
static MACHINE: Mutex<()> = Mutex::new(());

/// The triggers that count: those of `SECONDS` full seconds.
#[derive(Clone, Copy)]
struct Window {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
}

#[test]
fn three_daemons_on_postgresql_run_each_of_1200_triggers_once() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let fleet = Fleet::new();
    tick_for_a_minute(fleet, &Database::postgres());
}

#[test]
fn three_daemons_on_sqlite_run_each_of_1200_triggers_once() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    tick_for_a_minute(fleet, &database);
}

fn tick_for_a_minute(mut fleet: Fleet, database: &Database) {
    let line = fleet.ledger().job(Duration::from_millis(20));
    // A job of 20 ms may still take more than its second on a machine that is busy with others: its
    // next trigger waits then.
    let schedule = (0..JOBS).fold(Schedule::new(&fleet, database).timing(12_000, 2_000, 1_000), |schedule, n| {
        schedule.job(&format!("job-{n:02}"), EVERY_SECOND, &line, &["overlap = \"wait\""])
    });
    fleet.start(&HOSTS, |host| schedule.on(host));
    fleet.wait_until_up();

    let window = Window::from_now();
    let minute = Duration::from_secs(SECONDS as u64);
    eventually("a minute has gone", minute + PATIENCE, || Utc::now() > window.to);
    eventually("all runs of that minute have ended", PATIENCE, || {
        let runs = window.runs(database);
        runs.len() >= TRIGGERS && runs.iter().all(Run::is_final)
    });
    fleet.drain(PATIENCE);

    check_runs(&window.runs(database));
    let entries = fleet.ledger().read();
    check_ledger(&entries, window);
    assert_eq!(database.held_locks(), Vec::<String>::new(), "after the daemons have gone");
}

/// What the tables say.
fn check_runs(runs: &[Run]) {
    let odd: Vec<_> = runs.iter().filter(|run| run.state != "succeeded" || run.attempt != 1).collect();
    assert!(odd.is_empty(), "not every trigger succeeded at its first attempt: {odd:#?}");
    let mut triggers: Vec<_> = runs.iter().map(|run| (&run.job, run.scheduled_at)).collect();
    triggers.sort();
    triggers.dedup();
    assert_eq!((runs.len(), triggers.len()), (TRIGGERS, TRIGGERS), "runs, and triggers with a run");
    let mut by_job: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    runs.iter().for_each(|run| by_job.entry(&run.job).or_default().push(run));
    for (job, mut runs) in by_job {
        runs.sort_by_key(|run| run.claimed_at);
        let tokens: Vec<_> = runs.iter().map(|run| run.token).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b), "tokens of {job} in order of their grants: {tokens:?}");
    }
}

/// What the jobs themselves say.
fn check_ledger(entries: &Entries, window: Window) {
    entries.assert_locks_held();
    entries.assert_each_trigger_ran_once();
    let ran = entries.runs_per_trigger().into_keys().filter(|(_, at)| window.holds(at.parse().unwrap())).count();
    assert_eq!(ran, TRIGGERS, "triggers that ran");
    let by_host = entries.runs_by_host();
    let all: usize = by_host.values().sum();
    for host in HOSTS {
        let runs = by_host.get(host).copied().unwrap_or_default();
        assert!(runs * 100 >= all * 15, "host {host} had {runs} of {all} runs: {by_host:?}");
    }
}

impl Window {
    /// Begins at a full second after the next one.
    fn from_now() -> Self {
        let from = Utc::now().trunc_subsecs(0) + TimeDelta::seconds(2);
        Self { from, to: from + TimeDelta::seconds(SECONDS as i64) }
    }

    fn holds(self, at: DateTime<Utc>) -> bool {
        self.from <= at && at < self.to
    }

    fn runs(self, database: &Database) -> Vec<Run> {
        database.runs().into_iter().filter(|run| self.holds(run.scheduled_at)).collect()
    }
}

//! `overlap = "replace"`: the newest trigger stops the run that is under way and takes its place.

use std::time::Duration;

use crate::jobs::{first_run_endures, first_run_holds, let_go, short, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::machine::is_alive;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually, stays};

const REPLACE: &str = "overlap = \"replace\"";

fn is_replaced(run: &Run) -> bool {
    (run.state.as_str(), run.reason.as_deref()) == ("cancelled", Some("replaced"))
}

#[test]
fn the_next_trigger_stops_the_run_by_term_and_runs_in_its_place() {
    let fleet = Fleet::new();
    replace_by_term(fleet, &Database::postgres());
}

#[test]
fn on_sqlite_the_next_trigger_stops_the_run_by_term_and_runs_in_its_place() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    replace_by_term(fleet, &database);
}

fn replace_by_term(mut fleet: Fleet, database: &Database) {
    let line = first_run_holds(&fleet, "job");
    let schedule = Schedule::new(&fleet, database).job("job", EVERY_SECOND, &line, &[REPLACE, "wait_for = \"30s\""]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let beat = wait_for_beat(&fleet, "job");
    let replaced = database.wait_for_run("job", "is replaced", |run| run.id == beat.run && run.is_final());
    assert!(is_replaced(&replaced) && replaced.signal == Some(15), "{replaced:#?}");
    let by = |run: &Run| run.scheduled_at > replaced.scheduled_at && run.state == "succeeded";
    let next = database.wait_for_run("job", "runs in its place", by);
    assert!(next.token > replaced.token, "{next:#?}");
    let said = fleet
        .daemons()
        .flat_map(|daemon| daemon.log().events("lock.contended"))
        .find(|event| event["holder_run"] == replaced.id.as_str())
        .expect("a trigger was held off");
    assert!(said["became"].as_str().unwrap().starts_with("it replaces that run, and waits for its end"), "{said}");
    fleet.drain(PATIENCE);
    let entries = fleet.ledger().read();
    entries.assert_locks_held();
    entries.assert_each_trigger_ran_once();
}

#[test]
fn a_run_that_ignores_term_is_killed_and_of_the_triggers_meanwhile_the_newest_runs() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let line = first_run_endures(&fleet, "job");
    let schedule = Schedule::new(&fleet, &database).timing(24_000, 2_000, 6_000).job(
        "job",
        EVERY_SECOND,
        &line,
        &[REPLACE, "wait_for = \"60s\""],
    );
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let beat = wait_for_beat(&fleet, "job");
    let replaced = database.wait_for_run("job", "is replaced", |run| run.id == beat.run && run.is_final());
    assert!(is_replaced(&replaced) && replaced.signal == Some(9), "{replaced:#?}");
    assert!(!is_alive(beat.pid));
    let next = database.wait_for_run("job", "runs in its place", |run| run.token > replaced.token);
    let between: Vec<_> = database
        .runs_of("job")
        .into_iter()
        .filter(|run| run.scheduled_at > replaced.scheduled_at && run.scheduled_at < next.scheduled_at)
        .collect();
    assert!(between.len() >= 3, "{between:#?}");
    let superseded = |run: &Run| (run.state.as_str(), run.reason.as_deref()) == ("skipped", Some("superseded"));
    assert!(between.iter().all(superseded), "{between:#?}");
    fleet.drain(PATIENCE);
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn on_a_full_host_a_trigger_replaces_the_run_that_has_its_room() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let line = first_run_holds(&fleet, "job");
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &line, &[REPLACE, "wait_for = \"30s\""]);
    fleet.start(&["a"], |host| schedule.on(host).replace("[daemon]\n", "[daemon]\nmax_running_jobs = 1\n"));
    let beat = wait_for_beat(&fleet, "job");
    let replaced = database.wait_for_run("job", "is replaced", |run| run.id == beat.run && run.is_final());
    assert!(is_replaced(&replaced), "{replaced:#?}");
    database.wait_for_run("job", "runs in its place", |run| run.token > replaced.token && run.state == "succeeded");
    fleet.drain(PATIENCE);
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn a_foreign_holder_is_left_alone_and_the_trigger_is_skipped() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let shared = "lock = \"shared\"";
    let schedule = Schedule::new(&fleet, &database)
        .job("holder", EVERY_SECOND, &first_run_holds(&fleet, "holder"), &[shared])
        .job("other", EVERY_SECOND, &format!("test -d holder.first && {}", short(&fleet)), &[shared, REPLACE]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let beat = wait_for_beat(&fleet, "holder");
    let held_off = |run: &Run| run.blocked_by.as_ref() == Some(&beat.run);
    let skipped = database.wait_for_run("other", "is held off", held_off);
    assert_eq!((skipped.state.as_str(), skipped.reason.as_deref()), ("skipped", Some("lock_held")));
    let lives = || is_alive(beat.pid) && database.rows("requests").is_empty();
    stays("nobody stops the holder", Duration::from_secs(3), lives);
    let_go(&fleet);
    database.wait_for_run("other", "runs after the holder's end", |run| run.state == "succeeded");
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn a_trigger_that_cannot_replace_in_time_is_skipped() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let line = first_run_holds(&fleet, "job");
    let keys = [REPLACE, "wait_for = \"1s\""];
    let schedule = Schedule::new(&fleet, &database).timing(12_000, 2_000, 1_000).job("job", EVERY_SECOND, &line, &keys);
    fleet.start(&["a"], |host| schedule.on(host));
    let beat = wait_for_beat(&fleet, "job");
    // Its host stands still: it sees no request, and renews nothing.
    fleet["a"].signal(rustix::process::Signal::STOP);
    fleet.start(&["b"], |host| schedule.on(host));
    let waits =
        |run: &Run| run.reason.as_deref() == Some("wait_timed_out") && run.blocked_by.as_ref() == Some(&beat.run);
    let overdue = database.wait_for_run("job", "waits in vain", waits);
    assert_eq!(overdue.state, "skipped", "{overdue:#?}");
    fleet["a"].signal(rustix::process::Signal::CONT);
    database.wait_for_run("job", "runs when the lease is over", |run| run.state == "succeeded");
    let entries = || fleet.ledger().read();
    eventually("the first run is gone", PATIENCE, || !is_alive(beat.pid));
    assert!(entries().marked(Mark::Beat).all(|entry| entry.run == beat.run));
    entries().assert_locks_held();
}

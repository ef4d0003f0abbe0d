//! A trigger whose lock is still held when it comes.

use std::time::Duration;

use rustix::process::Signal;

use crate::jobs::{first_run_holds, let_go, short, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually, stays};

const SHARED: &str = "lock = \"shared\"";

#[test]
fn a_held_lock_skips_the_trigger_and_tells_who_holds_it() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database)
        .job("holder", EVERY_SECOND, &first_run_holds(&fleet, "holder"), &[SHARED])
        .job("other", EVERY_SECOND, &format!("test -d holder.first && {}", short(&fleet)), &[SHARED]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let held = wait_for_beat(&fleet, "holder");

    let blocked = |run: &Run| run.blocked_by.as_ref() == Some(&held.run);
    let skipped = database.wait_for_run("other", "is held off", blocked);
    assert_eq!((skipped.state.as_str(), skipped.reason.as_deref()), ("skipped", Some("lock_held")), "{skipped:#?}");
    assert!(skipped.finished_at.is_some() && skipped.token.is_none());
    let host = skipped.host.as_deref().unwrap();
    let said = fleet[host].wait_for_event("lock.contended", |event| event["run"] == skipped.id.as_str());
    assert_eq!(said["level"], "WARN");
    assert_eq!((&said["job"], &said["lock"]), (&"other".into(), &"shared".into()));
    assert_eq!((&said["holder_host"], &said["holder_run"]), (&held.host.as_str().into(), &held.run.as_str().into()));
    let holder = said["holder"].as_str().unwrap();
    assert!(holder.starts_with(&format!("{}/", held.host)), "{said}");
    let secret = database.query("SELECT owner FROM distributed_locks WHERE resource = 'shared'").remove(0);
    assert!(secret.starts_with(holder) && secret.len() > holder.len(), "the owner's secret is told: {said}");
    let (held_ms, remaining_ms) = (said["held_ms"].as_u64().unwrap(), said["remaining_ms"].as_u64().unwrap());
    let ttl = schedule.ttl().as_millis() as u64;
    assert!(remaining_ms > 0 && remaining_ms <= ttl, "{said}");
    let later = fleet[host].wait_for_event("lock.contended", |event| {
        event["holder_run"] == held.run.as_str() && event["held_ms"].as_u64().unwrap() > held_ms + 1_000
    });
    assert!(later["remaining_ms"].as_u64().unwrap() > 0, "{later}");
    fleet[host].wait_for_event("run.skipped", |event| event["run"] == skipped.id.as_str());

    let_go(&fleet);
    database.wait_for_run("other", "after the holder's end", |run| {
        run.state == "succeeded" && run.token > Some(held.token)
    });
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn one_trigger_of_a_job_that_waits_runs_when_the_holder_has_ended() {
    let fleet = Fleet::new();
    wait_in_line(fleet, &Database::postgres());
}

#[test]
fn one_trigger_of_a_job_that_waits_on_sqlite_runs_when_the_holder_has_ended() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    wait_in_line(fleet, &database);
}

fn wait_in_line(mut fleet: Fleet, database: &Database) {
    let waits = [SHARED, "overlap = \"wait\"", "wait_for = \"60s\""];
    let schedule = Schedule::new(&fleet, database)
        .job("holder", EVERY_SECOND, &first_run_holds(&fleet, "holder"), &[SHARED])
        .job("patient", EVERY_SECOND, &short(&fleet), &waits);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let held = wait_for_beat(&fleet, "holder");

    let waiting = database.wait_for_run("patient", "waits", |run| run.state == "waiting");
    assert_eq!(waiting.blocked_by.as_ref(), Some(&held.run));
    let one_waits = || {
        let runs = database.runs_of("patient");
        runs.iter().filter(|run| run.state == "waiting").map(|run| &run.id).eq([&waiting.id])
    };
    stays("one trigger waits, always the same", Duration::from_secs(4), one_waits);
    let skipped = |run: &Run| run.state == "skipped" && run.scheduled_at > waiting.scheduled_at;
    let skipped = database.wait_for_run("patient", "comes while another waits", skipped);
    assert_eq!(skipped.reason.as_deref(), Some("already_waiting"));
    let_go(&fleet);
    let ran = database.wait_for_run("patient", "has waited", |run| run.id == waiting.id && run.is_final());
    assert_eq!((ran.state.as_str(), ran.attempt, ran.trigger.as_str()), ("succeeded", 1, "schedule"));
    fleet.drain(PATIENCE);
    let entries = fleet.ledger().read();
    entries.assert_locks_held();
    entries.assert_each_trigger_ran_once();
}

#[test]
fn a_trigger_that_has_waited_long_enough_is_skipped() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let waits = [SHARED, "overlap = \"wait\"", "wait_for = \"1s\""];
    let schedule = Schedule::new(&fleet, &database)
        .job("holder", EVERY_SECOND, &first_run_holds(&fleet, "holder"), &[SHARED])
        .job("patient", EVERY_SECOND, &short(&fleet), &waits);
    fleet.start(&["a"], |host| schedule.on(host));
    let held = wait_for_beat(&fleet, "holder");
    let overdue =
        database.wait_for_run("patient", "waits in vain", |run| run.reason.as_deref() == Some("wait_timed_out"));
    assert_eq!((overdue.state.as_str(), overdue.blocked_by.as_ref()), ("skipped", Some(&held.run)), "{overdue:#?}");
    fleet["a"].wait_for_event("run.skipped", |event| event["run"] == overdue.id.as_str());
    fleet["a"].signal(Signal::TERM);
}

#[test]
fn two_jobs_with_one_lock_exclude_one_another() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let line = fleet.ledger().job(Duration::from_millis(300));
    let waits = [SHARED, "overlap = \"wait\""];
    let schedule = Schedule::new(&fleet, &database).job("one", EVERY_SECOND, &line, &waits).job(
        "two",
        EVERY_SECOND,
        &line,
        &waits,
    );
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let ended = |job| fleet.ledger().read().marked(Mark::End).filter(|entry| entry.job == job).count();
    eventually("both jobs have run", PATIENCE, || ended("one") >= 5 && ended("two") >= 5);
    fleet.drain(PATIENCE);
    let entries = fleet.ledger().read();
    assert!(entries.iter().all(|entry| entry.lock == "shared"));
    entries.assert_locks_held();
    entries.assert_each_trigger_ran_once();
}

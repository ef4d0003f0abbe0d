//! `kill -9` of the daemon that holds a lock while its job runs.

use std::time::Duration;

use chrono::{TimeDelta, Utc};

use crate::jobs::{first_run_endures, run_of, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::machine::is_alive;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually, eventually_some};

/// How soon the kernel has killed a process whose parent died.
const AT_ONCE: Duration = Duration::from_secs(2);

#[test]
fn the_lock_of_a_killed_daemon_is_taken_over_after_its_ttl_and_not_before() {
    let fleet = Fleet::new();
    take_over(fleet, &Database::postgres());
}

#[test]
fn the_lock_of_a_killed_daemon_on_sqlite_is_taken_over_after_its_ttl_and_not_before() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    take_over(fleet, &database);
}

fn take_over(mut fleet: Fleet, database: &Database) {
    let schedule = Schedule::new(&fleet, database).job("job", EVERY_SECOND, &first_run_endures(&fleet, "job"), &[]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let held = wait_for_beat(&fleet, "job");

    fleet[&*held.host].kill9();
    let killed_at = Utc::now();
    let row = database.lock("job:job").unwrap();
    assert_eq!((row.token, row.is_released), (held.token, false));
    eventually("the job has died with its daemon", AT_ONCE, || !is_alive(held.pid));

    let next = database.wait_for_run("job", "after the takeover", |run| run.token > Some(held.token));
    let taken_at = next.claimed_at.unwrap();
    assert!(taken_at >= row.expires_at, "taken at {taken_at}, but it was held until {}", row.expires_at);
    let bound = schedule.ttl() + 2 * schedule.heartbeat() + Duration::from_secs(1);
    let took = taken_at - killed_at;
    assert!(took <= TimeDelta::from_std(bound).unwrap(), "taken over {took} after the kill");

    let lost = database.wait_for_run("job", "is lost", |run| run.state == "lost");
    assert_eq!((&lost.id, lost.reason.as_deref()), (&held.run, Some("lease_expired")));
    assert!(lost.finished_at.unwrap() >= row.expires_at, "lost before its lock had expired: {lost:#?}");
    let attempts = attempts_of(database, &lost);
    assert_eq!(attempts.len(), 1, "not to be run again: {attempts:#?}");
    let survivor = if held.host == "a" { "b" } else { "a" };
    let said = fleet[survivor].wait_for_event("run.lost", |event| event["run"] == lost.id.as_str());
    assert_eq!((&said["holder_host"], &said["rerun"]), (&held.host.as_str().into(), &serde_json::Value::Null));

    fleet[survivor].signal(rustix::process::Signal::TERM);
    assert!(fleet[survivor].wait_exit(PATIENCE).success());
    fleet.ledger().read().assert_locks_held();
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn a_lost_run_is_run_again_on_another_host_as_often_as_its_job_says() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    // The first trigger's attempts endure; other triggers end at once.
    let line = format!(
        "{}; mark start; if mkdir first 2>/dev/null || test $CRONLATCH_ATTEMPT != 1; then endure; fi; mark end",
        fleet.ledger().prelude()
    );
    let keys = ["on_crash = \"rerun\"", "max_reruns = 1"];
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &line, &keys);
    fleet.start(&["a", "b", "c"], |host| schedule.on(host));

    let first = wait_for_beat(&fleet, "job");
    fleet[&*first.host].kill9();
    let expires_at = database.lock("job:job").unwrap().expires_at;
    let again = || fleet.ledger().read().marked(Mark::Beat).find(|entry| entry.attempt == "2").cloned();
    let second = eventually_some("the second attempt beats", PATIENCE, again);
    let rerun = run_of(&database, &second);
    assert_eq!((rerun.scheduled_at, rerun.trigger.as_str()), (run_of(&database, &first).scheduled_at, "rerun"));
    assert_ne!(first.host, second.host);
    assert!(second.token > first.token);
    assert!(rerun.claimed_at.unwrap() >= expires_at, "run again before {expires_at}: {rerun:#?}");

    fleet[&*second.host].kill9();
    let lost = |run: &Run| run.attempt == 2 && run.state == "lost";
    let lost = database.wait_for_run("job", "lost again", lost);
    let attempts = attempts_of(&database, &lost);
    assert_eq!(attempts.len(), 2, "max_reruns is 1: {attempts:#?}");
    assert!(attempts.iter().all(|run| run.state == "lost"), "{attempts:#?}");
    database.wait_for_run("job", "of a later trigger", |run| run.scheduled_at > lost.finished_at.unwrap());
    fleet.ledger().read().assert_locks_held();
}

/// All attempts at the trigger of a run.
fn attempts_of(database: &Database, run: &Run) -> Vec<Run> {
    database.runs_of(&run.job).into_iter().filter(|other| other.scheduled_at == run.scheduled_at).collect()
}

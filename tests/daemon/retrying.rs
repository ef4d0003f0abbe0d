//! Attempts after a failure, under the same lease; which codes are none; a job that outlives its lease.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use crate::jobs::{first_run_holds, let_go, wait_for_beat};
use crate::support::daemon::BINARY;
use crate::support::fleet::Fleet;
use crate::support::machine::is_alive;
use crate::support::postgres::{Cluster, Shutdown};
use crate::support::schedule::{EVERY_SECOND, Schedule, once_in};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually};

/// A job with one trigger whose attempts fail until there is a file `well`.
fn fragile(fleet: &Fleet) -> String {
    fleet.ledger().job_then(std::time::Duration::ZERO, "test -e well || exit 4")
}

fn attempts_of(database: &Database) -> Vec<Run> {
    let mut runs = database.runs_of("job");
    runs.sort_by_key(|run| run.attempt);
    runs
}

fn wait_for_attempt(database: &Database, attempt: i64, state: &str) -> Run {
    database.wait_for_run("job", &format!("attempt {attempt} is {state}"), |run| {
        run.attempt == attempt && run.state == state
    })
}

#[test]
fn a_failed_run_is_tried_again_under_the_same_lease_until_it_succeeds() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let (first, _) = once_in(std::time::Duration::from_secs(2));
    let (second, _) = once_in(std::time::Duration::from_secs(3));
    let line = "test $CRONLATCH_ATTEMPT = 3 || exit 4";
    let keys = ["retries = 5", "retry_delay = \"1s\"", "retry_max_delay = \"1s\"", "lock = \"shared\""];
    let other = ["lock = \"shared\"", "overlap = \"wait\""];
    let schedule =
        Schedule::new(&fleet, &database).job("job", &first, line, &keys).job("other", &second, "true", &other);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let last = wait_for_attempt(&database, 3, "succeeded");
    let attempts = attempts_of(&database);
    let states: Vec<_> = attempts.iter().map(|run| (run.attempt, run.state.as_str(), run.trigger.as_str())).collect();
    assert_eq!(states, [(1, "failed", "schedule"), (2, "failed", "retry"), (3, "succeeded", "retry")]);
    assert!(attempts.iter().all(|run| run.token == last.token && run.host == last.host), "one lease: {attempts:#?}");
    assert_eq!((attempts[0].exit_code, attempts[2].exit_code), (Some(4), Some(0)));
    let pause = attempts[1].started_at.unwrap() - attempts[0].finished_at.unwrap();
    assert!(pause >= chrono::TimeDelta::milliseconds(700), "it paused {pause}");
    let host = last.host.clone().unwrap();
    let said = fleet[&*host].wait_for_event("run.retrying", |event| event["attempt"] == 3);
    assert_eq!(said["run"], last.id.as_str());
    // Whoever waited for the lock had it after the last attempt.
    let other = database.wait_for_run("other", "runs", |run| run.state == "succeeded");
    assert!(other.token != last.token);
    assert!(other.token > last.token && other.started_at > last.finished_at, "{other:#?}");
    fleet.drain(PATIENCE);
}

#[test]
fn retries_end_when_there_is_none_left_and_the_last_failure_stands() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let (schedule, _) = once_in(std::time::Duration::from_secs(2));
    let keys = ["retries = 1", "retry_delay = \"1s\""];
    let schedule = Schedule::new(&fleet, &database).job("job", &schedule, &fragile(&fleet), &keys);
    fleet.start(&["a"], |host| schedule.on(host));
    wait_for_attempt(&database, 2, "failed");
    eventually("the lock is free", PATIENCE, || database.held_locks().is_empty());
    fleet.drain(PATIENCE);
    assert_eq!(attempts_of(&database).len(), 2);
}

#[test]
fn a_retry_that_waits_is_given_back_by_a_drain_and_run_by_another_host() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let (schedule, _) = once_in(std::time::Duration::from_secs(2));
    let keys = ["retries = 1", "retry_delay = \"60s\"", "start_deadline = \"60s\""];
    let schedule = Schedule::new(&fleet, &database).job("job", &schedule, &fragile(&fleet), &keys);
    fleet.start(&["a"], |host| schedule.on(host));
    wait_for_attempt(&database, 2, "claimed");
    fs::write(fleet.folder().join("well"), "").unwrap();
    fleet["a"].signal(Signal::TERM);
    assert!(fleet["a"].wait_exit(PATIENCE).success());
    fleet.start(&["b"], |host| schedule.on(host));
    let last = wait_for_attempt(&database, 2, "succeeded");
    assert_eq!(last.host.as_deref(), Some("b"));
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn a_retry_that_waits_can_be_cancelled() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let (schedule, _) = once_in(std::time::Duration::from_secs(2));
    let keys = ["retries = 1", "retry_delay = \"60s\""];
    let schedule = Schedule::new(&fleet, &database).job("job", &schedule, &fragile(&fleet), &keys);
    fleet.start(&["a"], |host| schedule.on(host));
    let waiting = wait_for_attempt(&database, 2, "claimed");
    let config = fleet.config_path("a");
    let cancel =
        Command::new(BINARY).args(["cancel", &waiting.id, "--reason", "enough", "--config"]).arg(config).output();
    let cancel = cancel.unwrap();
    assert!(cancel.status.success(), "{cancel:?}");
    let over = wait_for_attempt(&database, 2, "cancelled");
    assert!(over.reason.unwrap().ends_with(": enough"));
    eventually("the lock is free", PATIENCE, || database.held_locks().is_empty());
    fleet.drain(PATIENCE);
}

#[test]
fn codes_that_the_job_names_are_successes() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job(
        "job",
        EVERY_SECOND,
        "exit 24",
        &["success_codes = [0, 24]", "retries = 3"],
    );
    fleet.start(&["a"], |host| schedule.on(host));
    let run = database.wait_for_run("job", "ends", |run| run.is_final());
    assert_eq!((run.state.as_str(), run.exit_code), ("succeeded", Some(24)), "{run:#?}");
    fleet.drain(PATIENCE);
}

#[test]
fn a_job_that_goes_on_without_its_lease_is_not_killed_and_its_result_is_recorded() {
    let mut cluster = Cluster::start();
    let mut fleet = Fleet::new();
    let database = Database::postgres_in(&cluster);
    let line = first_run_holds(&fleet, "job");
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &line, &["on_lease_lost = \"continue\""]);
    fleet.start(&["a"], |host| schedule.on(host));
    let held = wait_for_beat(&fleet, "job");
    cluster.stop(Shutdown::Immediate);
    fleet["a"].wait_for_event("lock.renew_late", |_| true);
    let over = std::time::Instant::now() + schedule.ttl() + schedule.heartbeat();
    eventually("its lock has expired", PATIENCE, || std::time::Instant::now() >= over);
    assert!(is_alive(held.pid), "it was killed");
    cluster.start_again();
    fleet["a"].wait_for_event("lock.lost", |_| true);
    assert!(is_alive(held.pid), "it was killed");
    let_go(&fleet);
    let ended = database.wait_for_run("job", "ends", |run| run.id == held.run && run.state == "succeeded");
    assert_eq!(ended.exit_code, Some(0));
    fleet.drain(PATIENCE);
}

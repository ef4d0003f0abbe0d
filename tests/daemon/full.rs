//! A host has as many runs as it may.

use std::fs;
use std::time::Duration;

use chrono::{TimeDelta, Utc};

use crate::jobs::{first_run_holds, let_go, short, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::schedule::{EVERY_SECOND, Schedule, once_in};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually};

#[test]
fn a_full_host_says_so_once_and_its_triggers_wait_for_room() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database)
        .job("long", EVERY_SECOND, &first_run_holds(&fleet, "long"), &[])
        .job("short", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&["a"], |host| schedule.on(host).replace("[daemon]\n", "[daemon]\nmax_running_jobs = 1\n"));
    let running = wait_for_beat(&fleet, "long");
    let said = fleet["a"].wait_for_event("host.filled", |_| true);
    assert_eq!((&said["level"], &said["max_running_jobs"]), (&"WARN".into(), &1.into()), "{said}");
    let full_until = Utc::now();
    let_go(&fleet);
    database.wait_for_run("long", "ends", |run| run.id == running.run && run.state == "succeeded");
    database.wait_for_run("short", "has room", |run| run.claimed_at > Some(full_until) && run.state == "succeeded");
    assert_eq!(fleet["a"].log().events("host.filled").len(), 1, "it is said once");
}

#[test]
fn triggers_find_room_in_the_order_of_their_instants_and_a_burst_of_one_job_has_one_place() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let instants: Vec<_> = (3..6).map(|seconds| once_in(Duration::from_secs(seconds))).collect();
    let mut schedule = Schedule::new(&fleet, &database)
        .job("long", EVERY_SECOND, &first_run_holds(&fleet, "long"), &[])
        .job("burst", EVERY_SECOND, &short(&fleet), &[]);
    // Named against the order of their instants.
    for ((schedule_of, _), name) in instants.iter().zip(["zeta", "mu", "alpha"]) {
        schedule = schedule.job(name, schedule_of, &short(&fleet), &[]);
    }
    fleet.start(&["a"], |host| schedule.on(host).replace("[daemon]\n", "[daemon]\nmax_running_jobs = 1\n"));
    wait_for_beat(&fleet, "long");
    let last = instants.last().unwrap().1;
    eventually("all have come", PATIENCE, || Utc::now() > last + TimeDelta::seconds(1));
    assert!(fleet.ledger().read().marked(Mark::Start).all(|entry| entry.job == "long"), "all are late: start again");
    let_go(&fleet);
    database.wait_for_run("alpha", "has room", |run| run.state == "succeeded");
    let started: Vec<_> = fleet.ledger().read().marked(Mark::Start).map(|entry| entry.job.clone()).collect();
    let place = |job: &str| started.iter().position(|started| started == job).unwrap();
    assert!(place("zeta") < place("mu") && place("mu") < place("alpha"), "{started:?}");
    let bursts = started[..place("alpha")].iter().filter(|job| *job == "burst").count();
    assert!(bursts <= 1, "{started:?}");
}

#[test]
fn a_run_that_waits_in_the_tables_has_its_turn_though_one_before_it_waits_for_a_lock() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let (on_a, on_b) = ("hosts = [\"a\"]", "hosts = [\"b\"]");
    let busy = fleet.ledger().job(Duration::from_millis(400));
    let waits = ["lock = \"shared\"", "overlap = \"wait\"", "wait_for = \"10m\"", on_a];
    let schedule = Schedule::new(&fleet, &database)
        .job("holder", EVERY_SECOND, &first_run_holds(&fleet, "holder"), &["lock = \"shared\"", on_b])
        .job("patient", EVERY_SECOND, &short(&fleet), &waits)
        .job("upstream", EVERY_SECOND, "test -e upstream", &[on_b])
        .bare("follower", &short(&fleet), &["after = [\"upstream\"]", on_a])
        .job("busy-1", EVERY_SECOND, &busy, &[on_a])
        .job("busy-2", EVERY_SECOND, &busy, &[on_a])
        .job("busy-3", EVERY_SECOND, &busy, &[on_a]);
    fleet.start(&["b"], |host| schedule.on(host));
    wait_for_beat(&fleet, "holder");
    fleet.start(&["a"], |host| schedule.on(host).replace("[daemon]\n", "[daemon]\nmax_running_jobs = 1\n"));
    database.wait_for_run("patient", "waits", |run| run.state == "waiting");
    fleet["a"].wait_for_event("host.filled", |_| true);
    fs::write(fleet.folder().join("upstream"), "").unwrap();
    let follows = database.wait_for_run("follower", "waits or runs", |run| !run.state.is_empty());
    database.wait_for_run("follower", "has its turn", |run| run.id == follows.id && run.state == "succeeded");
    assert!(database.runs_of("patient").iter().any(|run| run.state == "waiting"), "it waited all the time");
}

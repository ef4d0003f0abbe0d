//! SIGTERM, once and twice.

use std::time::{Duration, Instant};

use chrono::{DateTime, Timelike, Utc};
use rustix::process::Signal;

use crate::accounting::wait_until_accounted;
use crate::jobs::{first_run_endures, first_run_holds, let_go, run_of, short, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::machine::{is_alive, uptime};
use crate::support::postgres::{Cluster, Shutdown};
use crate::support::proxy::{Mode, Proxy};
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually, stays};

/// The bound of the second SIGTERM.
const AT_ONCE: Duration = Duration::from_secs(2);

#[test]
fn after_sigterm_nothing_starts_and_jobs_get_their_drain_then_term_then_kill() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database)
        .drain(Duration::from_secs(3))
        .job("stubborn", EVERY_SECOND, &first_run_endures(&fleet, "stubborn"), &[])
        .job("obedient", EVERY_SECOND, &first_run_holds(&fleet, "obedient"), &[])
        .job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let stubborn = wait_for_beat(&fleet, "stubborn");
    let obedient = wait_for_beat(&fleet, "obedient");
    database.wait_for_run("tick", "ends", |run| run.state == "succeeded");

    let (told_at, told_up) = (between_two_ticks(), uptime());
    fleet["a"].signal(Signal::TERM);
    let said = fleet["a"].wait_for_event("daemon.draining", |_| true);
    assert_eq!((&said["signal"], &said["drain_ms"]), (&"SIGTERM".into(), &3_000.into()));
    assert!(fleet["a"].wait_exit(PATIENCE).success());

    assert!(!is_alive(stubborn.pid) && !is_alive(obedient.pid));
    assert_eq!(database.held_locks(), Vec::<String>::new());
    assert_eq!(database.rows("hosts"), Vec::<serde_json::Value>::new(), "it said goodbye");
    let entries = fleet.ledger().read();
    let of_stubborn =
        |mark| entries.of_run(&stubborn.run).filter(|entry| entry.mark == mark).map(|entry| entry.at).last();
    let (term, last_beat) = (of_stubborn(Mark::Term).unwrap(), of_stubborn(Mark::Beat).unwrap());
    let drained = term.saturating_sub(told_up);
    // The ledger's hundredths, and the clock of the timer.
    assert!(drained + Duration::from_millis(20) >= Duration::from_secs(3), "TERM came after {drained:?}");
    let grace = last_beat.saturating_sub(term);
    assert!(grace >= schedule.kill_grace() / 2, "KILL came after {grace:?}");
    let late = entries.marked(Mark::Start).find(|entry| entry.scheduled_at.parse::<DateTime<Utc>>().unwrap() > told_at);
    assert!(late.is_none(), "{late:?} started after the SIGTERM of {told_at}");
    for (entry, signal) in [(&stubborn, Signal::KILL), (&obedient, Signal::TERM)] {
        let run = run_of(&database, entry);
        assert_eq!((run.state.as_str(), run.reason.as_deref()), ("cancelled", Some("drained")), "{run:#?}");
        assert_eq!(run.signal, Some(i64::from(signal.as_raw())), "{run:#?}");
    }
}

#[test]
fn a_job_that_ends_within_the_drain_is_succeeded() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).drain(2 * PATIENCE).job(
        "job",
        EVERY_SECOND,
        &first_run_holds(&fleet, "job"),
        &[],
    );
    fleet.start(&["a"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    fleet["a"].signal(Signal::TERM);
    fleet["a"].wait_for_event("daemon.draining", |_| true);
    let beats = || fleet.ledger().read().of_run(&running.run).count();
    let before = beats();
    eventually("the job goes on", PATIENCE, || beats() > before + 10);
    let_go(&fleet);
    assert!(fleet["a"].wait_exit(PATIENCE).success());
    let run = run_of(&database, &running);
    assert_eq!((run.state.as_str(), run.reason.as_deref(), run.exit_code), ("succeeded", None, Some(0)));
    assert_eq!(database.held_locks(), Vec::<String>::new());
}

#[test]
fn a_restart_of_every_daemon_in_turn_eats_no_trigger() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, &short(&fleet), &["overlap = \"wait\""]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    fleet.wait_until_up();
    for host in ["a", "b", "a", "b"] {
        fleet[host].signal(Signal::TERM);
        assert!(fleet[host].wait_exit(PATIENCE).success());
        fleet.launch(host);
        fleet[host].wait_for_event("run.started", |_| true);
    }
    let last = database.runs_of("tick").last().unwrap().scheduled_at;
    let without_run = wait_until_accounted(&database, "tick", last);
    assert!(without_run.is_empty(), "{without_run:?}");
    let odd: Vec<_> =
        database.runs_of("tick").into_iter().filter(|run| run.is_final() && run.state != "succeeded").collect();
    assert!(odd.is_empty(), "{odd:#?}");
    fleet.ledger().read().assert_locks_held();
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn a_second_sigterm_ends_daemon_and_job_within_two_seconds() {
    let fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database);
    end_at_once(fleet, schedule, || {});
}

#[test]
fn a_second_sigterm_ends_daemon_and_job_within_two_seconds_when_the_database_hangs_too() {
    let cluster = Cluster::shared();
    let proxy = Proxy::to_port(cluster.port());
    let fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).url(proxy.url(database.url())).timing(60_000, 10_000, 5_000);
    end_at_once(fleet, schedule, || proxy.set(Mode::Stall));
}

fn end_at_once(mut fleet: Fleet, schedule: Schedule, fault: impl FnOnce()) {
    let schedule = schedule.drain(2 * PATIENCE).job("job", EVERY_SECOND, &first_run_endures(&fleet, "job"), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    fleet["a"].signal(Signal::TERM);
    fleet["a"].wait_for_event("daemon.draining", |_| true);
    assert!(is_alive(running.pid));
    fault();
    let told = Instant::now();
    fleet["a"].signal(Signal::TERM);
    let status = fleet["a"].wait_exit(PATIENCE);
    let took = told.elapsed();
    assert!(status.success(), "{status}");
    assert!(took <= AT_ONCE, "it took {took:?}");
    fleet["a"].wait_for_event("daemon.hurried", |_| true);
    assert!(!is_alive(running.pid));
    let terms = fleet.ledger().read().marked(Mark::Term).count();
    assert_eq!(terms, 0, "KILL at once, without TERM");
}

#[test]
fn a_daemon_whose_database_is_away_ends_its_jobs_and_itself_all_the_same() {
    let mut cluster = Cluster::start();
    let mut fleet = Fleet::new();
    let database = Database::postgres_in(&cluster);
    // A lease that outlives the drain: the end comes by the signal.
    let schedule = Schedule::new(&fleet, &database).timing(60_000, 10_000, 500).drain(Duration::from_millis(500)).job(
        "job",
        EVERY_SECOND,
        &first_run_endures(&fleet, "job"),
        &[],
    );
    fleet.start(&["a"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    cluster.stop(Shutdown::Immediate);
    fleet["a"].wait_for_event("database.lost", |_| true);
    fleet["a"].signal(Signal::TERM);
    assert!(fleet["a"].wait_exit(PATIENCE).success());
    assert!(!is_alive(running.pid));
    assert!(fleet.ledger().read().marked(Mark::Term).next().is_some());
    fleet["a"].wait_for_event("run.unrecorded", |event| event["run"] == running.run.as_str());
}

#[test]
fn sigterm_is_obeyed_while_the_database_hangs() {
    let proxy = Proxy::to_port(Cluster::shared().port());
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database)
        .url(proxy.url(database.url()))
        .timing(20_000, 1_000, 500)
        .drain(Duration::from_millis(500))
        .job("job", EVERY_SECOND, &first_run_endures(&fleet, "job"), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    proxy.set(Mode::Stall);
    // By then every kind of call that the daemon repeats is under way, and none has timed out.
    stays("the daemon waits for answers", 3 * schedule.heartbeat(), || fleet["a"].is_running());
    fleet["a"].signal(Signal::TERM);
    fleet["a"].wait_for_event("run.cancelled", |event| event["run"] == running.run.as_str());
    assert!(!is_alive(running.pid));
    // It would still try to write that down.
    fleet["a"].signal(Signal::TERM);
    assert!(fleet["a"].wait_exit(PATIENCE).success());
}

#[test]
fn a_daemon_that_drains_as_long_as_it_takes_ends_while_the_database_is_away() {
    let mut cluster = Cluster::start();
    let mut fleet = Fleet::new();
    let database = Database::postgres_in(&cluster);
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, &short(&fleet), &[]);
    let for_ever = |host: &str| schedule.on(host).replace("drain = \"2000ms\"", "drain = \"infinite\"");
    fleet.start(&["a"], for_ever);
    database.wait_for_run("tick", "ends", |run| run.state == "succeeded");
    cluster.stop(Shutdown::Immediate);
    fleet["a"].wait_for_event("database.lost", |_| true);
    fleet["a"].signal(Signal::TERM);
    let said = fleet["a"].wait_for_event("daemon.draining", |_| true);
    assert!(said["drain_ms"].is_null(), "{said}");
    assert!(fleet["a"].wait_exit(PATIENCE).success());
    fleet["a"].wait_for_event("daemon.stopped", |_| true);
}

/// Waits until no trigger is on its way, and gives that instant.
fn between_two_ticks() -> DateTime<Utc> {
    let calm = || (400..600).contains(&(Utc::now().nanosecond() / 1_000_000));
    eventually("the middle of a second", PATIENCE, calm);
    Utc::now()
}

//! The start of a daemon, whatever it finds.

use std::time::Duration;

use rustix::process::Signal;

use crate::jobs::{first_run_holds, short, wait_for_beat};
use crate::support::daemon::Daemon;
use crate::support::fleet::Fleet;
use crate::support::postgres::{Cluster, Shutdown};
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, stays};

/// Some tries of whoever goes on trying.
const A_WHILE: Duration = Duration::from_secs(3);

#[test]
fn a_daemon_whose_database_is_down_at_its_start_waits_and_says_so_once() {
    let mut cluster = Cluster::start();
    let mut fleet = Fleet::new();
    let database = Database::postgres_in(&cluster);
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, &short(&fleet), &[]);
    cluster.stop(Shutdown::Fast);
    fleet.start(&["a"], |host| schedule.on(host));
    let lost = fleet["a"].wait_for_event("database.not_reached", |_| true);
    assert!(!lost["reason"].as_str().unwrap().is_empty());
    stays_alive(&mut fleet["a"]);
    assert!(fleet["a"].log().events("daemon.started").is_empty());

    cluster.start_again();
    fleet.wait_until_up();
    fleet["a"].wait_for_event("database.reached", |_| true);
    assert_eq!(fleet["a"].log().events("database.not_reached").len(), 1);
    database.wait_for_run("tick", "ends", |run| run.state == "succeeded");
    assert_eq!(fleet["a"].log().stray_lines(), Vec::<String>::new());
}

#[test]
fn sigterm_ends_a_daemon_that_still_waits_for_its_database() {
    let mut cluster = Cluster::start();
    let mut fleet = Fleet::new();
    let database = Database::postgres_in(&cluster);
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, &short(&fleet), &[]);
    cluster.stop(Shutdown::Fast);
    fleet.start(&["a"], |host| schedule.on(host));
    fleet["a"].wait_for_event("database.not_reached", |_| true);
    fleet["a"].signal(Signal::TERM);
    assert!(fleet["a"].wait_exit(PATIENCE).success());
    fleet["a"].wait_for_event("daemon.stopped", |_| true);
}

#[test]
fn daemons_that_start_at_once_on_an_empty_postgresql_make_the_tables_once() {
    let fleet = Fleet::new();
    start_at_once(fleet, &Database::postgres());
}

#[test]
fn daemons_that_start_at_once_on_an_empty_sqlite_make_the_tables_once() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    start_at_once(fleet, &database);
}

fn start_at_once(mut fleet: Fleet, database: &Database) {
    let hosts = ["a", "b", "c"];
    let schedule = Schedule::new(&fleet, database).job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&hosts, |host| schedule.on(host));
    fleet.wait_until_up();
    for host in hosts {
        database
            .wait_for_run("tick", "on each host", |run| run.state == "succeeded" && run.host.as_deref() == Some(host));
        assert!(fleet[host].log().events("database.lost").is_empty());
        let odd: Vec<_> = fleet[host].log().lines().into_iter().filter(|line| line["event"].is_null()).collect();
        assert!(odd.is_empty(), "lines that are no events: {odd:#?}");
    }
    assert_eq!(database.rows("cronlatch_schema").len(), 1);
    fleet.drain(PATIENCE);
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn a_daemon_that_may_not_make_the_tables_waits_until_somebody_has() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&["a"], |host| schedule.on(host).replace("[database]\n", "[database]\nmigrate = \"manual\"\n"));
    let lost = fleet["a"].wait_for_event("database.not_reached", |_| true);
    assert!(lost["reason"].as_str().unwrap().contains("cronlatch migrate"), "{lost}");
    stays_alive(&mut fleet["a"]);
    assert!(database.rows("runs").is_empty());
    let migrated = crate::commands::cronlatch(&fleet.config_path("a"), &["migrate"]);
    assert_eq!(migrated.code, 0, "{migrated:?}");
    database.wait_for_run("tick", "ends", |run| run.state == "succeeded");
}

#[test]
fn sigusr1_tells_what_the_daemon_is_at() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &first_run_holds(&fleet, "job"), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    fleet["a"].signal(Signal::USR1);
    let said = fleet["a"].wait_for_event("daemon.state", |_| true);
    assert_eq!((&said["running"], &said["queued"], &said["live_hosts"]), (&1.into(), &1.into(), &1.into()), "{said}");
    assert_eq!(said["database"], "reachable");
    assert!(said["clock_offset_ms"].as_i64().unwrap().abs() < 1_000, "{said}");
    // It asks for nothing else.
    database.wait_for_run("job", "goes on", |run| run.id == running.run && !run.is_final());
}

fn stays_alive(daemon: &mut Daemon) {
    stays("the daemon goes on trying", A_WHILE, || daemon.is_running());
    assert_eq!(daemon.log().events("database.not_reached").len(), 1, "it is said once");
}

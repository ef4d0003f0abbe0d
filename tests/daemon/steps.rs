//! A wall clock that is set while the daemon runs, for real: libfaketime shifts what the daemon's
//! CLOCK_REALTIME says, and nothing else.

use std::fs;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::libfaketime;
use crate::jobs::short;
use crate::support::daemon::Daemon;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};

/// Starts a daemon whose wall clock can be set.
fn launch(fleet: &mut Fleet, offset_file: &Path) {
    set(offset_file, "+0s");
    let library = libfaketime();
    fleet.launch_with(
        "a",
        &[
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME_TIMESTAMP_FILE", offset_file.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("NO_FAKE_STAT", "1"),
        ],
    );
}

/// Sets the daemon's wall clock.
fn set(offset_file: &Path, offset: &str) {
    let new = offset_file.with_extension("new");
    fs::write(&new, offset).unwrap();
    fs::rename(&new, offset_file).unwrap();
}

/// A run that ended well and whose instant lies `offset` from the real time, later than `after`.
fn run_near(database: &Database, offset: TimeDelta, after: DateTime<Utc>) -> Run {
    database.wait_for_run("tick", &format!("at {offset} from now"), |run| {
        let real = run.scheduled_at - offset;
        run.state == "succeeded" && real > after && (Utc::now() - real).abs() < TimeDelta::minutes(10)
    })
}

/// How many triggers a step may bring at once: one a second since the last look, and one late run.
fn most_runs_since(begun: DateTime<Utc>) -> usize {
    usize::try_from((Utc::now() - begun).num_seconds()).unwrap() + 3
}

fn stepped(daemon: &Daemon, mark: usize, forwards: bool) {
    daemon.wait_for_event_after(mark, "clock.stepped", |event| {
        event["offset_ms"].as_i64().is_some_and(|off| (off > 0) == forwards)
    });
}

#[test]
fn on_sqlite_a_step_of_a_day_forward_and_an_hour_back_bring_no_burst_no_double_run_and_no_stall() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.configure("a", &schedule.on("a"));
    let offset_file = fleet.folder().join("offset");
    let begun = Utc::now();
    launch(&mut fleet, &offset_file);
    run_near(&database, TimeDelta::zero(), begun);

    let mark = fleet["a"].log().mark();
    set(&offset_file, "+1d");
    stepped(&fleet["a"], mark, true);
    run_near(&database, TimeDelta::days(1), Utc::now());
    let mark = fleet["a"].log().mark();
    set(&offset_file, "+23h");
    stepped(&fleet["a"], mark, false);
    run_near(&database, TimeDelta::hours(23), Utc::now());
    // A clock that was wrong is put right, to where it is believed: the day between was never lived through.
    set(&offset_file, "+0s");
    run_near(&database, TimeDelta::zero(), Utc::now());

    let runs = database.runs_of("tick");
    let started = runs.iter().filter(|run| run.claimed_at.is_some()).count();
    let most = most_runs_since(begun);
    assert!(started <= most, "a burst: {started} runs in {most} s");
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn on_postgres_a_host_whose_wall_clock_is_set_goes_on_as_before() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, &short(&fleet), &["overlap = \"wait\""]);
    fleet.configure("a", &schedule.on("a"));
    let offset_file = fleet.folder().join("offset");
    let begun = Utc::now();
    launch(&mut fleet, &offset_file);
    run_near(&database, TimeDelta::zero(), begun);
    for offset in ["+1d", "-1h", "+0s"] {
        set(&offset_file, offset);
        run_near(&database, TimeDelta::zero(), Utc::now() + TimeDelta::seconds(2));
    }
    let runs = database.runs_of("tick");
    assert!(runs.iter().all(|run| (run.scheduled_at - begun).abs() < TimeDelta::minutes(30)), "{runs:#?}");
    assert!(fleet["a"].log().events("clock.stepped").is_empty());
    fleet.ledger().read().assert_each_trigger_ran_once();
}

//! Hosts whose wall clocks differ, on PostgreSQL, whose clock is a third one.

use std::path::PathBuf;
use std::time::Duration;

use crate::accounting::wait_until_accounted;
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::machine::uptime_of;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually};

#[test]
fn a_job_of_ten_milliseconds_runs_once_a_trigger_on_hosts_whose_clocks_differ_by_three_seconds() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let line = format!("{}; mark start; sleep 0.01; mark end", fleet.ledger().prelude());
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &line, &["overlap = \"wait\""]);
    let library = libfaketime();
    for (host, offset) in [("true", "+0s"), ("ahead", "+3s"), ("behind", "-3s")] {
        fleet.configure(host, &schedule.on(host));
        fleet.launch_with(
            host,
            &[
                ("LD_PRELOAD", library.to_str().unwrap()),
                ("FAKETIME", offset),
                // Without it no thread of the daemon would ever wake up.
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
                ("NO_FAKE_STAT", "1"),
            ],
        );
    }
    fleet.wait_until_up();
    for (host, least, most) in [("ahead", 2_900, 3_100), ("behind", -3_100, -2_900)] {
        let said = fleet[host].wait_for_event("clock.skewed", |_| true);
        let offset = said["offset_ms"].as_i64().unwrap();
        assert!((least..=most).contains(&offset), "{said}");
    }
    let each_ran = || {
        let by_host = fleet.ledger().read().runs_by_host();
        by_host.len() == 3 && by_host.values().all(|runs| *runs >= 2) && by_host.values().sum::<usize>() >= 12
    };
    eventually("each host had runs", PATIENCE, each_ran);
    assert!(fleet["true"].log().events("clock.skewed").is_empty());
    fleet.drain(PATIENCE);

    let last = database.runs_of("job").last().unwrap().scheduled_at;
    let without_run = wait_until_accounted(&database, "job", last);
    assert!(without_run.is_empty(), "{without_run:?}");
    let odd: Vec<_> = database.runs_of("job").into_iter().filter(is_odd).collect();
    assert!(odd.is_empty(), "{odd:#?}");
    let entries = fleet.ledger().read();
    entries.assert_each_trigger_ran_once();
    entries.assert_locks_held();
    // The ledger's clock and its hundredths of a second allow for a little.
    let early = Duration::from_millis(50);
    for start in entries.marked(Mark::Start) {
        let due = uptime_of(start.scheduled_at.parse().unwrap());
        assert!(start.at + early >= due, "{start:?} is early: it was due at {due:?}");
    }
}

/// Anything but a success that the schedule itself brought.
fn is_odd(run: &Run) -> bool {
    run.state != "succeeded" || run.trigger != "schedule"
}

pub fn libfaketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().filter_map(Result::ok);
    let mut found = folders.map(|entry| entry.path().join("faketime/libfaketime.so.1")).filter(|path| path.exists());
    found.next().expect("libfaketime is installed by tests/run")
}

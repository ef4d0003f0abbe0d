//! SIGHUP, and a file that is not fit.

use std::fs;
use std::process::{Command, Stdio};

use chrono::{TimeDelta, Utc};
use rustix::process::Signal;

use crate::jobs::{first_run_holds, let_go, short, wait_for_beat};
use crate::support::daemon::BINARY;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;

/// Three faults in three places.
const BROKEN: &str = "[database]\nurl = \"sqlite:///tmp/never-made.db\"\n[lock]\nttl = \"1s\"\n\
                      [jobs.one]\nschedule = \"61 * * * *\"\ncommand = [\"true\"]\n\
                      [jobs.two]\nschedule = \"* * * * *\"\ncomand = [\"true\"]\n";

#[test]
fn a_broken_file_at_the_start_is_refused_with_all_of_its_problems() {
    let fleet = Fleet::new();
    fleet.configure("a", BROKEN);
    let mut daemon = Command::new(BINARY);
    daemon.args(["daemon", "--config"]).arg(fleet.config_path("a")).stdin(Stdio::null());
    let said = daemon.output().unwrap();
    assert_eq!(said.status.code(), Some(78));
    let stderr = String::from_utf8(said.stderr).unwrap();
    for part in ["lock.ttl = \"1s\"", "jobs.one.schedule = \"61 * * * *\"", "jobs.two.comand"] {
        assert!(stderr.contains(part), "{part} is missing in:\n{stderr}");
    }
}

#[test]
fn a_broken_file_at_sighup_changes_nothing_and_is_told() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    database.wait_for_run("tick", "ends", |run| run.is_final());

    fleet.configure("a", BROKEN);
    fleet["a"].signal(Signal::HUP);
    let refused = fleet["a"].wait_for_event("daemon.reload_refused", |_| true);
    let refused_at = Utc::now();
    let problems = fleet["a"].log().events("schedule.problem");
    assert!(problems.len() >= 3 && refused["problems"] == problems.len(), "{refused}, {problems:?}");
    database
        .wait_for_run("tick", "by the old schedule", |run| run.scheduled_at > refused_at && run.state == "succeeded");

    // As well when there is no file at all.
    fs::remove_file(fleet.config_path("a")).unwrap();
    let mark = fleet["a"].log().mark();
    fleet["a"].signal(Signal::HUP);
    fleet["a"].wait_for_event_after(mark, "daemon.reload_refused", |_| true);
    let refused_at = Utc::now();
    database
        .wait_for_run("tick", "by the old schedule", |run| run.scheduled_at > refused_at && run.state == "succeeded");
    assert!(fleet["a"].log().events("daemon.reloaded").is_empty());
}

#[test]
fn a_good_file_at_sighup_is_taken_and_running_jobs_go_on() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let empty = Schedule::new(&fleet, &database);
    let before = empty.clone().job("long", EVERY_SECOND, &first_run_holds(&fleet, "long"), &[]).job(
        "old",
        EVERY_SECOND,
        &short(&fleet),
        &[],
    );
    fleet.start(&["a"], |host| before.on(host));
    let long = wait_for_beat(&fleet, "long");
    database.wait_for_run("old", "ends", |run| run.is_final());

    // Due a minute ago, and then in a year.
    let past = (Utc::now() - TimeDelta::minutes(1)).format("%-S %-M %-H %-d %-m *").to_string();
    let after = empty.job("new", EVERY_SECOND, &short(&fleet), &[]).job("past", &past, &short(&fleet), &[]);
    fleet.configure("a", &after.on("a"));
    let asked_at = Utc::now();
    fleet["a"].signal(Signal::HUP);
    let reloaded = fleet["a"].wait_for_event("daemon.reloaded", |_| true);
    let reloaded_at = Utc::now();
    assert_eq!(reloaded["jobs"], 2);

    // Longer than catch-up takes to find something.
    let enough = reloaded_at + TimeDelta::seconds(9);
    database.wait_for_run("new", "some time after the reload", |run| run.scheduled_at > enough && run.is_final());
    let new = database.runs_of("new");
    assert!(new.iter().all(|run| run.scheduled_at >= asked_at), "fired for the time before: {new:#?}");
    assert!(database.runs_of("past").is_empty());
    let gone = |job| database.runs_of(job).into_iter().filter(|run| run.scheduled_at > reloaded_at).count();
    assert_eq!((gone("old"), gone("long")), (0, 0), "jobs that were removed");
    let running = database.wait_for_run("long", "goes on", |run| run.id == long.run);
    assert_eq!(running.state, "running");
    let_go(&fleet);
    let ended = database.wait_for_run("long", "ends", |run| run.id == long.run && run.is_final());
    assert_eq!(ended.state, "succeeded");
}

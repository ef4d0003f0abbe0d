//! `splay`: runs that start later than their instant.

use std::time::Duration;

use chrono::TimeDelta;
use cronlatch::job::{JobName, start_delay};

use crate::jobs::short;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, instant};

#[test]
fn a_splayed_job_starts_later_under_its_nominal_instant_and_is_not_late_by_that() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let splay = Duration::from_secs(8);
    let delay = |name: &str| start_delay(&JobName::new(name).unwrap(), splay);
    let name = (0..).map(|n| format!("splayed-{n}")).find(|name| delay(name) == Duration::from_secs(4)).unwrap();
    let schedule = Schedule::new(&fleet, &database).job(&name, EVERY_SECOND, &short(&fleet), &["splay = \"8s\""]);
    fleet.start(&["a"], |host| schedule.on(host));
    let started = fleet["a"].wait_for_event("daemon.started", |_| true);
    let started = instant(&started["timestamp"]).unwrap();
    let later = started + TimeDelta::seconds(2);
    let run = database.wait_for_run(&name, "ends", |run| run.scheduled_at > later && run.state == "succeeded");
    let waited = instant(&run.row["started_at"]).unwrap() - run.scheduled_at;
    assert!(waited >= TimeDelta::seconds(4), "it started {waited} after its instant");
    let said = fleet["a"].wait_for_event("run.started", |event| event["run"] == run.id.as_str());
    let late = said["late_ms"].as_i64().unwrap();
    assert!(late < waited.num_milliseconds() - 3_900, "late by {late} ms of {waited}");
    // A job that is new does not run for the time before it was known.
    let early = started - TimeDelta::seconds(1);
    assert!(database.runs_of(&name).iter().all(|run| run.scheduled_at > early), "{:#?}", database.runs_of(&name));
}

//! A host has as many runs as it may.

use chrono::Utc;

use crate::jobs::{first_run_holds, let_go, short, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;

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

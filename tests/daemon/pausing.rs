//! A job that is paused and resumed.

use std::path::Path;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use cronlatch::job::JobName;
use cronlatch::store::{Location, OpenOptions, Pausing, SharedStore, open};

use crate::jobs::short;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually, eventually_some};

fn store_of(database: &Database) -> SharedStore {
    let url = database.url();
    let location = match url.strip_prefix("sqlite://") {
        Some(path) => Location::Sqlite { path: Path::new(path).to_owned() },
        None => Location::Postgres { url: url.to_owned(), password: None, pooler: false, direct_url: None },
    };
    let timeout = Duration::from_secs(5);
    open(&OpenOptions {
        location,
        create: false,
        max_connections: 3,
        call_timeout: timeout,
        heartbeat_timeout: timeout,
        application: "test".to_owned(),
    })
    .unwrap()
}

fn pausing_and_resuming_fire_nothing_at_once(fleet: &mut Fleet, database: &Database) {
    let keys = ["catch_up_max_age = \"1h\"", "overlap = \"wait\""];
    let schedule = Schedule::new(fleet, database).job("tick", EVERY_SECOND, &short(fleet), &keys);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    fleet.wait_until_up();
    database.wait_for_run("tick", "ends", |run| run.state == "succeeded");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(async { store_of(database) });
    let job = JobName::new("tick").unwrap();
    let pausing = Pausing { by: "tester".to_owned(), reason: "a test".to_owned(), until: None };
    runtime.block_on(store.pause(&job, &pausing)).unwrap();
    let paused_at = Utc::now();
    // A claim that was on its way is over by then.
    let settled = paused_at + TimeDelta::seconds(4);
    eventually("some triggers have come in the pause", PATIENCE, || Utc::now() > settled);
    let before = database.runs_of("tick");
    let resumed_at = Utc::now();
    runtime.block_on(store.resume(&job)).unwrap();

    let after = database.wait_for_run("tick", "is on time again", |run| run.scheduled_at > resumed_at);
    // Of catch-up, too, which looks for what is missing some seconds after a start or an outage.
    fleet["a"].kill9();
    fleet.launch("a");
    let later = Utc::now() + TimeDelta::seconds(15);
    let paused = || database.missed_ranges("tick").into_iter().find(|range| range.kind == "paused");
    let paused = eventually_some("what the pause took is recorded", PATIENCE, paused);
    database.wait_for_run("tick", "goes on", |run| run.scheduled_at > later && run.is_final());
    let last_before = before.last().unwrap().scheduled_at;
    assert!(last_before <= paused_at, "it ran in the pause: {before:#?}");
    assert!(last_before < paused.from && paused.to < after.scheduled_at, "{paused:?}");
    assert_eq!((paused.to - paused.from).num_seconds() + 1, paused.count, "{paused:?}");
    assert!(paused.to <= resumed_at && paused.count >= 3, "{paused:?}");
    let in_pause = |at| last_before < at && at < resumed_at - TimeDelta::seconds(1);
    let runs = database.runs_of("tick");
    assert!(!runs.iter().any(|run| in_pause(run.scheduled_at)), "it ran for an instant of the pause: {runs:#?}");
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn pausing_and_resuming_fire_nothing_at_once_on_postgres() {
    let mut fleet = Fleet::new();
    pausing_and_resuming_fire_nothing_at_once(&mut fleet, &Database::postgres());
}

#[test]
fn pausing_and_resuming_fire_nothing_at_once_on_sqlite() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    pausing_and_resuming_fire_nothing_at_once(&mut fleet, &database);
}

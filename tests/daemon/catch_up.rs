//! No daemon was there for a while.

use chrono::{DateTime, SubsecRound, TimeDelta, Timelike, Utc};
use rustix::process::Signal;

use crate::accounting::wait_until_accounted;
use crate::jobs::short;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, instant};
use crate::support::wait::{PATIENCE, eventually};

const HOSTS: [&str; 2] = ["a", "b"];

/// How many triggers a burst has, one a second; the rest of each half a minute is quiet, so that there
/// is a newest one to catch up with.
const BURST: i64 = 10;

#[test]
fn after_a_stop_of_all_daemons_the_newest_trigger_runs_late_and_the_others_are_recorded_once() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let last = start(&mut fleet, &database);
    for host in HOSTS {
        fleet[host].signal(Signal::TERM);
    }
    for host in HOSTS {
        assert!(fleet[host].wait_exit(PATIENCE).success());
    }
    come_back(&mut fleet, &database, last);
}

#[test]
fn after_a_crash_of_all_daemons_on_sqlite_the_newest_trigger_runs_late_and_the_others_are_recorded_once() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let last = start(&mut fleet, &database);
    for host in HOSTS {
        fleet[host].kill9();
    }
    come_back(&mut fleet, &database, last);
}

#[test]
fn after_a_year_without_a_daemon_a_job_of_every_minute_is_back_at_once() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let all = ["catch_up = \"all\"", "catch_up_max_runs = 3"];
    // Far from the seconds in which the daemons start.
    let each_minute = format!("{} * * * * *", (Utc::now() + TimeDelta::seconds(30)).second());
    let schedule = Schedule::new(&fleet, &database)
        .job("latest", &each_minute, &short(&fleet), &["catch_up_max_age = \"1h\""])
        .job("all", &each_minute, &short(&fleet), &all)
        .job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    fleet.wait_until_up();
    fleet.drain(PATIENCE);
    // A year goes by.
    database.query("DELETE FROM runs");
    database.query("UPDATE job_progress SET caught_up_through = caught_up_through - interval '365 days'");
    database.query("DELETE FROM trigger_ranges");

    fleet.launch("a");
    let started = fleet["a"].wait_for_event("daemon.started", |_| true);
    let started = instant(&started["timestamp"]).unwrap();
    for (job, late) in [("latest", 1), ("all", 3)] {
        let ended =
            || database.runs_of(job).into_iter().filter(|run| run.trigger == "catch_up" && run.is_final()).count();
        eventually(format!("the late runs of {job} have ended"), PATIENCE, || ended() == late);
    }
    let tick = database.wait_for_run("tick", "runs in time", |run| run.scheduled_at > started && run.is_final());
    let first = tick.scheduled_at - started;
    assert!(first <= TimeDelta::seconds(1), "the first run is for {first} after the start");
    fleet.drain(PATIENCE);

    for (job, late) in [("latest", 1), ("all", 3)] {
        let runs: Vec<_> = database.runs_of(job).into_iter().filter(|run| run.trigger == "catch_up").collect();
        assert_eq!(runs.len(), late, "{runs:#?}");
        let first = &runs[0];
        let by_id: Vec<_> = runs.iter().map(|run| (run.claimed_at, run.scheduled_at)).collect();
        assert!(by_id.is_sorted(), "oldest first: {runs:#?}");
        let ranges = database.missed_ranges(job);
        let [range] = &ranges[..] else { panic!("one row, not {ranges:#?}") };
        assert_eq!(range.to, first.scheduled_at - TimeDelta::minutes(1));
        assert_eq!(range.count, (range.to - range.from).num_minutes() + 1, "{range:#?}");
        assert!(range.count > 365 * 24 * 60 - 10, "{range:#?}");
        // A daemon that is not alone waits for the others' claims first, six seconds.
        let waited = runs.iter().filter_map(|run| run.claimed_at).min().unwrap() - started;
        assert!(waited < TimeDelta::seconds(5), "{job} ran {waited} after the start");
    }
}

/// Starts jobs with a burst of triggers each half a minute, of which the first is about to come;
/// returns the last instant of that.
fn start(fleet: &mut Fleet, database: &Database) -> DateTime<Utc> {
    let first = Utc::now().trunc_subsecs(0) + TimeDelta::seconds(3);
    let second = |n: i64| (first + TimeDelta::seconds(n)).second().to_string();
    let seconds: Vec<_> = (0..BURST).flat_map(|n| [second(n), second(n + 30)]).collect();
    let bursts = format!("{} * * * * *", seconds.join(","));
    let schedule = Schedule::new(fleet, database).job("late", &bursts, &short(fleet), &["overlap = \"wait\""]).job(
        "never",
        &bursts,
        &short(fleet),
        &["overlap = \"wait\"", "catch_up = \"none\""],
    );
    fleet.start(&HOSTS, |host| schedule.on(host));
    fleet.wait_until_up();
    for job in ["late", "never"] {
        database.wait_for_run(job, "ends", |run| run.state == "succeeded");
    }
    first + TimeDelta::seconds(BURST - 1)
}

fn come_back(fleet: &mut Fleet, database: &Database, last: DateTime<Utc>) {
    let gone_at = Utc::now();
    eventually("nobody was there for the rest of the burst", PATIENCE, || Utc::now() > last);
    for host in HOSTS {
        fleet.launch(host);
    }
    fleet.wait_until_up();
    // Past everything that could still be swept up.
    let later = Utc::now() + TimeDelta::seconds(9);
    for job in ["late", "never"] {
        database.wait_for_run(job, "is on time again", |run| run.scheduled_at > later && run.state == "succeeded");
    }

    let without_run = wait_until_accounted(database, "late", last);
    let late: Vec<_> = database.runs_of("late").into_iter().filter(|run| run.trigger == "catch_up").collect();
    assert_eq!(late.len(), 1, "one late run for the cluster: {late:#?}");
    assert_eq!((late[0].state.as_str(), late[0].attempt), ("succeeded", 1));
    assert_eq!(late[0].scheduled_at, last, "not the newest: {late:#?}");
    let ranges = database.missed_ranges("late");
    assert_eq!(ranges.len(), 1, "{ranges:#?}");
    assert_eq!((ranges[0].from, Some(&ranges[0].to)), (without_run[0], without_run.last()));
    assert_eq!(ranges[0].to, late[0].scheduled_at - TimeDelta::seconds(1));
    assert!(ranges[0].from < gone_at + TimeDelta::seconds(1), "{ranges:#?}");
    assert_eq!(ranges[0].reason, "superseded");
    let said = fleet.daemons().flat_map(|daemon| daemon.log().events("run.missed"));
    let said: Vec<_> = said.filter(|event| event["job"] == "late").collect();
    assert_eq!(said.len(), 1, "told by one host: {said:#?}");
    assert_eq!(said[0]["count"], without_run.len());

    let without_run = wait_until_accounted(database, "never", last);
    assert!(database.runs_of("never").iter().all(|run| run.trigger == "schedule"));
    let ranges = database.missed_ranges("never");
    assert_eq!(ranges.len(), 1, "{ranges:#?}");
    assert_eq!((ranges[0].reason.as_str(), ranges[0].count as usize), ("no_catch_up", without_run.len()));
    fleet.ledger().read().assert_each_trigger_ran_once();
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn the_last_trigger_of_a_year_that_came_while_the_daemon_was_away_runs_late_and_nothing_is_refused() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let at = Utc::now() + TimeDelta::seconds(6);
    let last = at.format("%-S %-M %-H %-d %-m * %Y").to_string();
    let schedule = Schedule::new(&fleet, &database).job("last", &last, "true", &["catch_up_max_age = \"1h\""]).job(
        "other",
        EVERY_SECOND,
        "true",
        &[],
    );
    fleet.start(&["a"], |host| schedule.on(host));
    database.wait_for_run("other", "runs", |run| run.state == "succeeded");
    fleet["a"].signal(Signal::TERM);
    assert!(fleet["a"].wait_exit(PATIENCE).success());
    assert!(Utc::now() < at, "the machine is too slow for this test: it was to stop before {at}");
    eventually("the instant has come and gone", PATIENCE, || Utc::now() > at + TimeDelta::seconds(1));
    fleet.launch("a");
    let late = database.wait_for_run("last", "runs late", |run| run.state == "succeeded");
    assert_eq!((late.trigger.as_str(), late.scheduled_at.timestamp()), ("catch_up", at.timestamp()));
    fleet.drain(PATIENCE);
}

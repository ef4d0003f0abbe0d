//! PostgreSQL is away while jobs run: shorter than they survive, longer, and for one session only.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronlatch::lock::LeaseTiming;

use crate::accounting::wait_until_accounted;
use crate::jobs::{first_run_endures, first_run_holds, let_go, run_of, short, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::ledger::{Entry, Mark};
use crate::support::machine::{is_alive, uptime, uptime_of};
use crate::support::postgres::{Cluster, Shutdown};
use crate::support::proxy::{Mode, Proxy};
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually, eventually_some, stays};

const HOSTS: [&str; 2] = ["a", "b"];

/// Until the database says so, whatever the tests' machine does.
const OVER: Duration = Duration::from_secs(1);

#[test]
fn a_restart_of_the_database_that_is_short_enough_stops_no_job() {
    let mut cluster = Cluster::start();
    let mut fleet = Fleet::new();
    let database = Database::postgres_in(&cluster);
    let (ttl, heartbeat, kill_grace) = (9_000, 1_000, 500);
    let schedule = Schedule::new(&fleet, &database)
        .timing(ttl, heartbeat, kill_grace)
        .job("one", EVERY_SECOND, &first_run_holds(&fleet, "one"), &[])
        .job("two", EVERY_SECOND, &first_run_holds(&fleet, "two"), &[])
        .job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&HOSTS, |host| schedule.on(host));
    let running = [wait_for_beat(&fleet, "one"), wait_for_beat(&fleet, "two")];
    let all_live = || running.iter().all(|entry| is_alive(entry.pid));

    let survived = LeaseTiming::new(schedule.ttl(), schedule.heartbeat(), schedule.kill_grace()).unwrap();
    let survived = survived.survived_outage();
    let away = uptime();
    cluster.stop(Shutdown::Immediate);
    stays("the jobs go on without the database", survived / 3, all_live);
    cluster.start_again();
    let away_for = uptime() - away;
    assert!(away_for < survived, "the server took too long to start: away for {away_for:?} of {survived:?}");
    let back_at = Utc::now();
    for job in ["job:one", "job:two"] {
        let renewed = || database.lock(job).is_some_and(|row| !row.is_released && row.renewed_at > back_at);
        eventually(format!("{job} is renewed"), PATIENCE, renewed);
    }
    // Past any deadline from before.
    let old_leases_are_over = back_at + TimeDelta::from_std(schedule.ttl()).unwrap();
    stays("the jobs still go on", schedule.ttl(), || Utc::now() > old_leases_are_over || all_live());
    let_go(&fleet);

    for entry in &running {
        let ended = |run: &Run| run.id == entry.run && run.is_final();
        let run = database.wait_for_run(&entry.job, "ends", ended);
        assert_eq!((run.state.as_str(), run.attempt, run.token), ("succeeded", 1, Some(entry.token)), "{run:#?}");
    }
    for daemon in fleet.daemons() {
        assert_eq!(daemon.log().events("database.lost").len(), 1, "it is said once");
        daemon.wait_for_event("database.recovered", |_| true);
        assert!(daemon.log().events("run.lost").is_empty() && daemon.log().events("lock.lost").is_empty());
    }
    let later = database.wait_for_run("tick", "after the outage", |run| {
        run.scheduled_at > old_leases_are_over && run.state == "succeeded"
    });
    wait_until_accounted(&database, "tick", later.scheduled_at);
    let entries = fleet.ledger().read();
    assert_eq!(entries.marked(Mark::Term).count(), 0);
    entries.assert_locks_held();
    entries.assert_each_trigger_ran_once();
}

#[test]
fn in_a_longer_outage_every_job_is_dead_before_its_lock_could_be_taken_and_then_all_goes_on() {
    let mut cluster = Cluster::start();
    let proxy = Proxy::to_port(cluster.port());
    let mut fleet = Fleet::new();
    let database = Database::postgres_in(&cluster);
    let schedule = Schedule::new(&fleet, &database)
        .url(proxy.url(database.url()))
        .timing(6_000, 1_000, 800)
        .job("one", EVERY_SECOND, &first_run_endures(&fleet, "one"), &[])
        .job("two", EVERY_SECOND, &first_run_endures(&fleet, "two"), &[])
        .job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&HOSTS, |host| schedule.on(host));
    let running = [wait_for_beat(&fleet, "one"), wait_for_beat(&fleet, "two")];
    wait_for_start(&fleet, "tick");

    // First the way to the server is cut, so that the rows can be read after the last renewal.
    proxy.set(Mode::Reset);
    let sessions = "SELECT count(*)::text FROM pg_stat_activity WHERE application_name LIKE 'cronlatch %'";
    eventually("no daemon has a session", PATIENCE, || database.query(sessions) == ["0"]);
    let away_at = Utc::now();
    let expiries = running.each_ref().map(|entry| database.lock(&format!("job:{}", entry.job)).unwrap().expires_at);
    cluster.stop(Shutdown::Immediate);
    for (entry, expires_at) in running.iter().zip(expiries) {
        eventually(format!("{} is dead", entry.job), PATIENCE, || !is_alive(entry.pid));
        check_end(&fleet, entry, expires_at, &schedule);
    }
    let all_expired = expiries.into_iter().max().unwrap() + TimeDelta::from_std(OVER).unwrap();
    eventually("all leases are over", PATIENCE, || Utc::now() > all_expired);
    cluster.start_again();
    proxy.set(Mode::Ok);
    let back_at = Utc::now();

    for entry in &running {
        database.wait_for_run(&entry.job, "is lost", |run| run.id == entry.run && run.state == "lost");
        database.wait_for_run(&entry.job, "runs again", |run| run.scheduled_at > back_at && run.state == "succeeded");
    }
    let late = database.wait_for_run("tick", "after the outage", |run| {
        run.scheduled_at > back_at + TimeDelta::seconds(6) && run.state == "succeeded"
    });
    let without_run = wait_until_accounted(&database, "tick", late.scheduled_at);
    assert!(!without_run.is_empty(), "triggers of the outage are missed");
    for job in ["one", "two", "tick"] {
        let late: Vec<_> = database.runs_of(job).into_iter().filter(|run| is_late(run, away_at, back_at)).collect();
        let caught_up = late.iter().filter(|run| run.trigger == "catch_up").count();
        // The newest that was pending on either host; what was given up before has been superseded.
        assert!(late.len() <= 2 && caught_up == 0, "a burst of {job}: {late:#?}");
    }
    let entries = fleet.ledger().read();
    entries.assert_locks_held();
    entries.assert_each_trigger_ran_once();
}

/// Whether a run is of a trigger of the outage, and was granted after it.
fn is_late(run: &Run, away_at: DateTime<Utc>, back_at: DateTime<Utc>) -> bool {
    run.scheduled_at > away_at && run.scheduled_at < back_at && run.claimed_at > Some(back_at)
}

/// A job that ignores SIGTERM got it, and was killed before its lock expired.
fn check_end(fleet: &Fleet, entry: &Entry, expires_at: DateTime<Utc>, schedule: &Schedule) {
    let entries = fleet.ledger().read();
    let told = entries.of_run(&entry.run).find(|entry| entry.mark == Mark::Term).expect("TERM comes first");
    let last = entries.of_run(&entry.run).last().unwrap();
    let expiry = uptime_of(expires_at);
    assert!(last.at < expiry, "{} lived at {:?}, its lock was free from {expiry:?} on", entry.job, last.at);
    let grace = last.at.saturating_sub(told.at);
    assert!(grace >= schedule.kill_grace() / 2, "{} had a grace of only {grace:?}", entry.job);
}

#[test]
fn an_outage_in_the_first_seconds_of_the_daemons_swallows_no_trigger() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let proxy = Proxy::to_port(Cluster::shared().port());
    let schedule =
        Schedule::new(&fleet, &database).url(proxy.url(database.url())).job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&HOSTS, |host| schedule.on(host));
    wait_for_start(&fleet, "tick");
    // Over before the daemons look for what nobody ran before their start.
    proxy.set(Mode::Reset);
    let back_at = Utc::now() + TimeDelta::milliseconds(3_500);
    eventually("the outage is over", PATIENCE, || Utc::now() > back_at);
    proxy.set(Mode::Ok);
    let later = database.wait_for_run("tick", "after the outage", |run| run.scheduled_at > back_at && run.is_final());
    wait_until_accounted(&database, "tick", later.scheduled_at);
    let late = database.runs_of("tick").into_iter().filter(|run| run.trigger == "catch_up").count();
    assert_eq!(late, 0, "a newer trigger has run: nothing is run after it");
}

#[test]
fn leases_are_renewed_over_a_new_connection_when_the_one_of_the_heartbeats_hangs() {
    let mut fleet = Fleet::new();
    let cluster = Cluster::start();
    let database = Database::postgres_in(&cluster);
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &first_run_holds(&fleet, "job"), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    wait_for_renewals(&database, 1, &running);

    let of_heartbeat = "SELECT pid::text FROM pg_stat_activity WHERE application_name = 'cronlatch a' \
                        AND state = 'idle' AND query LIKE '%renewed%'";
    // Stopped between two statements: in the middle of one it might hold the row itself.
    let paused = eventually_some("the session of the heartbeats is idle", PATIENCE, || {
        let pid = database.query(of_heartbeat).first()?.parse().ok()?;
        let paused = cluster.pause_backend(pid);
        let still_idle = database.query(of_heartbeat).iter().any(|idle| *idle == pid.to_string());
        still_idle.then_some(paused)
    });
    let renewals = (schedule.ttl().as_millis() / schedule.heartbeat().as_millis()) as usize + 2;
    wait_for_renewals(&database, renewals, &running);
    assert!(is_alive(running.pid));
    paused.resume();
    let_go(&fleet);
    let ended = database.wait_for_run("job", "ends", |run| run.id == running.run && run.is_final());
    assert_eq!((ended.state.as_str(), ended.token), ("succeeded", Some(running.token)));
}

#[test]
fn no_session_of_a_daemon_is_needed_for_its_leases() {
    let mut fleet = Fleet::new();
    let cluster = Cluster::start();
    let database = Database::postgres_in(&cluster);
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &first_run_holds(&fleet, "job"), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    wait_for_renewals(&database, 1, &running);

    let of_daemon = "SELECT pid::text FROM pg_stat_activity WHERE application_name = 'cronlatch a'";
    for pid in database.query(of_daemon) {
        let paused = cluster.pause_backend(pid.parse().unwrap());
        wait_for_renewals(&database, 3, &running);
        drop(paused);
    }
    assert!(is_alive(running.pid));
    let_go(&fleet);
    let ended = database.wait_for_run("job", "ends", |run| run.id == running.run && run.is_final());
    assert_eq!((ended.state.as_str(), ended.token), ("succeeded", Some(running.token)));
    assert_eq!(run_of(&database, &running).attempt, 1);
}

/// Waits until the lock of a run was renewed so many times more.
#[track_caller]
fn wait_for_renewals(database: &Database, times: usize, entry: &Entry) {
    let mut last = None;
    for _ in 0..=times {
        let renewed = || {
            let row = database.lock(&entry.lock)?;
            assert_eq!((row.token, row.is_released), (entry.token, false), "the lock is still the run's");
            (Some(row.renewed_at) != last).then_some(row.renewed_at)
        };
        last = Some(eventually_some(format!("{} is renewed", entry.lock), PATIENCE, renewed));
    }
}

#[track_caller]
fn wait_for_start(fleet: &Fleet, job: &str) {
    let started = || fleet.ledger().read().marked(Mark::Start).any(|entry| entry.job == job);
    eventually(format!("{job} has run"), PATIENCE, started);
}

//! The database does what it was asked for, and its answer is lost.

use chrono::{TimeDelta, Timelike, Utc};

use crate::accounting::wait_until_accounted;
use crate::jobs::{first_run_holds, short, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::postgres::Cluster;
use crate::support::proxy::{Mode, Proxy};
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually, eventually_some};

/// Enough that some of them are claimed first by either host at each second.
const JOBS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

#[test]
fn a_claim_whose_answer_comes_late_runs_all_the_same() {
    let (database, granted) = lose_answers(TimeDelta::zero());
    let run = database.wait_for_run(&granted.job, "ends", |run| run.id == granted.id && run.is_final());
    assert_eq!(run.state, "succeeded", "{run:#?}");
}

#[test]
fn claims_whose_answers_are_lost_for_longer_than_a_lock_lives_neither_run_twice_nor_are_lost_in_silence() {
    // Longer than a call may take, too.
    let (database, granted) = lose_answers(TimeDelta::seconds(6));
    let run = database.wait_for_run(&granted.job, "is over", |run| run.id == granted.id && run.is_final());
    assert_eq!(run.state, "lost", "{run:#?}");
}

/// Two daemons, one of which is granted a claim whose answer it gets only after a while, if at all.
fn lose_answers(for_more_than: TimeDelta) -> (Database, Run) {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let proxy = Proxy::to_port(Cluster::shared().port());
    let schedule = JOBS
        .iter()
        .fold(Schedule::new(&fleet, &database), |schedule, job| schedule.job(job, EVERY_SECOND, &short(&fleet), &[]));
    // Idle connections enough that a claim need not wait for one that hangs.
    let more = "[database]\nmax_connections = 20\n";
    let through_proxy = schedule.clone().url(proxy.url(database.url()));
    fleet.start(&["a", "b"], |host| {
        let schedule = if host == "a" { &through_proxy } else { &schedule };
        schedule.on(host).replace("[database]\n", more)
    });
    for host in ["a", "b"] {
        wait_for_any(&database, "ran on each host", |run| {
            run.state == "succeeded" && run.host.as_deref() == Some(host)
        });
    }

    let granted = eventually_some("a claim was granted without an answer", 2 * PATIENCE, || {
        proxy.set(Mode::Ok);
        // Right before the claims: what asks in between would use the idle connections up.
        eventually("the end of a second", PATIENCE, || Utc::now().nanosecond() > 950_000_000);
        proxy.set(Mode::StallDown);
        let stalled_at = Utc::now();
        eventually("the claims are made", PATIENCE, || Utc::now() > stalled_at + TimeDelta::milliseconds(700));
        let on_a = |run: &Run| run.host.as_deref() == Some("a") && run.claimed_at > Some(stalled_at);
        database.runs().into_iter().find(on_a)
    });
    assert!(fleet["a"].log().events("run.started").iter().all(|event| event["run"] != granted.id.as_str()));
    let enough = granted.claimed_at.unwrap() + for_more_than;
    eventually("the answers stay away", PATIENCE, || Utc::now() > enough);
    proxy.set(Mode::Ok);
    let later = Utc::now() + TimeDelta::seconds(3);
    let last = wait_for_any(&database, "ran on the host that is back", |run| {
        run.host.as_deref() == Some("a") && run.scheduled_at > later && run.state == "succeeded"
    });

    for job in JOBS {
        wait_until_accounted(&database, job, last.scheduled_at);
    }
    let entries = fleet.ledger().read();
    entries.assert_each_trigger_ran_once();
    entries.assert_locks_held();
    (database, granted)
}

#[track_caller]
fn wait_for_any(database: &Database, what: &str, pred: impl Fn(&Run) -> bool) -> Run {
    eventually_some(format!("a run that {what}"), PATIENCE, || database.runs().into_iter().find(&pred))
}

#[test]
fn a_waiting_run_that_was_taken_without_an_answer_runs_all_the_same() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let proxy = Proxy::to_port(Cluster::shared().port());
    let line = first_run_holds(&fleet, "job");
    let schedule = Schedule::new(&fleet, &database).timing(20_000, 5_000, 500).job(
        "job",
        EVERY_SECOND,
        &line,
        &["overlap = \"wait\""],
    );
    fleet.start(&["b"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    let through_proxy = schedule.clone().url(proxy.url(database.url()));
    fleet.start(&["a"], |host| through_proxy.on(host));
    fleet.wait_until_up();
    database.wait_for_run("job", "waits", |run| run.state == "waiting");
    fleet["b"].kill9();

    // What is asked of the job waits for this, until its answer can be held back.
    let gate = "1668246382, hashtext('job')";
    let asked = "SELECT pid::text FROM pg_stat_activity WHERE application_name = 'cronlatch a' \
                 AND wait_event_type = 'Lock' AND query LIKE '%cronlatch_take%'";
    database.query(&format!("SELECT pg_advisory_lock({gate})::text"));
    database.query(&format!(
        "WITH freed AS (UPDATE distributed_locks SET expires_at = 'epoch', released_at = now() WHERE token = {} \
         RETURNING resource) SELECT resource FROM freed",
        running.token
    ));
    let taken = eventually_some("a run was taken without an answer", 2 * PATIENCE, || {
        eventually("it is asked for", PATIENCE, || !database.query(asked).is_empty());
        proxy.set(Mode::StallDown);
        database.query(&format!("SELECT pg_advisory_unlock({gate})::text"));
        eventually("it is done", PATIENCE, || database.query(asked).is_empty());
        // Nothing of the job moves from here on, so what is not taken now is not being taken.
        database.query(&format!("SELECT pg_advisory_lock({gate})::text"));
        let is_taken = |run: &Run| run.state == "claimed" && run.id != running.run;
        let taken = database.runs_of("job").into_iter().find(is_taken);
        if taken.is_none() {
            proxy.set(Mode::Ok);
        }
        taken
    });
    database.query(&format!("SELECT pg_advisory_unlock({gate})::text"));
    let given_up = Utc::now() + TimeDelta::seconds(6);
    eventually("nobody waits for the answer any more", PATIENCE, || Utc::now() > given_up);
    assert!(fleet["a"].log().events("run.started").iter().all(|event| event["run"] != taken.id.as_str()));
    proxy.set(Mode::Ok);
    let ended = database.wait_for_run("job", "ends", |run| run.id == taken.id && run.is_final());
    assert_eq!((ended.state.as_str(), ended.host.as_deref()), ("succeeded", Some("a")), "{ended:#?}");
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn connections_that_break_at_any_byte_let_no_trigger_run_twice_or_be_lost() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let proxy = Proxy::to_port(Cluster::shared().port());
    let schedule = Schedule::new(&fleet, &database)
        .url(proxy.url(database.url()))
        .job("tick", EVERY_SECOND, &short(&fleet), &[])
        .job("tock", EVERY_SECOND, &short(&fleet), &["overlap = \"wait\"", "on_crash = \"rerun\""]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    fleet.wait_until_up();
    for bytes in [0, 1, 60, 150, 300, 500, 900, 1_500, 2_500, 4_000] {
        proxy.set(Mode::CutAfter(bytes));
        eventually("so many bytes have passed", PATIENCE, || proxy.mode() == Mode::Reset);
        let cut_at = Utc::now();
        proxy.set(Mode::Ok);
        for job in ["tick", "tock"] {
            database.wait_for_run(job, "after the cut", |run| run.scheduled_at > cut_at && run.state == "succeeded");
        }
    }
    let last = Utc::now() - TimeDelta::seconds(2);
    for job in ["tick", "tock"] {
        wait_until_accounted(&database, job, last);
    }
    fleet.drain(PATIENCE);
    let entries = fleet.ledger().read();
    entries.assert_locks_held();
    // A lost run of the other job may run again: that is what it asks for.
    let twice: Vec<_> =
        entries.runs_per_trigger().into_iter().filter(|((job, _), n)| job == "tick" && *n > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

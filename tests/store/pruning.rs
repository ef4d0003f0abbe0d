//! What becomes of old history: it goes in steps, and nothing that went can be run again.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronlatch::job::JobName;
use cronlatch::store::{Claimed, Ending, JobSeen, ProgressQuery, Pruned, Retention, RunKey};
use cronlatch::trigger::{RunState, Target};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    runs_older_than_they_are_kept_go,
    a_run_that_is_open_or_younger_than_the_horizon_never_goes,
    a_trigger_whose_run_was_pruned_can_not_be_claimed_again,
    runs_beyond_the_count_go_but_failures_losses_and_the_last_success_stay,
    a_failed_attempt_goes_with_a_later_one_that_did_not_fail,
    requests_go_with_the_history_and_are_closed_when_their_run_is_over,
    the_count_is_each_jobs_own,
    old_released_locks_go_and_no_token_falls,
    old_ranges_go,
    a_step_is_bounded_and_says_where_to_go_on,
    hosts_that_prune_at_once_never_meet_an_error,
    watermarks_of_hosts_that_are_gone_for_long_go,
    a_watermark_that_a_returning_host_registers_stays,
    what_was_pruned_is_forgotten_for_every_target,
);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn day(number: i64) -> DateTime<Utc> {
    noon() + TimeDelta::days(number)
}

fn keep(days: u32) -> Retention {
    Retention { keep: days * DAY, keep_runs: 1_000_000, horizon: DAY, after: None }
}

/// A run of `backup` at an instant, over at once.
async fn run_at(db: &TestDb, host: &Host, at: DateTime<Utc>, state: RunState) -> RunKey {
    db.freeze_clock(at).await;
    let run = host.run(&host.claim("backup", at)).await;
    host.store.finish(&run, &Ending { finished_at: at, ..ending(state) }, &[]).await.unwrap();
    run
}

/// The instants of what is left of a job, in days, oldest first.
async fn left(host: &Host, name: &str) -> Vec<i64> {
    let rows = host.store.history(&everything()).await.unwrap();
    let of_job = rows.iter().filter(|row| row.job == name);
    let mut days: Vec<_> = of_job.map(|row| (row.scheduled_at - noon()).num_days()).collect();
    days.sort_unstable();
    days
}

async fn runs_older_than_they_are_kept_go(db: &TestDb) {
    let host = Host::new(db, "web-1");
    for number in 0..5 {
        run_at(db, &host, day(number), RunState::Failed).await;
    }
    db.freeze_clock(day(5) + MILLISECOND).await;
    assert_eq!(host.store.prune(&keep(3)).await.unwrap().runs, 3);
    assert_eq!(left(&host, "backup").await, [3, 4]);
    assert_eq!(host.store.prune(&keep(3)).await.unwrap(), Pruned::default());
}

async fn a_run_that_is_open_or_younger_than_the_horizon_never_goes(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(day(0)).await;
    register_long_ago(db, &host, "backup", "digest").await;
    for (name, state) in [("waiting", "waiting"), ("claimed", "claimed"), ("running", "running")] {
        let run = host.run(&host.claim(name, day(0))).await;
        db.sql(format!("UPDATE runs SET state = '{state}' WHERE id = '{}'", run.run)).await;
    }
    db.freeze_clock(day(100)).await;
    run_at(db, &host, day(100), RunState::Succeeded).await;
    run_at(db, &host, day(100) + SECOND, RunState::Succeeded).await;
    db.freeze_clock(day(101)).await;
    let nothing_kept = Retention { keep: Duration::ZERO, keep_runs: 0, horizon: 2 * DAY, after: None };
    assert_eq!(host.store.prune(&nothing_kept).await.unwrap().runs, 0);
    assert_eq!(db.count("runs", "1 = 1").await, 5);
}

async fn a_trigger_whose_run_was_pruned_can_not_be_claimed_again(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(day(0)).await;
    register_long_ago(db, &host, "backup", "digest").await;
    for number in 0..3 {
        run_at(db, &host, day(number), RunState::Succeeded).await;
    }
    db.freeze_clock(day(4)).await;
    assert_eq!(host.store.prune(&keep(2)).await.unwrap().runs, 2);
    for number in [-1, 0, 1] {
        let answer = host.store.claim(&host.claim("backup", day(number))).await.unwrap();
        assert_eq!(answer, Claimed::Forgotten, "day {number}");
    }
    let answer = host.store.claim(&host.claim("backup", day(2))).await.unwrap();
    assert!(matches!(answer, Claimed::AlreadyClaimed { .. }), "{answer:?}");
    host.run(&host.claim("backup", day(3))).await;
}

async fn runs_beyond_the_count_go_but_failures_losses_and_the_last_success_stay(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(day(-1)).await;
    register_long_ago(db, &host, "backup", "digest").await;
    let states = [
        RunState::Succeeded,
        RunState::Failed,
        RunState::Lost,
        RunState::Succeeded,
        RunState::Cancelled,
        RunState::Failed,
        RunState::Failed,
    ];
    for (number, state) in (0..).zip(states) {
        run_at(db, &host, day(number), state).await;
    }
    db.freeze_clock(day(20)).await;
    let two = Retention { keep_runs: 2, ..keep(1000) };
    assert_eq!(host.store.prune(&two).await.unwrap().runs, 2);
    assert_eq!(left(&host, "backup").await, [1, 2, 3, 5, 6]);
    assert_eq!(host.store.claim(&host.claim("backup", day(4))).await.unwrap(), Claimed::Forgotten);
}

/// What came of the trigger is told by its last attempt: without that, the others would lie.
async fn a_failed_attempt_goes_with_a_later_one_that_did_not_fail(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(day(-1)).await;
    register_long_ago(db, &host, "backup", "digest").await;
    for (number, state) in (0..).zip([RunState::Succeeded, RunState::Cancelled, RunState::Failed, RunState::Succeeded])
    {
        db.freeze_clock(day(number)).await;
        let run = host.run(&host.claim("backup", day(number))).await;
        let next = next_attempt(&run);
        host.store.retry(&run, &Ending { finished_at: day(number), ..failure() }, next.run).await.unwrap();
        host.store.finish(&next, &Ending { finished_at: day(number), ..ending(state) }, &[]).await.unwrap();
    }
    db.freeze_clock(day(20)).await;
    let none = Retention { keep_runs: 0, ..keep(1000) };
    assert_eq!(host.store.prune(&none).await.unwrap().runs, 5);
    // Both failures of day 2, and the last success.
    assert_eq!(left(&host, "backup").await, [2, 2, 3]);
    assert_eq!(host.store.prune(&none).await.unwrap().runs, 0);
    assert_eq!(host.store.claim(&host.claim("backup", day(0))).await.unwrap(), Claimed::Forgotten);
}

async fn requests_go_with_the_history_and_are_closed_when_their_run_is_over(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(day(0)).await;
    let mut runs = Vec::new();
    for name in ["ended", "under way", "lost"] {
        let run = host.run(&host.claim(name, day(0))).await;
        host.store.request_cancel(run.run, &cancel()).await.unwrap();
        runs.push(run);
    }
    host.store.finish(&runs[0], &Ending { finished_at: day(0), ..ending(RunState::Cancelled) }, &[]).await.unwrap();
    db.sql(format!("UPDATE runs SET state = 'lost', finished_at = created_at WHERE id = '{}'", runs[2].run)).await;
    db.freeze_clock(day(1)).await;
    host.store.prune(&keep(3)).await.unwrap();
    assert_eq!(db.count("requests", &format!("outcome = 'over' AND done_at = '{}'", text(day(1)))).await, 2);
    db.freeze_clock(day(4) + SECOND).await;
    host.store.prune(&keep(3)).await.unwrap();
    let left = db.sql("SELECT run FROM requests").await;
    assert_eq!(left, [runs[1].run.to_string()], "it is open");
}

async fn the_count_is_each_jobs_own(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(day(9)).await;
    for name in ["backup", "restore"] {
        register_long_ago(db, &host, name, "digest").await;
    }
    for (name, runs) in [("backup", 5), ("restore", 2)] {
        for number in 0..runs {
            let run = host.run(&host.claim(name, day(number))).await;
            host.store.finish(&run, &ending(RunState::Skipped), &[]).await.unwrap();
        }
    }
    let three = Retention { keep_runs: 3, ..keep(1000) };
    assert_eq!(host.store.prune(&three).await.unwrap(), Pruned { runs: 2, next: None });
    assert_eq!(left(&host, "backup").await, [2, 3, 4]);
    assert_eq!(left(&host, "restore").await, [0, 1]);
}

async fn old_released_locks_go_and_no_token_falls(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(day(0)).await;
    let released = acquire(&store, "released", "a").await;
    store.release(&resource("released"), &owner("a"), None).await.unwrap();
    acquire(&store, "expired", "a").await;
    db.freeze_clock(day(9)).await;
    acquire(&store, "released just now", "a").await;
    store.release(&resource("released just now"), &owner("a"), None).await.unwrap();
    acquire(&store, "held", "a").await;
    store.prune(&keep(3)).await.unwrap();
    let left = db.sql("SELECT resource FROM distributed_locks ORDER BY resource").await;
    // What nobody released still says from whom it will be taken over.
    assert_eq!(left, ["expired", "held", "released just now"]);
    assert!(acquire(&store, "released", "b").await.token > released.token);
}

async fn old_ranges_go(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(day(9)).await;
    for recorded_at in [day(0), day(8)] {
        let at = text(recorded_at);
        db.sql(format!(
            "INSERT INTO trigger_ranges (job, kind, reason, range_from, range_to, count, recorded_at) \
             VALUES ('backup', 'missed', 'too_old', '{at}', '{at}', 1, '{at}')"
        ))
        .await;
    }
    store.prune(&keep(3)).await.unwrap();
    assert_eq!(db.count("trigger_ranges", &format!("recorded_at = '{}'", text(day(8)))).await, 1);
    assert_eq!(db.count("trigger_ranges", "1 = 1").await, 1);
}

/// Rows as they would be after a long time: `runs` of each of `jobs`, an hour apart, all over.
async fn make_history(db: &TestDb, jobs: usize, runs: i64) -> Vec<JobName> {
    let names: Vec<_> = (0..jobs).map(|number| job(&format!("job-{number:03}"))).collect();
    let rows = names.iter().map(|name| format!("('{name}', 'digest')"));
    let rows = rows.collect::<Vec<_>>().join(", ");
    db.sql(format!("INSERT INTO jobs (name, digest) VALUES {rows}")).await;
    for number in 0..runs {
        let at = text(noon() + TimeDelta::hours(number));
        let rows = names.iter().map(|name| {
            let id = cronlatch::trigger::RunId::generate();
            format!("('{id}', '{name}', '{at}', 'schedule', 'succeeded', '{at}', '{at}', 'r', 0, '{at}')")
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        db.sql(format!(
            "INSERT INTO runs (id, job, scheduled_at, trigger, state, created_at, finished_at, resource, \
             start_deadline_ms, start_by) VALUES {rows}"
        ))
        .await;
    }
    names
}

async fn a_step_is_bounded_and_says_where_to_go_on(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(day(30)).await;
    let names = make_history(db, 60, 30).await;
    let ten = Retention { keep_runs: 10, ..keep(1000) };
    let first = store.prune(&ten).await.unwrap();
    assert_eq!(first, Pruned { runs: 50 * 20, next: Some(names[49].clone()) });
    let second = store.prune(&Retention { after: first.next, ..ten }).await.unwrap();
    assert_eq!(second, Pruned { runs: 10 * 20, next: None });
    assert_eq!(db.count("runs", "1 = 1").await, 600);
    db.sql("DELETE FROM runs; DELETE FROM jobs").await;
    make_history(db, 100, 12).await;
    assert_eq!(store.prune(&keep(3)).await.unwrap().runs, 1000);
    assert_eq!(store.prune(&keep(3)).await.unwrap().runs, 200);
}

async fn hosts_that_prune_at_once_never_meet_an_error(db: &TestDb) {
    let stores = warm_stores(db, 4).await;
    db.freeze_clock(day(30)).await;
    make_history(db, 100, 60).await;
    let pruning = stores.into_iter().map(|store| async move {
        let mut runs = 0;
        for _ in 0..4 {
            runs += store.prune(&keep(3)).await.unwrap().runs;
        }
        runs
    });
    let gone: u64 = at_once(pruning).await.into_iter().sum();
    assert_eq!(gone + db.count("runs", "1 = 1").await, 6000);
    assert_eq!(db.count("jobs", "pruned_through IS NOT NULL").await, 100);
    assert_eq!(db.errors_logged(), [""; 0]);
}

/// A job that each host runs.
fn of_every_host(host: &Host, name: &str) -> JobSeen {
    JobSeen { target: Target::from_column(host.name.as_str()), ..seen(name, "digest") }
}

async fn watermarks_of_hosts_that_are_gone_for_long_go(db: &TestDb) {
    let (stays, goes, crashes) = (Host::new(db, "stays"), Host::new(db, "goes"), Host::new(db, "crashes"));
    db.freeze_clock(day(0)).await;
    for host in [&stays, &goes, &crashes] {
        host.beat().await;
        let jobs = [of_every_host(host, "rotate"), of_every_host(host, "taken out"), seen("backup", "digest")];
        host.store.register(host.instance, &jobs).await.unwrap();
    }
    // Up for a long time without a reload, and then gone.
    let jobs = [of_every_host(&stays, "rotate"), seen("backup", "digest")];
    stays.store.register(stays.instance, &jobs).await.unwrap();
    for number in 1..=40 {
        db.freeze_clock(day(number)).await;
        for host in [&stays, &goes, &crashes] {
            host.beat().await;
        }
        stays.store.prune(&keep(10)).await.unwrap();
    }
    goes.store.leave(goes.instance).await.unwrap();
    let left = async || db.sql("SELECT job, target FROM job_progress ORDER BY job, target").await;
    let of_stays = ["backup|", "rotate|stays"];
    let all = ["backup|", "rotate|crashes", "rotate|goes", "rotate|stays", "taken out|crashes", "taken out|goes"];
    assert_eq!(left().await, all);
    for (number, expected) in [(48, &all[..]), (49, &all[..]), (53, &of_stays[..]), (200, &of_stays[..])] {
        db.freeze_clock(day(number)).await;
        stays.beat().await;
        stays.store.prune(&keep(10)).await.unwrap();
        assert_eq!(left().await, expected, "day {number}");
    }
}

async fn a_watermark_that_a_returning_host_registers_stays(db: &TestDb) {
    let (host, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(day(0)).await;
    let jobs = [of_every_host(&host, "rotate")];
    host.store.register(host.instance, &jobs).await.unwrap();
    // Back after a year, and before its first beat another one prunes.
    db.freeze_clock(day(365)).await;
    let again = Host::new(db, "web-1");
    again.store.register(again.instance, &jobs).await.unwrap();
    other.store.prune(&keep(10)).await.unwrap();
    let asked = [ProgressQuery { job: job("rotate"), target: jobs[0].target.clone() }];
    assert_eq!(host.store.progress(&asked).await.unwrap()[0].caught_up_through, day(0));
}

async fn what_was_pruned_is_forgotten_for_every_target(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(day(-1)).await;
    for host in [&one, &other] {
        host.store.register(host.instance, &[of_every_host(host, "backup")]).await.unwrap();
    }
    let claim = |host: &Host, at| {
        let mut claim = host.claim("backup", at);
        claim.trigger.target = Target::from_column(host.name.as_str());
        claim.claimant.resource = resource(&format!("job:backup@{}", host.name));
        claim
    };
    for number in 0..4 {
        db.freeze_clock(day(number)).await;
        let run = one.run(&claim(&one, day(number))).await;
        one.store.finish(&run, &Ending { finished_at: day(number), ..success() }, &[]).await.unwrap();
    }
    db.freeze_clock(day(4)).await;
    assert_eq!(one.store.prune(&keep(2)).await.unwrap().runs, 2);
    for host in [&one, &other] {
        assert_eq!(host.store.claim(&claim(host, day(1))).await.unwrap(), Claimed::Forgotten);
        let asked = [ProgressQuery { job: job("backup"), target: Target::from_column(host.name.as_str()) }];
        let found = host.store.progress(&asked).await.unwrap().remove(0);
        assert_eq!((found.caught_up_through, found.settled_through), (day(-1), day(1)));
    }
    other.run(&claim(&other, day(2))).await;
}

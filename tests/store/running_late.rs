//! Runs that catch-up makes wait: not before their time, and oldest first.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronlatch::store::{CatchUpPlan, Claim, LateRun, Taken};
use cronlatch::trigger::{RunId, RunState, Target, TriggerKind};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    late_runs_wait_with_their_own_times,
    a_run_is_not_listed_nor_taken_before_its_time,
    late_runs_are_taken_oldest_first,
    an_older_late_run_whose_time_has_not_come_holds_the_younger_off,
    an_older_late_run_that_is_overdue_holds_nobody_off,
    late_runs_of_other_jobs_and_targets_hold_nobody_off,
    a_run_that_is_not_late_holds_no_late_one_off,
    a_late_run_given_back_is_first_again,
    of_ten_takers_of_three_late_runs_one_has_the_oldest,
    a_run_for_one_host_is_listed_there_alone,
    late_runs_keep_their_distance_from_the_start_of_the_one_before,
    a_late_run_that_starts_on_time_moves_nothing,
    a_late_run_taken_twice_moves_those_after_it_by_the_time_between,
    a_late_run_moves_no_run_but_those_of_its_plan,
    a_run_that_is_not_late_moves_no_late_one,
);

fn minute(number: i64) -> DateTime<Utc> {
    noon() + TimeDelta::minutes(number)
}

fn late(number: i64, not_before: Option<Duration>) -> LateRun {
    LateRun {
        run: RunId::generate(),
        scheduled_at: minute(number),
        resource: resource("job:backup"),
        not_before,
        waits: 4 * TTL,
        start_deadline: TTL,
        reruns_left: 1,
    }
}

/// A host on which these are to run late, as of an hour past noon; and that instant.
async fn with_late_runs(db: &TestDb, late: Vec<LateRun>) -> (Host, DateTime<Utc>) {
    db.freeze_clock(noon()).await;
    let host = Host::new(db, "web-1");
    host.register("backup", "digest").await;
    catch_up(db, &host, noon(), minute(59), late).await;
    (host, minute(60))
}

async fn catch_up(db: &TestDb, host: &Host, from: DateTime<Utc>, through: DateTime<Utc>, late: Vec<LateRun>) {
    db.freeze_clock(minute(60)).await;
    let plan = CatchUpPlan { late, ..accounted(from, through) };
    assert!(host.store.catch_up(&plan).await.unwrap());
}

async fn listed(host: &Host) -> Vec<RunId> {
    host.store.waiting(&host.name).await.unwrap().into_iter().map(|waiting| waiting.run).collect()
}

async fn try_to_take(host: &Host, run: RunId) -> Taken {
    host.store.take(run, &host.claimant("job:backup")).await.unwrap()
}

async fn late_runs_wait_with_their_own_times(db: &TestDb) {
    let runs = vec![late(1, None), LateRun { waits: 9 * TTL, reruns_left: 0, ..late(2, Some(90 * SECOND)) }];
    let (first, second) = (runs[0].run, runs[1].run);
    let (host, now) = with_late_runs(db, runs).await;
    let rows = [row(&host.store, first).await, row(&host.store, second).await];
    for (row, number) in rows.iter().zip(1..) {
        assert_eq!((row.state, row.kind, row.attempt), (RunState::Waiting, TriggerKind::CatchUp, 1));
        assert_eq!((row.scheduled_at, row.reason.as_deref()), (minute(number), Some("catch_up")));
    }
    // Both counted from now.
    assert_eq!((rows[0].not_before, rows[0].wait_until), (None, Some(now + 4 * TTL)));
    assert_eq!((rows[1].not_before, rows[1].wait_until), (Some(now + 90 * SECOND), Some(now + 9 * TTL)));
    for (number, reruns, until) in [(1, 1, now + 4 * TTL), (2, 0, now + 9 * TTL)] {
        let found = format!(
            "scheduled_at = '{}' AND reruns_left = {reruns} AND start_deadline_ms = 60000 AND start_by = '{}'",
            text(minute(number)),
            text(until)
        );
        assert_eq!(db.count("runs", &found).await, 1, "{found}");
    }
}

async fn a_run_is_not_listed_nor_taken_before_its_time(db: &TestDb) {
    let runs = vec![late(1, Some(TTL))];
    let run = runs[0].run;
    let (host, now) = with_late_runs(db, runs).await;
    db.freeze_clock(now + TTL - MILLISECOND).await;
    assert_eq!(listed(&host).await, []);
    assert_eq!(try_to_take(&host, run).await, Taken::NotNow);
    assert!(!is_held(&host.store, "job:backup").await);
    db.freeze_clock(now + TTL).await;
    assert_eq!(listed(&host).await, [run]);
    host.take(run, "job:backup").await;
}

async fn late_runs_are_taken_oldest_first(db: &TestDb) {
    let runs = vec![late(1, None), late(2, None), late(3, None)];
    let ids: Vec<_> = runs.iter().map(|late| late.run).collect();
    let (host, _) = with_late_runs(db, runs).await;
    for place in 0..3 {
        assert_eq!(listed(&host).await, ids[place..=place]);
        for younger in &ids[place + 1..] {
            assert_eq!(try_to_take(&host, *younger).await, Taken::NotNow);
        }
        let run = host.take(ids[place], "job:backup").await;
        if let Some(next) = ids.get(place + 1) {
            // It waits for the lock now, as every run does.
            assert!(matches!(try_to_take(&host, *next).await, Taken::Held(_)));
        }
        host.store.finish(&run, &ending(RunState::Failed), &[]).await.unwrap();
    }
}

async fn an_older_late_run_whose_time_has_not_come_holds_the_younger_off(db: &TestDb) {
    let older = vec![late(1, Some(TTL))];
    let first = older[0].run;
    let (host, now) = with_late_runs(db, older).await;
    // Another outage, right after.
    let younger = late(61, None);
    let second = younger.run;
    db.freeze_clock(minute(60)).await;
    catch_up(db, &host, minute(59), minute(61), vec![younger]).await;
    assert_eq!(listed(&host).await, []);
    assert_eq!(try_to_take(&host, second).await, Taken::NotNow);
    db.freeze_clock(now + TTL).await;
    assert_eq!(listed(&host).await, [first]);
    let run = host.take(first, "job:backup").await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
    host.take(second, "job:backup").await;
}

async fn an_older_late_run_that_is_overdue_holds_nobody_off(db: &TestDb) {
    let runs = vec![LateRun { waits: TTL, ..late(1, None) }, late(2, None)];
    let (first, second) = (runs[0].run, runs[1].run);
    let (host, now) = with_late_runs(db, runs).await;
    db.freeze_clock(now + TTL - MILLISECOND).await;
    assert_eq!(listed(&host).await, [first]);
    assert_eq!(try_to_take(&host, second).await, Taken::NotNow);
    db.freeze_clock(now + TTL).await;
    // Which is listed until somebody says that it is over.
    assert_eq!(listed(&host).await, [first, second]);
    assert_eq!(try_to_take(&host, first).await, Taken::Gone);
    host.take(second, "job:backup").await;
}

async fn late_runs_of_other_jobs_and_targets_hold_nobody_off(db: &TestDb) {
    let runs = vec![late(2, None)];
    let run = runs[0].run;
    let (host, now) = with_late_runs(db, runs).await;
    let others = [("restore", ""), ("backup", "web-1")];
    for (name, target) in others {
        db.sql(format!(
            "INSERT INTO runs (id, job, scheduled_at, target, trigger, state, reason, created_at, wait_until, resource, \
             start_deadline_ms, start_by) VALUES ('{}', '{name}', '{at}', '{target}', 'catch_up', 'waiting', 'catch_up', \
             '{at}', '{until}', 'r', 0, '{until}')",
            RunId::generate(),
            at = text(minute(1)),
            until = text(now + TTL)
        ))
        .await;
    }
    assert!(listed(&host).await.contains(&run));
    host.take(run, "job:backup").await;
}

async fn a_run_that_is_not_late_holds_no_late_one_off(db: &TestDb) {
    let runs = vec![late(50, None)];
    let run = runs[0].run;
    let (host, now) = with_late_runs(db, runs).await;
    let by_hand = Claim {
        trigger: cronlatch::trigger::Trigger {
            origin: cronlatch::trigger::Origin::from_column("request-1"),
            ..host.claim("backup", now - TTL * 30).trigger
        },
        kind: TriggerKind::Manual,
        ..host.claim("backup", now)
    };
    host.store.give_back(&host.run(&by_hand).await, "drain").await.unwrap();
    assert_eq!(listed(&host).await, [run, by_hand.run]);
    let late = host.take(run, "job:backup").await;
    host.store.finish(&late, &success(), &[]).await.unwrap();
    // Nor the other way round.
    host.take(by_hand.run, "job:backup").await;
}

async fn a_late_run_given_back_is_first_again(db: &TestDb) {
    let runs = vec![late(1, Some(SECOND)), late(2, None)];
    let (first, second) = (runs[0].run, runs[1].run);
    let (host, now) = with_late_runs(db, runs).await;
    db.freeze_clock(now + SECOND).await;
    let run = host.take(first, "job:backup").await;
    host.store.give_back(&run, "drain").await.unwrap();
    assert_eq!(listed(&host).await, [first]);
    assert_eq!(try_to_take(&host, second).await, Taken::NotNow);
    assert_eq!(row(&host.store, first).await.wait_until, Some(now + 4 * TTL));
    host.take(first, "job:backup").await;
}

async fn of_ten_takers_of_three_late_runs_one_has_the_oldest(db: &TestDb) {
    let runs: Vec<_> = [1, 2, 3].map(|number| late(number, None)).into();
    let ids: Vec<_> = runs.iter().map(|late| late.run).collect();
    with_late_runs(db, runs).await;
    let takers = warm_stores(db, 10).await.into_iter().zip(ids.iter().cycle().copied()).map(|(store, run)| {
        let host = Host::with_store(store, "web");
        async move { (run, host.store.take(run, &host.claimant("job:backup")).await.unwrap()) }
    });
    let answers = at_once(takers).await;
    let granted: Vec<_> = answers.iter().filter(|(_, answer)| answer.is_granted()).map(|(run, _)| *run).collect();
    assert_eq!(granted, [ids[0]], "{answers:?}");
    assert_eq!(db.errors_logged(), [""; 0]);
}

async fn a_run_for_one_host_is_listed_there_alone(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let now = db.now().await;
    let for_all = one.claim("backup", now);
    one.store.give_back(&one.run(&for_all).await, "drain").await.unwrap();
    let mut for_one = one.claim("rotate", now);
    for_one.trigger.target = Target::from_column("web-1");
    one.store.give_back(&one.run(&for_one).await, "drain").await.unwrap();
    assert_eq!(listed(&one).await, [for_all.run, for_one.run]);
    assert_eq!(listed(&other).await, [for_all.run]);
}

/// When a run may be taken, and until when it waits.
async fn times(host: &Host, run: RunId) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
    let row = row(&host.store, run).await;
    (row.not_before, row.wait_until)
}

/// Three late runs, a minute apart.
fn spaced() -> Vec<LateRun> {
    let late = |number: u32, not_before| LateRun { waits: (4 + number) * TTL, ..late(number.into(), not_before) };
    vec![late(1, None), late(2, Some(TTL)), late(3, Some(2 * TTL))]
}

fn names(runs: &[LateRun]) -> [RunId; 3] {
    [runs[0].run, runs[1].run, runs[2].run]
}

async fn late_runs_keep_their_distance_from_the_start_of_the_one_before(db: &TestDb) {
    let runs = spaced();
    let [first, second, third] = names(&runs);
    let (host, now) = with_late_runs(db, runs).await;
    let late = now + 90 * SECOND + 7 * MILLISECOND;
    db.freeze_clock(late).await;
    let run = host.take(first, "job:backup").await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
    assert_eq!(times(&host, second).await, (Some(late + TTL), Some(late + 6 * TTL)));
    assert_eq!(times(&host, third).await, (Some(late + 2 * TTL), Some(late + 7 * TTL)));
    assert_eq!(db.count("runs", "wait_until = start_by").await, 2);
    // And again from the second.
    let later = late + 4 * TTL;
    db.freeze_clock(later).await;
    host.take(second, "job:backup").await;
    assert_eq!(times(&host, third).await, (Some(later + TTL), Some(later + 6 * TTL)));
}

async fn a_late_run_that_starts_on_time_moves_nothing(db: &TestDb) {
    let runs = spaced();
    let [first, second, third] = names(&runs);
    let (host, now) = with_late_runs(db, runs).await;
    let run = host.take(first, "job:backup").await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
    db.freeze_clock(now + TTL).await;
    host.take(second, "job:backup").await;
    assert_eq!(times(&host, third).await, (Some(now + 2 * TTL), Some(now + 7 * TTL)));
}

async fn a_late_run_taken_twice_moves_those_after_it_by_the_time_between(db: &TestDb) {
    let runs = spaced();
    let [first, second, third] = names(&runs);
    let (host, now) = with_late_runs(db, runs).await;
    for late in [10 * SECOND, 30 * SECOND] {
        db.freeze_clock(now + late).await;
        let run = host.take(first, "job:backup").await;
        assert_eq!(times(&host, second).await, (Some(now + late + TTL), Some(now + late + 6 * TTL)));
        assert_eq!(times(&host, third).await, (Some(now + late + 2 * TTL), Some(now + late + 7 * TTL)));
        // It has no more time for that itself.
        assert!(host.store.give_back(&run, "drain").await.unwrap());
        assert_eq!(times(&host, first).await.1, Some(now + 5 * TTL));
    }
}

async fn a_late_run_moves_no_run_but_those_of_its_plan(db: &TestDb) {
    let runs = vec![late(1, None)];
    let first = runs[0].run;
    let (host, now) = with_late_runs(db, runs).await;
    let until = text(now + 8 * TTL);
    let others = [
        ("restore", "", "catch_up", minute(2), now, TTL),
        ("backup", "web-1", "catch_up", minute(2), now, TTL),
        ("backup", "", "rerun", minute(2), now, TTL),
        // Another plan keeps its own distances.
        ("backup", "", "catch_up", minute(3), now - SECOND, TTL),
        // An older one.
        ("backup", "", "catch_up", minute(-1), now, TTL),
    ];
    for (name, target, trigger, at, made, not_before) in others {
        db.sql(format!(
            "INSERT INTO runs (id, job, scheduled_at, target, trigger, state, reason, created_at, not_before, \
             wait_until, resource, start_deadline_ms, start_by) VALUES ('{}', '{name}', '{}', '{target}', '{trigger}', \
             'waiting', 'catch_up', '{}', '{}', '{until}', 'r', 0, '{until}')",
            RunId::generate(),
            text(at),
            text(made),
            text(now + not_before)
        ))
        .await;
    }
    // The older one is out of the way, but for its row.
    db.sql(format!("UPDATE runs SET wait_until = '{}' WHERE scheduled_at = '{}'", text(now), text(minute(-1)))).await;
    let before =
        db.sql("SELECT not_before, wait_until, start_by FROM runs WHERE not_before IS NOT NULL ORDER BY id").await;
    db.freeze_clock(now + 10 * SECOND).await;
    host.take(first, "job:backup").await;
    let after =
        db.sql("SELECT not_before, wait_until, start_by FROM runs WHERE not_before IS NOT NULL ORDER BY id").await;
    assert_eq!((after, before.len()), (before, 5));
}

async fn a_run_that_is_not_late_moves_no_late_one(db: &TestDb) {
    let runs = vec![late(50, Some(TTL))];
    let run = runs[0].run;
    let (host, now) = with_late_runs(db, runs).await;
    let claim = host.claim("backup", now);
    host.store.give_back(&host.run(&claim).await, "drain").await.unwrap();
    db.sql(format!("UPDATE runs SET scheduled_at = '{}' WHERE id = '{}'", text(minute(40)), claim.run)).await;
    db.freeze_clock(now + 30 * SECOND).await;
    host.take(claim.run, "job:backup").await;
    assert_eq!(times(&host, run).await, (Some(now + TTL), Some(now + 4 * TTL)));
}

//! How a job's triggers ended, as those look back who tell somebody of failures in a row.

use chrono::{DateTime, TimeDelta, Utc};
use cronlatch::store::{CatchUpPlan, OutcomeQuery, RangeKind, TriggerOutcome, TriggerRange};
use cronlatch::trigger::{MissedReason, RunId, RunState, Target, TriggerKind};

use super::catching_up::minute;
use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    outcomes_are_those_of_one_job_and_target_newest_instant_first,
    what_ended_neither_well_nor_badly_is_no_outcome,
    later_triggers_and_what_is_beyond_the_limit_are_left_out,
    an_attempt_that_is_to_be_tried_again_is_no_outcome,
    an_attempt_that_was_cancelled_leaves_the_one_before_it_in_force,
    missed_triggers_without_rows_count_where_something_went_wrong,
    the_look_back_is_bounded_however_long_the_history_is,
);

async fn host(db: &TestDb) -> Host {
    db.freeze_clock(minute(60)).await;
    Host::new(db, "web-1")
}

/// A run of the backup that ended so.
async fn ended(host: &Host, at: DateTime<Utc>, state: RunState) -> RunId {
    let run = host.run(&host.claim("backup", at)).await;
    host.store.finish(&run, &ending(state), &[]).await.unwrap();
    run.run
}

async fn outcomes(host: &Host, through: DateTime<Utc>, limit: u32) -> Vec<TriggerOutcome> {
    outcomes_for(host, Target::fleet(), through, limit).await
}

async fn outcomes_for(host: &Host, target: Target, through: DateTime<Utc>, limit: u32) -> Vec<TriggerOutcome> {
    let query = OutcomeQuery { job: job("backup"), target, through, limit };
    host.store.outcomes(&query).await.unwrap()
}

fn of_run(run: RunId, at: DateTime<Utc>, state: RunState) -> TriggerOutcome {
    TriggerOutcome { run: Some(run), at, state, count: 1 }
}

async fn outcomes_are_those_of_one_job_and_target_newest_instant_first(db: &TestDb) {
    let host = host(db).await;
    let second = ended(&host, minute(2), RunState::Failed).await;
    // Run late: its instant counts, not when it was over.
    let first = ended(&host, minute(1), RunState::Succeeded).await;
    let other = host.run(&host.claim("restore", minute(1))).await;
    host.store.finish(&other, &ending(RunState::Failed), &[]).await.unwrap();
    let mut elsewhere = host.claim("backup", minute(1));
    elsewhere.trigger.target = Target::of_host(&host.name);
    let elsewhere = host.run(&elsewhere).await;
    host.store.finish(&elsewhere, &ending(RunState::Failed), &[]).await.unwrap();

    let of_fleet = [of_run(second, minute(2), RunState::Failed), of_run(first, minute(1), RunState::Succeeded)];
    assert_eq!(outcomes(&host, minute(2), 10).await, of_fleet);
    let of_host = [of_run(elsewhere.run, minute(1), RunState::Failed)];
    assert_eq!(outcomes_for(&host, Target::of_host(&host.name), minute(2), 10).await, of_host);
}

async fn what_ended_neither_well_nor_badly_is_no_outcome(db: &TestDb) {
    let host = host(db).await;
    for state in RunState::ALL.iter().filter(|state| state.is_final()) {
        ended(&host, minute(1 + i64::from(*state as u8)), *state).await;
    }
    let running = host.run(&host.claim("backup", minute(20))).await;
    host.store.start(&running, minute(20)).await.unwrap();
    let mut states: Vec<_> = outcomes(&host, minute(30), 10).await.iter().map(|outcome| outcome.state).collect();
    states.sort_by_key(|state| *state as u8);
    // The one that was missed has no reason that says that anything went wrong.
    assert_eq!(states, [RunState::Succeeded, RunState::Failed, RunState::Lost]);
    for (reason, counts) in [("paused", 0), ("start_deadline", 1)] {
        db.sql(format!("UPDATE runs SET reason = '{reason}' WHERE state = 'missed'")).await;
        let missed = outcomes(&host, minute(30), 10).await;
        assert_eq!(missed.iter().filter(|outcome| outcome.state == RunState::Missed).count(), counts, "{reason}");
    }
}

async fn later_triggers_and_what_is_beyond_the_limit_are_left_out(db: &TestDb) {
    let host = host(db).await;
    let mut runs = Vec::new();
    for number in 0..6 {
        runs.push(ended(&host, minute(number), RunState::Failed).await);
    }
    let found: Vec<_> = outcomes(&host, minute(4), 3).await.iter().filter_map(|outcome| outcome.run).collect();
    assert_eq!(found, [runs[4], runs[3], runs[2]]);
}

async fn an_attempt_that_is_to_be_tried_again_is_no_outcome(db: &TestDb) {
    let host = host(db).await;
    let mut claim = host.claim("backup", minute(1));
    claim.reruns_left = 1;
    let first = host.run(&claim).await;
    host.store.finish(&first, &ending(RunState::Lost), &[]).await.unwrap();
    assert_eq!(outcomes(&host, minute(1), 10).await, []);

    let again = host.store.waiting(&host.name).await.unwrap();
    assert_eq!((again.len(), again[0].kind), (1, TriggerKind::Rerun));
    let second = host.take(again[0].run, "job:backup").await;
    assert_eq!(outcomes(&host, minute(1), 10).await, []);
    host.store.finish(&second, &success(), &[]).await.unwrap();
    assert_eq!(outcomes(&host, minute(1), 10).await, [of_run(second.run, minute(1), RunState::Succeeded)]);
}

async fn an_attempt_that_was_cancelled_leaves_the_one_before_it_in_force(db: &TestDb) {
    let host = host(db).await;
    let mut claim = host.claim("backup", minute(1));
    claim.reruns_left = 1;
    let first = host.run(&claim).await;
    host.store.finish(&first, &ending(RunState::Lost), &[]).await.unwrap();
    // A late result: what waits to be run again in its place is cancelled.
    host.store.finish(&first, &success(), &[]).await.unwrap();
    assert_eq!(host.store.waiting(&host.name).await.unwrap().len(), 0);
    assert_eq!(outcomes(&host, minute(1), 10).await, [of_run(first.run, minute(1), RunState::Succeeded)]);
}

async fn missed_triggers_without_rows_count_where_something_went_wrong(db: &TestDb) {
    db.freeze_clock(noon()).await;
    let host = Host::new(db, "web-1");
    host.register("backup", "digest").await;
    db.freeze_clock(minute(60)).await;
    let run = ended(&host, minute(1), RunState::Succeeded).await;
    let range =
        |from, to, count, kind, reason| TriggerRange { kind, from: minute(from), to: minute(to), count, reason };
    let ranges = vec![
        range(2, 4, 3, RangeKind::Missed, MissedReason::TooOld),
        range(5, 5, 1, RangeKind::Missed, MissedReason::Superseded),
        range(6, 6, 1, RangeKind::Paused, MissedReason::Paused),
        range(7, 7, 1, RangeKind::Missed, MissedReason::NoHost),
    ];
    let plan = CatchUpPlan { ranges, rows_seen: 1, ..accounted(noon(), minute(10)) };
    assert!(host.store.catch_up(&plan).await.unwrap());
    let missed = |at, count| TriggerOutcome { run: None, at: minute(at), state: RunState::Missed, count };
    let all = [missed(7, 1), missed(4, 3), of_run(run, minute(1), RunState::Succeeded)];
    assert_eq!(outcomes(&host, minute(10), 10).await, all);
    assert_eq!(outcomes(&host, minute(4), 10).await, all[1..]);
    assert_eq!(outcomes(&host, minute(10), 1).await, all[..1]);
}

/// Ten thousand triggers that were held off, after one that failed.
async fn the_look_back_is_bounded_however_long_the_history_is(db: &TestDb) {
    let host = host(db).await;
    let failed = ended(&host, minute(0), RunState::Failed).await;
    let template = ended(&host, minute(1), RunState::Skipped).await;
    copy_runs(db, template, 9_998).await;
    let through = minute(1) + TimeDelta::seconds(10_000);
    assert_eq!(outcomes(&host, through, 1).await, [of_run(failed, minute(0), RunState::Failed)]);
    db.sql(format!(
        "UPDATE runs SET scheduled_at = '{}' WHERE id = '{failed}'",
        super::database::text(noon() - TimeDelta::days(1))
    ))
    .await;
    ended(&host, minute(0), RunState::Skipped).await;
    assert_eq!(outcomes(&host, through, 1).await, []);
}

/// Copies of a run, a second apart.
async fn copy_runs(db: &TestDb, template: RunId, count: u32) {
    let columns = "job, target, origin, attempt, trigger, state, created_at, resource, start_deadline_ms, start_by";
    let (id, at, numbers) = match db {
        TestDb::Postgres(_) => (
            "gen_random_uuid()",
            "scheduled_at + n.value * interval '1 second'",
            format!("generate_series(1, {count}) AS n (value)"),
        ),
        TestDb::Sqlite(_) => (
            "lower(hex(randomblob(16)))",
            "strftime('%Y-%m-%dT%H:%M:%fZ', scheduled_at, '+' || n.value || ' seconds')",
            format!(
                "(WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {count}) \
                 SELECT value FROM n) n"
            ),
        ),
    };
    db.sql(format!(
        "INSERT INTO runs (id, scheduled_at, {columns}) SELECT {id}, {at}, {columns} FROM runs, {numbers} \
         WHERE id = '{template}'"
    ))
    .await;
}

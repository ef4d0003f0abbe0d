//! The end of a run: recorded once, by whoever runs it, together with the end of its lock.

use chrono::TimeDelta;
use cronlatch::lock::FencingToken;
use cronlatch::store::{Claim, Ending, Finished, LockAtEnd, RunKey};
use cronlatch::trigger::{RunState, TriggerKind};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    an_ending_is_recorded_and_the_lock_is_free,
    every_final_state_can_be_recorded,
    a_late_release_of_an_old_token_does_not_free_the_new_grant,
    an_ending_under_a_stale_token_is_not_recorded,
    an_ending_by_another_owner_is_not_recorded,
    the_same_ending_sent_again_answers_as_before,
    another_ending_of_a_finished_run_is_not_recorded,
    a_late_result_is_recorded_from_state_lost,
    a_lock_that_expired_before_the_end_is_free_and_said_to_have_expired,
    a_lock_that_was_taken_over_is_said_to_be_gone_and_stays_its_takers,
    a_lock_whose_row_was_deleted_is_said_to_be_gone,
    an_ending_in_state_lost_makes_the_rerun_wait,
    a_late_result_leaves_the_rerun_alone,
    a_job_knows_its_last_run_and_its_last_success,
    a_start_that_was_not_recorded_comes_with_the_ending,
);

const RECORDED: Finished = Finished { recorded: true, lock: LockAtEnd::Released, followed: Vec::new() };
const NOTHING: Finished = Finished { recorded: false, lock: LockAtEnd::Gone, followed: Vec::new() };

async fn an_ending_is_recorded_and_the_lock_is_free(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let run = host.run(&host.claim("backup", noon())).await;
    host.store.start(&run, noon()).await.unwrap();
    db.freeze_clock(noon() + 9 * SECOND).await;
    let how = Ending {
        state: RunState::Failed,
        exit_code: Some(3),
        signal: Some(9),
        reason: Some("timed_out".to_owned()),
        started_at: Some(noon() + SECOND),
        finished_at: noon() + 8 * SECOND,
        output_tail: Some("disk full\n\u{fffd} 'quoted' 🦀".to_owned()),
        cpu: Some(1_234 * MILLISECOND),
        memory_peak_kib: Some(5_678),
    };
    assert_eq!(host.store.finish(&run, &how, &[]).await.unwrap(), RECORDED);
    let ended = row(&host.store, run.run).await;
    assert_eq!((ended.state, ended.exit_code, ended.signal), (how.state, how.exit_code, how.signal));
    assert_eq!((ended.reason, ended.output_tail), (how.reason, how.output_tail));
    assert_eq!((ended.cpu, ended.memory_peak_kib), (how.cpu, how.memory_peak_kib));
    // The start that was recorded at the time stands.
    assert_eq!((ended.started_at, ended.finished_at), (Some(noon()), Some(noon() + 8 * SECOND)));
    assert!(!is_held(&host.store, "job:backup").await);
    assert_eq!(acquire(&host.store, "job:backup", "b").await.taken_from, None);
}

async fn every_final_state_can_be_recorded(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    for state in RunState::ALL.iter().copied().filter(|state| state.is_final()) {
        let run = host.run(&host.claim(state.as_str(), now)).await;
        assert_eq!(host.store.finish(&run, &ending(state), &[]).await.unwrap(), RECORDED);
        assert_eq!(row(&host.store, run.run).await.state, state);
    }
}

async fn a_late_release_of_an_old_token_does_not_free_the_new_grant(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let now = db.now().await;
    let old = one.run(&one.claim("backup", now - SECOND)).await;
    db.let_expire("job:backup").await;
    let new = other.run(&other.claim("backup", now)).await;
    for _ in 0..2 {
        assert_eq!(one.store.finish(&old, &success(), &[]).await.unwrap().lock, LockAtEnd::Gone);
        let held = lock(&one.store, "job:backup").await.holder;
        assert_eq!((held.token, held.run), (new.token, Some(new.run)));
    }
}

async fn an_ending_under_a_stale_token_is_not_recorded(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    let stale = RunKey { token: FencingToken::new(run.token.get() - 1), ..run.clone() };
    assert_eq!(host.store.finish(&stale, &success(), &[]).await.unwrap(), NOTHING);
    assert_eq!(row(&host.store, run.run).await.state, RunState::Claimed);
    assert!(is_held(&host.store, "job:backup").await);
}

async fn an_ending_by_another_owner_is_not_recorded(db: &TestDb) {
    let (host, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let run = host.run(&host.claim("backup", db.now().await)).await;
    let foreign = RunKey { owner: other.claimant("job:backup").owner, ..run.clone() };
    assert_eq!(host.store.finish(&foreign, &success(), &[]).await.unwrap(), NOTHING);
    assert_eq!(row(&host.store, run.run).await.state, RunState::Claimed);
    assert!(is_held(&host.store, "job:backup").await);
}

async fn the_same_ending_sent_again_answers_as_before(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    assert_eq!(host.store.finish(&run, &success(), &[]).await.unwrap(), RECORDED);
    let first = row(&host.store, run.run).await;
    let again = host.store.finish(&run, &success(), &[]).await.unwrap();
    assert_eq!(again, Finished { lock: LockAtEnd::Gone, ..RECORDED });
    assert_eq!(row(&host.store, run.run).await, first);
}

async fn another_ending_of_a_finished_run_is_not_recorded(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
    let first = row(&host.store, run.run).await;
    for state in [RunState::Failed, RunState::Lost, RunState::Cancelled] {
        assert_eq!(host.store.finish(&run, &ending(state), &[]).await.unwrap(), NOTHING);
        assert_eq!(row(&host.store, run.run).await, first);
    }
}

async fn a_late_result_is_recorded_from_state_lost(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    db.let_expire("job:backup").await;
    host.store.recover(None).await.unwrap();
    assert_eq!(row(&host.store, run.run).await.state, RunState::Lost);
    let answer = host.store.finish(&run, &success(), &[]).await.unwrap();
    assert_eq!(answer, Finished { lock: LockAtEnd::Gone, ..RECORDED });
    let ended = row(&host.store, run.run).await;
    assert_eq!((ended.state, ended.reason), (RunState::Succeeded, None));
}

async fn a_lock_that_expired_before_the_end_is_free_and_said_to_have_expired(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    db.let_expire("job:backup").await;
    let answer = host.store.finish(&run, &success(), &[]).await.unwrap();
    assert_eq!(answer, Finished { lock: LockAtEnd::Expired, ..RECORDED });
    assert_eq!(acquire(&host.store, "job:backup", "b").await.taken_from, None);
}

async fn a_lock_that_was_taken_over_is_said_to_be_gone_and_stays_its_takers(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    db.let_expire("job:backup").await;
    let taker = acquire(&host.store, "job:backup", "b").await;
    let answer = host.store.finish(&run, &success(), &[]).await.unwrap();
    assert_eq!(answer, Finished { lock: LockAtEnd::Gone, ..RECORDED });
    assert_eq!(lock(&host.store, "job:backup").await.holder.token, taker.token);
}

async fn a_lock_whose_row_was_deleted_is_said_to_be_gone(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    db.sql("DELETE FROM distributed_locks").await;
    let answer = host.store.finish(&run, &success(), &[]).await.unwrap();
    assert_eq!(answer, Finished { lock: LockAtEnd::Gone, ..RECORDED });
}

async fn an_ending_in_state_lost_makes_the_rerun_wait(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&Claim { reruns_left: 1, ..host.claim("backup", now) }).await;
    assert_eq!(host.store.finish(&run, &ending(RunState::Lost), &[]).await.unwrap(), RECORDED);
    // Sent again, it makes no other one; nor does recovery.
    assert!(host.store.finish(&run, &ending(RunState::Lost), &[]).await.unwrap().recorded);
    assert_eq!(host.store.recover(None).await.unwrap().lost, []);
    let waiting = host.store.waiting(&host.name).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].attempt, waiting[0].kind), (2, TriggerKind::Rerun));
    assert_eq!(waiting[0].trigger.scheduled_at, now);
    let rerun = host.take(waiting[0].run, "job:backup").await;
    assert_eq!(host.store.finish(&rerun, &ending(RunState::Lost), &[]).await.unwrap(), RECORDED);
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), []);
}

async fn a_late_result_leaves_the_rerun_alone(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let run = one.run(&Claim { reruns_left: 1, ..one.claim("backup", db.now().await) }).await;
    db.let_expire("job:backup").await;
    let lost = other.store.recover(None).await.unwrap().lost;
    let rerun = other.take(lost[0].rerun.unwrap(), "job:backup").await;
    assert_eq!(one.store.finish(&run, &success(), &[]).await.unwrap().lock, LockAtEnd::Gone);
    assert_eq!(row(&one.store, rerun.run).await.state, RunState::Claimed);
    assert_eq!(lock(&one.store, "job:backup").await.holder.run, Some(rerun.run));
    assert_eq!(other.store.finish(&rerun, &ending(RunState::Failed), &[]).await.unwrap(), RECORDED);
    assert_eq!(row(&one.store, run.run).await.state, RunState::Succeeded);
}

async fn a_job_knows_its_last_run_and_its_last_success(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    register_long_ago(db, &host, "backup", "digest").await;
    // The last column: what the job knows then of its last run and its last success, in minutes.
    let runs = [
        (3, RunState::Failed, (3, None)),
        (1, RunState::Succeeded, (3, Some(1))),
        (5, RunState::Succeeded, (5, Some(5))),
        (6, RunState::Failed, (6, Some(5))),
        (2, RunState::Succeeded, (6, Some(5))),
    ];
    let minute = |number| noon() - TimeDelta::minutes(10) + TimeDelta::minutes(number);
    for (number, state, (last_run, last_success)) in runs {
        let run = host.run(&host.claim("backup", minute(number))).await;
        host.store.finish(&run, &ending(state), &[]).await.unwrap();
        let success = last_success.map_or("last_success_at IS NULL".to_owned(), |number| {
            format!("last_success_at = '{}'", text(minute(number)))
        });
        let known = format!("last_run_at = '{}' AND {success}", text(minute(last_run)));
        assert_eq!(db.count("jobs", &known).await, 1, "after minute {number}: {known}");
    }
}

async fn a_start_that_was_not_recorded_comes_with_the_ending(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let run = host.run(&host.claim("backup", noon())).await;
    let how = Ending { started_at: Some(noon() + SECOND), ..success() };
    host.store.finish(&run, &how, &[]).await.unwrap();
    assert_eq!(row(&host.store, run.run).await.started_at, Some(noon() + SECOND));
}

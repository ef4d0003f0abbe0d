//! Attempts of one trigger under one lease: the failed one is recorded and the next is claimed at once,
//! and the lock knows nothing of it.

use cronlatch::lock::FencingToken;
use cronlatch::store::{Acquire, Claim, Claimed, Finished, LockAtEnd, Retried, RunKey, RunRow};
use cronlatch::trigger::{RunId, RunState, TriggerKind};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_failure_is_recorded_and_the_next_attempt_is_claimed_under_the_same_lease,
    a_retry_leaves_the_lock_alone,
    the_next_attempt_starts_ends_and_frees_the_lock,
    the_same_retry_sent_again_answers_the_same_and_makes_no_other,
    of_the_same_retry_sent_twice_at_once_one_makes_the_attempt,
    a_retry_under_another_token_owner_or_lock_writes_nothing,
    a_retry_under_the_live_lock_of_another_grant_writes_nothing,
    a_run_that_is_over_or_lost_is_not_tried_again,
    a_retry_whose_lock_has_just_run_out_writes_nothing,
    a_lost_retry_is_run_again_as_the_attempt_after_it,
    a_retry_after_a_rerun_is_the_attempt_after_that,
    a_retry_may_be_given_back_and_taken_elsewhere,
    a_success_of_any_attempt_is_followed_once,
    only_the_first_attempt_is_claimed_looked_for_and_caught_up,
    a_failed_retry_is_the_jobs_last_run,
);

const AGAIN: Retried = Retried::Claimed { attempt: 2 };

/// A run that may be run again twice, under way.
async fn running(host: &Host, db: &TestDb, name: &str) -> RunKey {
    let now = db.now().await;
    let run = host.run(&Claim { reruns_left: 2, ..host.claim(name, now) }).await;
    assert!(host.store.start(&run, now).await.unwrap());
    run
}

/// The next attempt after a failure, which has to be claimed.
async fn try_again(host: &Host, key: &RunKey) -> RunKey {
    let next = next_attempt(key);
    let answer = host.store.retry(key, &failure(), next.run).await.unwrap();
    assert!(matches!(answer, Retried::Claimed { .. }), "{answer:?}");
    next
}

async fn attempts(host: &Host) -> Vec<(u32, RunState, TriggerKind)> {
    let mut rows = host.store.history(&everything()).await.unwrap();
    rows.sort_by_key(|row| row.attempt);
    rows.iter().map(|row| (row.attempt, row.state, row.kind)).collect()
}

async fn a_failure_is_recorded_and_the_next_attempt_is_claimed_under_the_same_lease(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let first = running(&host, db, "backup").await;
    let now = noon() + 9 * SECOND;
    db.freeze_clock(now).await;
    let next = next_attempt(&first);
    assert_eq!(host.store.retry(&first, &failure(), next.run).await.unwrap(), AGAIN);
    let failed = row(&host.store, first.run).await;
    assert_eq!(
        (failed.state, failed.exit_code, failed.finished_at),
        (RunState::Failed, Some(1), Some(noon() + SECOND))
    );
    let retry = row(&host.store, next.run).await;
    let expected = RunRow {
        run: next.run,
        attempt: 2,
        kind: TriggerKind::Retry,
        state: RunState::Claimed,
        claimed_at: Some(now),
        started_at: None,
        finished_at: None,
        exit_code: None,
        ..failed
    };
    assert_eq!(retry, expected);
    assert_eq!(lock(&host.store, "job:backup").await.holder.run, Some(next.run));
}

async fn a_retry_leaves_the_lock_alone(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let first = running(&host, db, "backup").await;
    let all = "SELECT * FROM distributed_locks";
    let before = db.sql(all).await;
    try_again(&host, &first).await;
    assert_eq!(db.sql(all).await, before);
}

async fn the_next_attempt_starts_ends_and_frees_the_lock(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let first = running(&host, db, "backup").await;
    let second = try_again(&host, &first).await;
    // The attempt before is over: nothing more is written of it.
    assert!(!host.store.start(&first, noon()).await.unwrap());
    assert!(host.store.start(&second, noon()).await.unwrap());
    assert_eq!(row(&host.store, second.run).await.state, RunState::Running);
    let third = try_again(&host, &second).await;
    let ended = host.store.finish(&third, &success(), &[]).await.unwrap();
    assert_eq!(ended, Finished { recorded: true, lock: LockAtEnd::Released, followed: vec![] });
    let expected = [
        (1, RunState::Failed, TriggerKind::Schedule),
        (2, RunState::Failed, TriggerKind::Retry),
        (3, RunState::Succeeded, TriggerKind::Retry),
    ];
    assert_eq!(attempts(&host).await, expected);
    assert_eq!(host.store.recover(None).await.unwrap().lost, []);
}

async fn the_same_retry_sent_again_answers_the_same_and_makes_no_other(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let first = running(&host, db, "backup").await;
    let second = try_again(&host, &first).await;
    for _ in 0..2 {
        assert_eq!(host.store.retry(&first, &failure(), second.run).await.unwrap(), AGAIN);
    }
    // Of a failure that is recorded there is no other retry.
    assert_eq!(host.store.retry(&first, &failure(), RunId::generate()).await.unwrap(), Retried::Gone);
    assert_eq!(db.count("runs", "1 = 1").await, 2);
    // Even when its lease is over: whoever renews it learns that by itself.
    db.let_expire("job:backup").await;
    assert_eq!(host.store.retry(&first, &failure(), second.run).await.unwrap(), AGAIN);
    host.store.finish(&second, &success(), &[]).await.unwrap();
    assert_eq!(host.store.retry(&first, &failure(), second.run).await.unwrap(), Retried::Gone);
}

async fn of_the_same_retry_sent_twice_at_once_one_makes_the_attempt(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let stores = warm_stores(db, 4).await;
    for round in 0..5 {
        let first = running(&host, db, &format!("backup-{round}")).await;
        let next = next_attempt(&first).run;
        let tries = stores.iter().cloned().map(|store| {
            let first = first.clone();
            async move { store.retry(&first, &failure(), next).await.unwrap() }
        });
        assert_eq!(at_once(tries).await, [AGAIN; 4]);
        assert_eq!(db.count("runs", &format!("job = 'backup-{round}'")).await, 2);
    }
}

async fn a_retry_under_another_token_owner_or_lock_writes_nothing(db: &TestDb) {
    let (host, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let first = running(&host, db, "backup").await;
    let keys = [
        RunKey { token: FencingToken::new(first.token.get() + 1), ..first.clone() },
        RunKey { owner: other.claimant("job:backup").owner, ..first.clone() },
        RunKey { resource: resource("job:another"), ..first.clone() },
        RunKey { run: RunId::generate(), ..first.clone() },
    ];
    for key in keys {
        assert_eq!(host.store.retry(&key, &failure(), RunId::generate()).await.unwrap(), Retried::Gone, "{key:?}");
    }
    assert_eq!(attempts(&host).await, [(1, RunState::Running, TriggerKind::Schedule)]);
}

/// The lock is live in both cases, and held by whom the key says: but it is not this run's.
async fn a_retry_under_the_live_lock_of_another_grant_writes_nothing(db: &TestDb) {
    let (host, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let first = running(&host, db, "backup").await;
    db.let_expire("job:backup").await;
    let mine_again = Acquire { owner: first.owner.clone(), ..attempt("job:backup", "a") };
    let token = host.store.acquire(&mine_again).await.unwrap().granted().token;
    let newer = RunKey { token, ..first.clone() };
    assert_eq!(host.store.retry(&newer, &failure(), RunId::generate()).await.unwrap(), Retried::Gone);
    db.let_expire("job:backup").await;
    let mut restore = other.claim("restore", db.now().await);
    restore.claimant.resource = resource("job:backup");
    let theirs = RunKey { run: first.run, ..other.run(&restore).await };
    db.sql(format!("UPDATE runs SET token = {} WHERE id = '{}'", theirs.token, first.run)).await;
    assert_eq!(host.store.retry(&theirs, &failure(), RunId::generate()).await.unwrap(), Retried::Gone);
    assert_eq!(row(&host.store, first.run).await.state, RunState::Running);
}

async fn a_run_that_is_over_or_lost_is_not_tried_again(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let first = running(&host, db, "backup").await;
    db.let_expire("job:backup").await;
    let rerun = host.store.recover(None).await.unwrap().lost[0].rerun.unwrap();
    assert_eq!(host.store.retry(&first, &failure(), RunId::generate()).await.unwrap(), Retried::Gone);
    let rerun = host.take(rerun, "job:backup").await;
    host.store.finish(&rerun, &success(), &[]).await.unwrap();
    assert_eq!(host.store.retry(&rerun, &failure(), RunId::generate()).await.unwrap(), Retried::Gone);
    let expected = [(1, RunState::Lost, TriggerKind::Schedule), (2, RunState::Succeeded, TriggerKind::Rerun)];
    assert_eq!(attempts(&host).await, expected);
}

async fn a_retry_whose_lock_has_just_run_out_writes_nothing(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let early = running(&host, db, "early").await;
    let late = running(&host, db, "late").await;
    db.freeze_clock(noon() + TTL - MILLISECOND).await;
    try_again(&host, &early).await;
    db.freeze_clock(noon() + TTL).await;
    assert_eq!(host.store.retry(&late, &failure(), RunId::generate()).await.unwrap(), Retried::Gone);
    assert_eq!(row(&host.store, late.run).await.state, RunState::Running);
    // Its end is its host's to record all the same.
    assert!(host.store.finish(&late, &failure(), &[]).await.unwrap().recorded);
}

async fn a_lost_retry_is_run_again_as_the_attempt_after_it(db: &TestDb) {
    let (dead, alive) = (Host::new(db, "dead"), Host::new(db, "alive"));
    let first = running(&dead, db, "backup").await;
    let second = try_again(&dead, &first).await;
    db.let_expire("job:backup").await;
    let lost = alive.store.recover(None).await.unwrap().lost;
    assert_eq!((lost.len(), lost[0].run, lost[0].attempt), (1, second.run, 2));
    let waiting = alive.store.waiting(&alive.name).await.unwrap();
    assert_eq!((waiting[0].run, waiting[0].attempt), (lost[0].rerun.unwrap(), 3));
    assert_eq!((waiting[0].kind, waiting[0].retries), (TriggerKind::Rerun, 1), "it goes on counting");
    let third = alive.take(waiting[0].run, "job:backup").await;
    assert!(third.token > second.token);
    let fourth = try_again(&alive, &third).await;
    db.let_expire("job:backup").await;
    // It had two reruns, and one is left.
    let fifth = alive.store.recover(None).await.unwrap().lost[0].rerun.unwrap();
    assert_eq!(row(&alive.store, fourth.run).await.attempt, 4);
    alive.take(fifth, "job:backup").await;
    db.let_expire("job:backup").await;
    assert_eq!(alive.store.recover(None).await.unwrap().lost[0].rerun, None);
}

async fn a_retry_after_a_rerun_is_the_attempt_after_that(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let first = running(&host, db, "backup").await;
    assert!(host.store.finish(&first, &ending(RunState::Lost), &[]).await.unwrap().recorded);
    let rerun = host.store.waiting(&host.name).await.unwrap()[0].run;
    let second = host.take(rerun, "job:backup").await;
    let third = next_attempt(&second);
    let answer = host.store.retry(&second, &failure(), third.run).await.unwrap();
    assert_eq!(answer, Retried::Claimed { attempt: 3 });
    // A late result of the first attempt is recorded and leaves the others alone.
    assert!(host.store.finish(&first, &success(), &[]).await.unwrap().recorded);
    let expected = [
        (1, RunState::Succeeded, TriggerKind::Schedule),
        (2, RunState::Failed, TriggerKind::Rerun),
        (3, RunState::Claimed, TriggerKind::Retry),
    ];
    assert_eq!(attempts(&host).await, expected);
}

async fn a_retry_may_be_given_back_and_taken_elsewhere(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let first = running(&one, db, "backup").await;
    let second = try_again(&one, &first).await;
    assert!(one.store.give_back(&second, "draining").await.unwrap());
    assert!(!is_held(&one.store, "job:backup").await);
    let waiting = other.store.waiting(&other.name).await.unwrap();
    assert_eq!((waiting[0].attempt, waiting[0].kind, waiting[0].retries), (2, TriggerKind::Retry, 1));
    let taken = other.take(second.run, "job:backup").await;
    assert!(taken.token > first.token);
    assert_eq!(one.store.retry(&first, &failure(), second.run).await.unwrap(), Retried::Gone);
    try_again(&other, &taken).await;
}

async fn a_success_of_any_attempt_is_followed_once(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let load = follower("load", &["extract"]);
    let first = running(&host, db, "extract").await;
    let second = try_again(&host, &first).await;
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), [], "a failure that is tried again is not followed");
    let ended = host.store.finish(&second, &success(), std::slice::from_ref(&load)).await.unwrap();
    assert_eq!(ended.followed, [(load.job.clone(), load.run)]);
    // What follows may be tried again in its turn, and is not made to wait once more.
    let following = host.take(load.run, "job:load").await;
    let again = try_again(&host, &following).await;
    let same = host.store.finish(&second, &success(), &[follower("load", &["extract"])]).await.unwrap();
    assert_eq!(same.followed, [(load.job, load.run)]);
    host.store.finish(&again, &success(), &[]).await.unwrap();
    assert_eq!(db.count("runs", "job = 'load'").await, 2);
}

async fn only_the_first_attempt_is_claimed_looked_for_and_caught_up(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    register_long_ago(db, &host, "backup", "digest").await;
    let claim = host.claim("backup", noon());
    let first = host.run(&claim).await;
    let second = try_again(&host, &first).await;
    assert_eq!(host.store.unclaimed(std::slice::from_ref(&claim.trigger)).await.unwrap(), []);
    let answer = host.store.claim(&host.claim("backup", noon())).await.unwrap();
    let Claimed::AlreadyClaimed { run, state, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((run, state), (first.run, RunState::Failed));
    host.store.finish(&second, &success(), &[]).await.unwrap();
    // One row, whatever the attempts: the plan that was made from it holds.
    let asked = [cronlatch::store::ProgressQuery { job: job("backup"), target: claim.trigger.target.clone() }];
    let progress = host.store.progress(&asked).await.unwrap().remove(0);
    assert_eq!(progress.with_row, [noon()]);
    let plan = cronlatch::store::CatchUpPlan { rows_seen: 1, ..accounted(progress.caught_up_through, noon()) };
    assert!(host.store.catch_up(&plan).await.unwrap());
}

async fn a_failed_retry_is_the_jobs_last_run(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    register_long_ago(db, &host, "backup", "digest").await;
    let first = running(&host, db, "backup").await;
    try_again(&host, &first).await;
    assert_eq!(db.count("jobs", "last_run_at IS NOT NULL AND last_success_at IS NULL").await, 1);
}

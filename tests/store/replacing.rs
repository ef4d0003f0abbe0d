//! Jobs whose newest trigger replaces the run that is under way: the run is asked to stop, the trigger
//! waits for its lock, and what is older is over.

use std::time::Duration;

use chrono::{DateTime, Utc};
use cronlatch::store::{Asked, Became, Claim, Claimed, OpenCancel, OverdueRun, RunKey, Taken, WhenHeld};
use cronlatch::trigger::{Origin, RequestOutcome, RunId, RunState, SkipReason, Target, TriggerKind};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_run_of_the_same_job_is_asked_to_stop_and_the_trigger_waits_for_its_lock,
    a_replaced_runs_lock_goes_to_the_trigger_that_waits,
    a_foreign_holder_is_not_asked_and_the_trigger_is_skipped,
    a_run_of_the_same_job_under_another_lock_is_replaced_too,
    a_run_for_another_target_is_not_replaced,
    an_older_trigger_that_waits_is_superseded,
    an_older_trigger_replaces_neither_a_newer_run_nor_one_that_waits,
    a_trigger_that_is_granted_supersedes_what_waits,
    whoever_has_the_lock_by_then_is_asked_to_stop,
    what_an_older_one_gave_back_in_between_is_superseded,
    a_foreign_holder_that_came_in_between_ends_the_wait,
    a_retry_of_the_run_is_asked_to_stop,
    a_trigger_that_waits_too_long_is_skipped,
    a_claim_sent_again_answers_the_same,
    of_ten_triggers_at_once_the_newest_waits,
    late_runs_and_followers_are_not_superseded,
    a_replaced_run_that_is_given_back_is_cancelled,
);

fn replacing(host: &Host, at: DateTime<Utc>) -> Claim {
    Claim { when_held: WhenHeld::Replace(5 * TTL), ..host.claim("backup", at) }
}

async fn became(host: &Host, claim: &Claim) -> Became {
    let answer = host.store.claim(claim).await.unwrap();
    let Claimed::Held { became, .. } = answer else { panic!("{answer:?}") };
    became
}

/// Claims, which has to make it wait for a run that it replaces.
async fn wait_to_replace(host: &Host, at: DateTime<Utc>) -> RunId {
    let claim = replacing(host, at);
    let became = became(host, &claim).await;
    assert!(matches!(became, Became::Replacing { .. }), "{became:?}");
    claim.run
}

async fn seen_by(host: &Host) -> Vec<OpenCancel> {
    host.store.open_cancels(host.instance).await.unwrap()
}

async fn state_of(host: &Host, run: RunId) -> (RunState, Option<String>) {
    let row = row(&host.store, run).await;
    (row.state, row.reason)
}

fn because(state: RunState, reason: &str) -> (RunState, Option<String>) {
    (state, Some(reason.to_owned()))
}

async fn stop(host: &Host, run: &RunKey) {
    host.store.finish(run, &ending(RunState::Cancelled), &[]).await.unwrap();
}

async fn a_run_of_the_same_job_is_asked_to_stop_and_the_trigger_waits_for_its_lock(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    let first = one.run(&replacing(&one, noon())).await;
    let now = noon() + SECOND;
    db.freeze_clock(now).await;
    let second = replacing(&other, now);
    assert_eq!(became(&other, &second).await, Became::Replacing { until: now + 5 * TTL });
    let waiting = row(&one.store, second.run).await;
    assert_eq!((waiting.state, waiting.reason.as_deref()), (RunState::Waiting, Some("replacing")));
    assert_eq!((waiting.host, waiting.token, waiting.blocked_by), (None, None, Some(first.run)));
    let seen = seen_by(&one).await;
    assert_eq!((seen.len(), seen[0].run, &seen[0].asked), (1, first.run, &Asked::Replaced { by: second.run }));
    assert_eq!(seen_by(&other).await, []);
    assert!(is_held(&one.store, "job:backup").await, "until its host has stopped it");
}

async fn a_replaced_runs_lock_goes_to_the_trigger_that_waits(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let now = db.now().await;
    let first = one.run(&replacing(&one, now - SECOND)).await;
    let second = wait_to_replace(&other, now).await;
    let claimant = other.claimant("job:backup");
    for _ in 0..2 {
        let answer = other.store.take(second, &claimant).await.unwrap();
        assert!(matches!(answer, Taken::Held(_)), "{answer:?}");
    }
    let seen = seen_by(&one).await;
    assert_eq!(seen.len(), 1, "it is asked once");
    one.store.answer_request(seen[0].request, one.instance, RequestOutcome::Told).await.unwrap();
    other.store.take(second, &claimant).await.unwrap();
    assert_eq!(seen_by(&one).await, [], "it was told, and is stopping");
    stop(&one, &first).await;
    assert!(other.take(second, "job:backup").await.token > first.token);
}

async fn a_foreign_holder_is_not_asked_and_the_trigger_is_skipped(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    acquire(&host.store, "job:backup", "by hand").await;
    let held = Became::Skipped(SkipReason::LockHeld);
    assert_eq!(became(&host, &replacing(&host, now - SECOND)).await, held);
    let mut restore = host.claim("restore", now);
    restore.claimant.resource = resource("shared");
    host.run(&restore).await;
    let mut claim = replacing(&host, now);
    claim.claimant.resource = resource("shared");
    assert_eq!(became(&host, &claim).await, held);
    assert_eq!(state_of(&host, claim.run).await, because(RunState::Skipped, "lock_held"));
    assert_eq!(db.count("requests", "1 = 1").await, 0);
}

async fn a_run_of_the_same_job_under_another_lock_is_replaced_too(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let mut before_the_reload = replacing(&host, now - SECOND);
    before_the_reload.claimant.resource = resource("another");
    let first = host.run(&before_the_reload).await;
    let second = wait_to_replace(&host, now).await;
    assert_eq!(seen_by(&host).await[0].run, first.run);
    stop(&host, &first).await;
    host.take(second, "job:backup").await;
}

async fn a_run_for_another_target_is_not_replaced(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let on = |target: &str, at| {
        let mut claim = replacing(&host, at);
        claim.trigger.target = Target::from_column(target);
        claim
    };
    host.run(&on("web-1", now - SECOND)).await;
    let other = on("web-2", now);
    assert_eq!(became(&host, &other).await, Became::Skipped(SkipReason::LockHeld));
    assert_eq!(db.count("requests", "1 = 1").await, 0);
}

async fn an_older_trigger_that_waits_is_superseded(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    host.run(&replacing(&host, noon() - 9 * SECOND)).await;
    let older = wait_to_replace(&host, noon() - SECOND).await;
    let newer = wait_to_replace(&host, noon()).await;
    let over = row(&host.store, older).await;
    assert_eq!((over.state, over.reason.as_deref()), (RunState::Skipped, Some("superseded")));
    assert_eq!((over.blocked_by, over.finished_at), (Some(newer), Some(noon())));
    assert_eq!(state_of(&host, newer).await, because(RunState::Waiting, "replacing"));
    assert_eq!(host.store.take(older, &host.claimant("job:backup")).await.unwrap(), Taken::Gone);
    assert_eq!(seen_by(&host).await.len(), 1);
}

async fn an_older_trigger_replaces_neither_a_newer_run_nor_one_that_waits(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let superseded = Became::Skipped(SkipReason::Superseded);
    let run = host.run(&replacing(&host, now - 5 * SECOND)).await;
    assert_eq!(became(&host, &replacing(&host, now - 6 * SECOND)).await, superseded);
    assert_eq!(seen_by(&host).await, []);
    let waits = wait_to_replace(&host, now - SECOND).await;
    assert_eq!(became(&host, &replacing(&host, now - 2 * SECOND)).await, superseded);
    assert_eq!(state_of(&host, waits).await, because(RunState::Waiting, "replacing"));
    stop(&host, &run).await;
    host.take(waits, "job:backup").await;
}

async fn a_trigger_that_is_granted_supersedes_what_waits(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&replacing(&host, now - 9 * SECOND)).await;
    let older = wait_to_replace(&host, now - 2 * SECOND).await;
    stop(&host, &run).await;
    let newest = host.run(&replacing(&host, now)).await;
    assert_eq!(state_of(&host, older).await, because(RunState::Skipped, "superseded"));
    stop(&host, &newest).await;
    // The same of one that was given back, and of one that waits to replace and is taken.
    let given_back = host.run(&replacing(&host, now + SECOND / 4)).await;
    host.store.give_back(&given_back, "draining").await.unwrap();
    let run = host.run(&Claim { kind: TriggerKind::Manual, ..manual(&host, now) }).await;
    let waits = wait_to_replace(&host, now + SECOND / 2).await;
    assert_eq!(state_of(&host, given_back.run).await, because(RunState::Skipped, "superseded"));
    stop(&host, &run).await;
    host.take(waits, "job:backup").await;
}

/// Somebody's request.
fn manual(host: &Host, at: DateTime<Utc>) -> Claim {
    let mut claim = Claim { kind: TriggerKind::Manual, ..host.claim("backup", at) };
    claim.trigger.origin = Origin::from_column("a request");
    claim
}

async fn whoever_has_the_lock_by_then_is_asked_to_stop(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let now = db.now().await;
    let first = one.run(&replacing(&one, now - 9 * SECOND)).await;
    let waits = wait_to_replace(&one, now).await;
    stop(&one, &first).await;
    // An older one on its way gets the lock in between.
    let second = other.run(&replacing(&other, now - SECOND)).await;
    let answer = one.store.take(waits, &one.claimant("job:backup")).await.unwrap();
    assert!(matches!(answer, Taken::Held(_)), "{answer:?}");
    assert_eq!(seen_by(&other).await[0].run, second.run);
}

async fn what_an_older_one_gave_back_in_between_is_superseded(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let first = host.run(&replacing(&host, now - 9 * SECOND)).await;
    let waits = wait_to_replace(&host, now).await;
    stop(&host, &first).await;
    let second = host.run(&replacing(&host, now - SECOND)).await;
    assert!(host.store.give_back(&second, "draining").await.unwrap());
    assert_eq!(row(&host.store, second.run).await.state, RunState::Waiting);
    host.take(waits, "job:backup").await;
    assert_eq!(state_of(&host, second.run).await, because(RunState::Skipped, "superseded"));
}

async fn a_foreign_holder_that_came_in_between_ends_the_wait(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let first = host.run(&replacing(&host, now - SECOND)).await;
    let waits = wait_to_replace(&host, now).await;
    stop(&host, &first).await;
    let grant = acquire(&host.store, "job:backup", "by hand").await;
    let claimant = host.claimant("job:backup");
    let answer = host.store.take(waits, &claimant).await.unwrap();
    let Taken::Skipped(SkipReason::LockHeld, holder) = answer else { panic!("{answer:?}") };
    assert_eq!(holder.token, grant.token);
    assert_eq!(state_of(&host, waits).await, because(RunState::Skipped, "lock_held"));
    assert!(row(&host.store, waits).await.finished_at.is_some());
    assert_eq!(host.store.take(waits, &claimant).await.unwrap(), Taken::Gone);
}

async fn a_retry_of_the_run_is_asked_to_stop(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let first = host.run(&replacing(&host, now - SECOND)).await;
    let second = next_attempt(&first);
    host.store.retry(&first, &failure(), second.run).await.unwrap();
    let waits = wait_to_replace(&host, now).await;
    assert_eq!(seen_by(&host).await[0].run, second.run);
    stop(&host, &second).await;
    host.take(waits, "job:backup").await;
}

async fn a_trigger_that_waits_too_long_is_skipped(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let first = host.run(&replacing(&host, noon() - SECOND)).await;
    let waits = wait_to_replace(&host, noon()).await;
    db.sql(format!(
        "UPDATE distributed_locks SET expires_at = '2032-01-01T00:00:00.000Z' WHERE token = {}",
        first.token
    ))
    .await;
    db.freeze_clock(noon() + 5 * TTL).await;
    let overdue = host.store.recover(None).await.unwrap().overdue;
    let expected = |overdue: &OverdueRun| (overdue.run, overdue.state, overdue.reason.clone());
    let reason = SkipReason::WaitTimedOut.to_string();
    assert_eq!(overdue.iter().map(expected).collect::<Vec<_>>(), [(waits, RunState::Skipped, reason)]);
}

async fn a_claim_sent_again_answers_the_same(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    host.run(&replacing(&host, now - 9 * SECOND)).await;
    let older = replacing(&host, now - SECOND);
    let first = became(&host, &older).await;
    assert_eq!(became(&host, &older).await, first);
    wait_to_replace(&host, now).await;
    assert_eq!(became(&host, &older).await, Became::Skipped(SkipReason::Superseded), "it is over since");
}

async fn of_ten_triggers_at_once_the_newest_waits(db: &TestDb) {
    let hosts: Vec<_> = warm_stores(db, 10).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    let at = db.now().await - 30 * SECOND;
    hosts[0].run(&replacing(&hosts[0], at)).await;
    let claims: Vec<_> = (1..=10).map(|number: u32| replacing(&hosts[0], at + number * SECOND)).collect();
    let newest = claims[9].run;
    let claims = hosts.iter().cloned().zip(claims).map(|(host, claim)| async move {
        host.store.claim(&claim).await.unwrap();
    });
    at_once(claims).await;
    assert_eq!(db.count("runs", "state = 'skipped' AND reason = 'superseded'").await, 9);
    assert_eq!(state_of(&hosts[0], newest).await, because(RunState::Waiting, "replacing"));
    assert_eq!(db.count("requests", "1 = 1").await, 1);
}

async fn late_runs_and_followers_are_not_superseded(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let mut waiting = Vec::new();
    for (number, kind) in [TriggerKind::CatchUp, TriggerKind::After, TriggerKind::Manual].into_iter().enumerate() {
        let ago = Duration::from_secs(60 + number as u64);
        let run = host.run(&Claim { kind, ..host.claim("backup", now - ago) }).await;
        host.store.give_back(&run, "draining").await.unwrap();
        waiting.push(run.run);
    }
    let run = host.run(&replacing(&host, now - SECOND)).await;
    wait_to_replace(&host, now).await;
    stop(&host, &run).await;
    for run in waiting {
        assert_eq!(row(&host.store, run).await.state, RunState::Waiting);
    }
}

async fn a_replaced_run_that_is_given_back_is_cancelled(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&replacing(&host, now - SECOND)).await;
    let waits = wait_to_replace(&host, now).await;
    assert!(host.store.give_back(&run, "draining").await.unwrap());
    assert_eq!(state_of(&host, run.run).await, because(RunState::Cancelled, "replaced"));
    host.take(waits, "job:backup").await;
}

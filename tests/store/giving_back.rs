//! A claim that its host can't carry out after all.

use cronlatch::lock::FencingToken;
use cronlatch::store::{Claim, Finished, LockAtEnd, RunKey, WaitingRun};
use cronlatch::trigger::{RunState, TriggerKind};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_claim_given_back_waits_without_an_owner_and_its_lock_is_free,
    another_host_takes_what_was_given_back,
    giving_back_twice_does_no_harm,
    a_run_under_another_token_or_owner_is_not_given_back,
    a_started_run_is_not_given_back_and_keeps_its_lock,
    a_claim_whose_lock_was_taken_over_is_given_back_without_freeing_it,
    waiting_runs_are_listed_oldest_first,
);

async fn a_claim_given_back_waits_without_an_owner_and_its_lock_is_free(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let claim = Claim { start_deadline: 90 * SECOND, ..host.claim("backup", noon()) };
    let run = host.run(&claim).await;
    let now = noon() + SECOND;
    db.freeze_clock(now).await;
    assert!(host.store.give_back(&run, "drain").await.unwrap());
    let waiting = row(&host.store, run.run).await;
    assert_eq!((waiting.state, waiting.reason.as_deref()), (RunState::Waiting, Some("drain")));
    assert_eq!((waiting.host, waiting.token, waiting.claimed_at), (None, None, None));
    // Counted from the claim, however often it is given back.
    assert_eq!(waiting.wait_until, Some(noon() + 90 * SECOND));
    assert_eq!(db.count("runs", "owner IS NULL AND instance IS NULL").await, 1);
    assert_eq!(acquire(&host.store, "job:backup", "b").await.taken_from, None);
}

async fn another_host_takes_what_was_given_back(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let mine = one.run(&one.claim("backup", db.now().await)).await;
    assert!(one.store.give_back(&mine, "drain").await.unwrap());
    let theirs = other.take(mine.run, "job:backup").await;
    assert!(theirs.token > mine.token);
    let answer = one.store.finish(&mine, &success(), &[]).await.unwrap();
    assert_eq!(answer, Finished { recorded: false, lock: LockAtEnd::Gone, followed: vec![] });
    assert!(other.store.finish(&theirs, &success(), &[]).await.unwrap().recorded);
    let ended = row(&one.store, mine.run).await;
    assert_eq!((ended.host.as_deref(), ended.attempt, ended.token), (Some("web-2"), 1, Some(theirs.token)));
}

async fn giving_back_twice_does_no_harm(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let mine = one.run(&one.claim("backup", db.now().await)).await;
    assert!(one.store.give_back(&mine, "drain").await.unwrap());
    assert!(!one.store.give_back(&mine, "drain").await.unwrap());
    let theirs = other.take(mine.run, "job:backup").await;
    assert!(!one.store.give_back(&mine, "drain").await.unwrap());
    assert_eq!(lock(&one.store, "job:backup").await.holder.token, theirs.token);
    assert_eq!(row(&one.store, mine.run).await.state, RunState::Claimed);
}

async fn a_run_under_another_token_or_owner_is_not_given_back(db: &TestDb) {
    let (host, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let run = host.run(&host.claim("backup", db.now().await)).await;
    let stale = RunKey { token: FencingToken::new(run.token.get() - 1), ..run.clone() };
    let foreign = RunKey { owner: other.claimant("job:backup").owner, ..run.clone() };
    for key in [stale, foreign] {
        assert!(!host.store.give_back(&key, "drain").await.unwrap());
    }
    assert_eq!(row(&host.store, run.run).await.state, RunState::Claimed);
    assert!(is_held(&host.store, "job:backup").await);
}

/// Something may run under it: a free lock would let a second one run beside it.
async fn a_started_run_is_not_given_back_and_keeps_its_lock(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&host.claim("backup", now)).await;
    host.store.start(&run, now).await.unwrap();
    assert!(!host.store.give_back(&run, "drain").await.unwrap());
    assert_eq!(row(&host.store, run.run).await.state, RunState::Running);
    assert_eq!(lock(&host.store, "job:backup").await.holder.run, Some(run.run));
}

async fn a_claim_whose_lock_was_taken_over_is_given_back_without_freeing_it(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    db.let_expire("job:backup").await;
    let taker = acquire(&host.store, "job:backup", "b").await;
    assert!(host.store.give_back(&run, "drain").await.unwrap());
    assert_eq!(lock(&host.store, "job:backup").await.holder.token, taker.token);
    assert_eq!(row(&host.store, run.run).await.state, RunState::Waiting);
}

async fn waiting_runs_are_listed_oldest_first(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let mut expected = Vec::new();
    for name in ["c", "a", "b"] {
        let claim = host.claim(name, noon());
        host.store.give_back(&host.run(&claim).await, "drain").await.unwrap();
        expected.push(WaitingRun {
            run: claim.run,
            trigger: claim.trigger,
            attempt: 1,
            kind: TriggerKind::Schedule,
            since: noon(),
            wait_until: noon() + TTL,
            retries: 0,
        });
    }
    host.run(&host.claim("running", noon())).await;
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), expected);
}

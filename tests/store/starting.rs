//! Marking a claimed run as started.

use cronlatch::lock::FencingToken;
use cronlatch::store::RunKey;
use cronlatch::trigger::RunState;

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_claimed_run_is_running_once_started,
    starting_again_does_no_harm,
    a_run_under_another_token_or_owner_is_not_started,
    a_run_that_is_over_or_given_back_is_not_started,
);

async fn a_claimed_run_is_running_once_started(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let run = host.run(&host.claim("backup", noon())).await;
    assert!(host.store.start(&run, noon() + SECOND).await.unwrap());
    let started = row(&host.store, run.run).await;
    assert_eq!((started.state, started.started_at), (RunState::Running, Some(noon() + SECOND)));
    assert_eq!((started.claimed_at, started.token), (Some(noon()), Some(run.token)));
}

async fn starting_again_does_no_harm(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&host.claim("backup", now)).await;
    for _ in 0..2 {
        assert!(host.store.start(&run, now).await.unwrap());
    }
    assert_eq!(row(&host.store, run.run).await.started_at, Some(now));
}

async fn a_run_under_another_token_or_owner_is_not_started(db: &TestDb) {
    let (host, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let now = db.now().await;
    let run = host.run(&host.claim("backup", now)).await;
    let stale = RunKey { token: FencingToken::new(run.token.get() - 1), ..run.clone() };
    let foreign = RunKey { owner: other.claimant("job:backup").owner, ..run.clone() };
    for key in [stale, foreign] {
        assert!(!host.store.start(&key, now).await.unwrap());
    }
    assert_eq!(row(&host.store, run.run).await.state, RunState::Claimed);
}

async fn a_run_that_is_over_or_given_back_is_not_started(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let over = host.run(&host.claim("backup", now)).await;
    host.store.finish(&over, &success(), &[]).await.unwrap();
    let given_back = host.run(&host.claim("restore", now)).await;
    host.store.give_back(&given_back, "drain").await.unwrap();
    for (run, state) in [(over, RunState::Succeeded), (given_back, RunState::Waiting)] {
        assert!(!host.store.start(&run, now).await.unwrap());
        assert_eq!(row(&host.store, run.run).await.state, state);
    }
}

//! Taking a run that waits.

use std::time::Duration;

use chrono::TimeDelta;
use cronlatch::clock::BootInstant;
use cronlatch::store::{Claim, Claimed, RunKey, Taken, WhenHeld};
use cronlatch::trigger::{RunId, RunState};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    a_waiting_run_whose_lock_is_free_is_granted,
    a_waiting_run_whose_lock_is_held_goes_on_waiting,
    a_waiting_run_whose_job_runs_under_another_lock_goes_on_waiting,
    a_run_that_does_not_wait_is_gone,
    a_waiting_run_is_gone_at_the_end_of_its_wait,
    a_waiting_run_of_a_paused_job_is_not_taken_now,
    a_waiting_run_is_not_taken_over_a_dead_lock_while_the_clock_is_off,
    of_10_takers_one_is_granted,
    the_same_taker_again_is_granted_again_under_the_same_token,
    a_taken_run_has_the_lock_that_its_taker_names,
);

/// A run that waits for a lock that another one had and has no more.
async fn waiting_run(host: &Host, db: &TestDb) -> RunId {
    let now = db.now().await;
    let first = host.run(&host.claim("backup", now - SECOND)).await;
    let waits = Claim { when_held: WhenHeld::Wait(TTL), ..host.claim("backup", now) };
    let answer = host.store.claim(&waits).await.unwrap();
    assert!(matches!(answer, Claimed::Held { .. }), "{answer:?}");
    host.store.finish(&first, &success(), &[]).await.unwrap();
    waits.run
}

async fn a_waiting_run_whose_lock_is_free_is_granted(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    let run = waiting_run(&one, db).await;
    let now = noon() + 9 * SECOND;
    db.freeze_clock(now).await;
    let claimant = other.claimant("job:backup");
    let before = BootInstant::now();
    let grant = other.store.take(run, &claimant).await.unwrap().granted();
    assert_counted_from(before, grant.valid_until, TTL);
    assert_eq!((grant.acquired_at, grant.expires_at, grant.taken_from), (now, now + TTL, None));
    let taken = row(&one.store, run).await;
    assert_eq!((taken.state, taken.host.as_deref()), (RunState::Claimed, Some("web-2")));
    assert_eq!((taken.token, taken.claimed_at, taken.wait_until), (Some(grant.token), Some(now), None));
    assert_eq!(lock(&one.store, "job:backup").await.holder.run, Some(run));
    let key = RunKey { run, owner: claimant.owner, resource: claimant.resource, token: grant.token };
    assert!(other.store.start(&key, now).await.unwrap());
    assert!(other.store.finish(&key, &success(), &[]).await.unwrap().recorded);
}

async fn a_waiting_run_whose_lock_is_held_goes_on_waiting(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = waiting_run(&host, db).await;
    let grant = acquire(&host.store, "job:backup", "by hand").await;
    let before = db.sql("SELECT * FROM runs ORDER BY id").await;
    let answer = host.store.take(run, &host.claimant("job:backup")).await.unwrap();
    let Taken::Held(held) = answer else { panic!("{answer:?}") };
    assert_eq!((held.resource, held.token, held.run), (resource("job:backup"), grant.token, None));
    assert_eq!(db.sql("SELECT * FROM runs ORDER BY id").await, before);
    host.store.release(&resource("job:backup"), &owner("by hand"), None).await.unwrap();
    host.take(run, "job:backup").await;
}

async fn a_waiting_run_whose_job_runs_under_another_lock_goes_on_waiting(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = waiting_run(&host, db).await;
    let live = host.run(&host.claim("backup", db.now().await - 5 * SECOND)).await;
    let answer = host.store.take(run, &host.claimant("storage")).await.unwrap();
    let Taken::Held(held) = answer else { panic!("{answer:?}") };
    assert_eq!((held.resource, held.run), (resource("job:backup"), Some(live.run)));
    assert!(!is_held(&host.store, "storage").await);
}

async fn a_run_that_does_not_wait_is_gone(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let now = db.now().await;
    let live = one.run(&one.claim("live", now)).await;
    let over = one.run(&one.claim("over", now)).await;
    one.store.finish(&over, &success(), &[]).await.unwrap();
    for (run, name) in [(live.run, "job:live"), (over.run, "job:over"), (RunId::generate(), "job:none")] {
        assert_eq!(other.store.take(run, &other.claimant(name)).await.unwrap(), Taken::Gone, "{name}");
    }
    assert_eq!(lock(&one.store, "job:live").await.holder.run, Some(live.run));
    assert!(!is_held(&one.store, "job:over").await);
}

async fn a_waiting_run_is_gone_at_the_end_of_its_wait(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let run = waiting_run(&host, db).await;
    db.freeze_clock(noon() + TTL).await;
    assert_eq!(host.store.take(run, &host.claimant("job:backup")).await.unwrap(), Taken::Gone);
    assert!(!is_held(&host.store, "job:backup").await);
    db.freeze_clock(noon() + Duration::from_millis(59_999)).await;
    host.take(run, "job:backup").await;
}

async fn a_waiting_run_of_a_paused_job_is_not_taken_now(db: &TestDb) {
    let host = Host::new(db, "web-1");
    register_long_ago(db, &host, "backup", "digest").await;
    let run = waiting_run(&host, db).await;
    db.sql("UPDATE jobs SET paused = true").await;
    assert_eq!(host.store.take(run, &host.claimant("job:backup")).await.unwrap(), Taken::NotNow);
    assert!(!is_held(&host.store, "job:backup").await);
    let over = text(db.now().await - TimeDelta::seconds(1));
    db.sql(format!("UPDATE jobs SET paused_until = '{over}'")).await;
    host.take(run, "job:backup").await;
}

async fn a_waiting_run_is_not_taken_over_a_dead_lock_while_the_clock_is_off(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = waiting_run(&host, db).await;
    let dead = acquire(&host.store, "job:backup", "by hand").await;
    db.let_expire("job:backup").await;
    let mut claimant = host.claimant("job:backup");
    claimant.expected_now = Some(Expected::new(db.now().await - TimeDelta::hours(1)));
    assert_eq!(host.store.take(run, &claimant).await.unwrap(), Taken::NotNow);
    assert_eq!(row(&host.store, run).await.state, RunState::Waiting);
    claimant.expected_now = Some(Expected::new(db.now().await));
    let grant = host.store.take(run, &claimant).await.unwrap().granted();
    assert_eq!(grant.taken_from.map(|from| from.token), Some(dead.token));
}

async fn of_10_takers_one_is_granted(db: &TestDb) {
    let hosts: Vec<_> = warm_stores(db, 10).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    for round in 0..5 {
        let name = format!("backup-{round}");
        let first = hosts[0].run(&hosts[0].claim(&name, db.now().await)).await;
        hosts[0].store.give_back(&first, "drain").await.unwrap();
        let takers = hosts.iter().cloned().map(|host| {
            let claimant = host.claimant(&format!("job:{name}"));
            async move { host.store.take(first.run, &claimant).await.unwrap() }
        });
        let answers = at_once(takers).await;
        let tokens: Vec<_> = answers.iter().filter_map(|answer| answer.clone().grant()).map(|g| g.token).collect();
        assert_eq!(tokens.len(), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| matches!(answer, Taken::Granted(_) | Taken::Held(_) | Taken::Gone)));
        assert_eq!(row(&hosts[0].store, first.run).await.token, Some(tokens[0]));
        assert_eq!(lock(&hosts[0].store, &format!("job:{name}")).await.holder.token, tokens[0]);
    }
    assert_eq!(db.errors_logged(), [""; 0]);
}

async fn the_same_taker_again_is_granted_again_under_the_same_token(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = waiting_run(&host, db).await;
    let claimant = host.claimant("job:backup");
    let first = host.store.take(run, &claimant).await.unwrap().granted();
    let again = host.store.take(run, &claimant).await.unwrap().granted();
    assert_eq!((again.token, again.acquired_at, again.expires_at), (first.token, first.acquired_at, first.expires_at));
    // Another run's owner of the same host is not the same taker.
    assert_eq!(host.store.take(run, &host.claimant("job:backup")).await.unwrap(), Taken::Gone);
}

async fn a_taken_run_has_the_lock_that_its_taker_names(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = waiting_run(&host, db).await;
    let key = host.take(run, "storage").await;
    assert_eq!(row(&host.store, run).await.resource, "storage");
    assert_eq!(lock(&host.store, "storage").await.holder.run, Some(run));
    assert!(host.store.finish(&key, &success(), &[]).await.unwrap().recorded);
    assert!(!is_held(&host.store, "storage").await);
}

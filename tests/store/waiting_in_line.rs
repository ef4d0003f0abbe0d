//! Calls that had to wait for a row or the file: no answer is true by the clock of before the wait.
//!
//! The waits here are short, below every bound; those that are not stand in the files of one
//! database.

use std::time::{Duration, Instant};

use cronlatch::clock::BootInstant;
use cronlatch::store::{Acquire, Released, StoreError};
use tokio::task::JoinSet;

use super::database::TestDb;
use super::fixtures::*;
use crate::support::wait::{PATIENCE, eventually_async};

on_both_databases!(
    a_grant_that_had_to_wait_counts_from_the_end_of_the_wait,
    an_owner_whose_grant_ran_out_while_it_waited_has_a_new_one,
    a_release_that_waited_past_the_expiry_finds_nothing,
    a_call_that_waited_for_its_turn_is_carried_out,
);

const SHORT: Duration = Duration::from_millis(250);

async fn a_grant_that_had_to_wait_counts_from_the_end_of_the_wait(db: &TestDb) {
    let store = db.store();
    for round in 0.. {
        let name = format!("report-{round}");
        acquire(&store, &name, "a").await;
        db.let_expire(&name).await;
        let blocker = db.block("distributed_locks", &format!("resource = '{name}'")).await;
        let taker = store.clone();
        let short = Acquire { ttl: ttl(SHORT), ..attempt(&name, "b") };
        let mut waiting = JoinSet::new();
        let began = Instant::now();
        let sent = BootInstant::now();
        waiting.spawn(async move { taker.acquire(&short).await });
        eventually_async("the wait is longer than the grant", PATIENCE, async || began.elapsed() > SHORT).await;
        let let_go_at = db.now().await;
        blocker.end().await;
        let Some(answer) = unless_busy(waiting.join_all().await, round) else { continue };
        let grant = answer.granted();
        assert!(grant.acquired_at >= let_go_at, "granted at {}, blocked until {let_go_at}", grant.acquired_at);
        assert_eq!(grant.expires_at, grant.acquired_at + SHORT);
        assert!(grant.valid_until >= sent + SHORT && grant.valid_until <= BootInstant::now() + SHORT);
        return;
    }
}

async fn an_owner_whose_grant_ran_out_while_it_waited_has_a_new_one(db: &TestDb) {
    let store = db.store();
    for round in 0.. {
        let name = format!("report-{round}");
        let short = Acquire { ttl: ttl(SHORT), ..attempt(&name, "a") };
        let first = store.acquire(&short).await.unwrap().granted();
        let blocker = db.block("distributed_locks", &format!("resource = '{name}'")).await;
        let (taker, again) = (store.clone(), attempt(&name, "a"));
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { taker.acquire(&again).await });
        eventually_async("the grant ran out", PATIENCE, async || db.now().await > first.expires_at).await;
        blocker.end().await;
        let Some(answer) = unless_busy(waiting.join_all().await, round) else { continue };
        let second = answer.granted();
        assert!(second.token > first.token);
        assert_eq!(second.taken_from.map(|from| from.token), Some(first.token));
        return;
    }
}

async fn a_release_that_waited_past_the_expiry_finds_nothing(db: &TestDb) {
    let store = db.store();
    for round in 0.. {
        let name = format!("report-{round}");
        let short = Acquire { ttl: ttl(SHORT), ..attempt(&name, "a") };
        let grant = store.acquire(&short).await.unwrap().granted();
        let blocker = db.block("distributed_locks", &format!("resource = '{name}'")).await;
        let (releaser, what) = (store.clone(), resource(&name));
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { releaser.release(&what, &owner("a"), None).await });
        eventually_async("the grant ran out", PATIENCE, async || db.now().await > grant.expires_at).await;
        blocker.end().await;
        let Some(answer) = unless_busy(waiting.join_all().await, round) else { continue };
        assert_eq!(answer, Released::NotFound);
        assert_eq!(db.count("distributed_locks", "released_at IS NOT NULL").await, 0);
        return;
    }
}

async fn a_call_that_waited_for_its_turn_is_carried_out(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("backup", db.now().await)).await;
    for round in 0.. {
        let blocker = db.block("runs", "true").await;
        let (store, key) = (host.store.clone(), run.clone());
        let mut waiting = JoinSet::new();
        let began = Instant::now();
        waiting.spawn(async move { store.finish(&key, &success(), &[]).await });
        eventually_async("it has waited", PATIENCE, async || began.elapsed() > 50 * MILLISECOND).await;
        blocker.end().await;
        let Some(answer) = unless_busy(waiting.join_all().await, round) else { continue };
        assert!(answer.recorded);
        assert!(!is_held(&host.store, "job:backup").await);
        return;
    }
}

/// The one answer; `None` if this machine was so slow that the wait became too long, which is an
/// answer, too, but a few times at most.
#[track_caller]
fn unless_busy<T>(mut answers: Vec<Result<T, StoreError>>, round: u32) -> Option<T> {
    match answers.pop().unwrap() {
        Err(StoreError::Busy { .. }) if round < 5 => None,
        answer => Some(answer.unwrap()),
    }
}

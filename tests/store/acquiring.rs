//! One attempt to get a lock, in every situation that it can meet.

use chrono::TimeDelta;
use cronlatch::clock::BootInstant;
use cronlatch::fleet::{HostName, InstanceId};
use cronlatch::lock::{Owner, PublicOwner, Ttl};
use cronlatch::store::{Acquire, Acquired, LockRow, PreviousOwner};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_resource_that_nobody_locked_is_granted,
    a_lock_that_another_holds_is_refused_and_says_who_holds_it,
    a_refused_attempt_changes_nothing,
    an_owner_that_holds_it_is_granted_it_again_under_the_same_token,
    acquiring_again_with_a_shorter_ttl_shortens_the_grant,
    an_expired_lock_is_taken_over_and_the_answer_says_from_whom,
    ones_own_expired_lock_is_taken_over_under_a_new_token,
    a_released_lock_is_granted_without_a_takeover,
    a_lock_is_taken_over_again_and_again,
    the_shortest_and_the_longest_ttl_are_kept_to_the_millisecond,
    the_secret_of_a_generated_owner_is_in_no_answer,
    the_local_deadline_is_never_later_than_the_row,
    hosts_that_share_nothing_but_the_tables_see_the_same_lock,
);

async fn a_resource_that_nobody_locked_is_granted(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let before = BootInstant::now();
    let grant = acquire(&store, "report", "a").await;
    assert_counted_from(before, grant.valid_until, TTL);
    assert_eq!((grant.acquired_at, grant.expires_at), (noon(), noon() + TTL));
    assert_eq!(grant.taken_from, None);
    let row = LockRow { holder: holder("report", "a", &grant, noon()), renewed_at: noon(), released_at: None };
    assert_eq!(lock(&store, "report").await, row);
}

async fn a_lock_that_another_holds_is_refused_and_says_who_holds_it(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let grant = acquire(&store, "report", "a").await;
    db.freeze_clock(noon() + 7 * SECOND).await;
    let answer = store.acquire(&attempt("report", "b")).await.unwrap();
    assert_eq!(answer, Acquired::Held(holder("report", "a", &grant, noon() + 7 * SECOND)));
}

async fn a_refused_attempt_changes_nothing(db: &TestDb) {
    let store = db.store();
    acquire(&store, "report", "a").await;
    let before = db.sql("SELECT * FROM distributed_locks").await;
    for _ in 0..3 {
        assert!(!store.acquire(&attempt("report", "b")).await.unwrap().is_granted());
    }
    assert_eq!(db.sql("SELECT * FROM distributed_locks").await, before);
}

async fn an_owner_that_holds_it_is_granted_it_again_under_the_same_token(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let first = acquire(&store, "report", "a").await;
    db.freeze_clock(noon() + 7 * SECOND).await;
    let before = BootInstant::now();
    let again = acquire(&store, "report", "a").await;
    assert_counted_from(before, again.valid_until, TTL);
    assert_eq!((again.token, again.taken_from), (first.token, None));
    assert_eq!((again.acquired_at, again.expires_at), (noon() + 7 * SECOND, noon() + 7 * SECOND + TTL));
}

async fn acquiring_again_with_a_shorter_ttl_shortens_the_grant(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    acquire(&store, "report", "a").await;
    let shorter = Acquire { ttl: ttl(SECOND), ..attempt("report", "a") };
    let grant = store.acquire(&shorter).await.unwrap().granted();
    assert_eq!(grant.expires_at, noon() + SECOND);
    assert_eq!(lock(&store, "report").await.holder.expires_at, noon() + SECOND);
}

async fn an_expired_lock_is_taken_over_and_the_answer_says_from_whom(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let first = acquire(&store, "report", "a").await;
    let later = noon() + 2 * TTL;
    db.freeze_clock(later).await;
    let second = acquire(&store, "report", "b").await;
    let previous = PreviousOwner {
        owner: PublicOwner::of("a"),
        token: first.token,
        acquired_at: first.acquired_at,
        expired_at: first.expires_at,
    };
    assert_eq!(second.taken_from, Some(previous));
    assert!(second.token > first.token);
    assert_eq!((second.acquired_at, second.expires_at), (later, later + TTL));
    assert_eq!(lock(&store, "report").await.holder, holder("report", "b", &second, later));
    assert_eq!(db.count("distributed_locks", "true").await, 1);
}

async fn ones_own_expired_lock_is_taken_over_under_a_new_token(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let first = acquire(&store, "report", "a").await;
    db.freeze_clock(noon() + TTL).await;
    let second = acquire(&store, "report", "a").await;
    assert!(second.token > first.token);
    assert_eq!(second.taken_from.map(|from| (from.owner, from.token)), Some((PublicOwner::of("a"), first.token)));
}

async fn a_released_lock_is_granted_without_a_takeover(db: &TestDb) {
    let store = db.store();
    for (before, after) in [("a", "b"), ("b", "b")] {
        let first = acquire(&store, "report", before).await;
        store.release(&resource("report"), &owner(before), None).await.unwrap();
        let second = acquire(&store, "report", after).await;
        assert_eq!(second.taken_from, None);
        assert!(second.token > first.token);
        assert_eq!(lock(&store, "report").await.released_at, None);
    }
    assert_eq!(db.count("distributed_locks", "true").await, 1);
}

async fn a_lock_is_taken_over_again_and_again(db: &TestDb) {
    let store = db.store();
    let mut last = acquire(&store, "report", "owner-0").await;
    for taker in 1..5 {
        db.let_expire("report").await;
        let grant = acquire(&store, "report", &format!("owner-{taker}")).await;
        let from = grant.taken_from.clone().map(|from| (from.owner, from.token));
        assert_eq!(from, Some((PublicOwner::of(&format!("owner-{}", taker - 1)), last.token)));
        last = grant;
    }
}

async fn the_shortest_and_the_longest_ttl_are_kept_to_the_millisecond(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    for (name, length) in [("short", MILLISECOND), ("long", Ttl::MAX)] {
        let before = BootInstant::now();
        let grant = store.acquire(&Acquire { ttl: ttl(length), ..attempt(name, "a") }).await.unwrap().granted();
        assert_eq!(grant.expires_at, noon() + length);
        assert_counted_from(before, grant.valid_until, length);
    }
}

async fn the_secret_of_a_generated_owner_is_in_no_answer(db: &TestDb) {
    let store = db.store();
    let generated = Owner::generate(&HostName::new("web-1").unwrap(), InstanceId::generate());
    let (public, secret) = generated.reveal().rsplit_once('/').unwrap();
    store.acquire(&Acquire { owner: generated.clone(), ..attempt("report", "-") }).await.unwrap().granted();
    let mut answers = vec![
        format!("{:?}", store.acquire(&attempt("report", "b")).await.unwrap()),
        format!("{:?}", store.release(&resource("report"), &owner("b"), None).await.unwrap()),
        format!("{:?}", store.renew(&[renewal("report", "b", None)], WITHIN).await.unwrap()),
        format!("{:?}", store.lock(&resource("report")).await.unwrap()),
        format!("{:?}", store.locks().await.unwrap()),
    ];
    db.let_expire("report").await;
    answers.push(format!("{:?}", store.acquire(&attempt("report", "b")).await.unwrap()));
    for answer in answers {
        assert!(answer.contains(public) && !answer.contains(secret), "{answer}");
    }
}

async fn the_local_deadline_is_never_later_than_the_row(db: &TestDb) {
    let store = db.store();
    db.set_clock(TimeDelta::days(-400)).await;
    for _ in 0..20 {
        let grant = acquire(&store, "report", "a").await;
        let now = db.now().await;
        let (left, left_here) = ((grant.expires_at - now).to_std().unwrap(), grant.valid_until.remaining());
        assert!(left_here <= left + MILLISECOND, "{left_here:?} here, {left:?} in the row");
        assert!(left_here > TTL / 2, "{left_here:?}");
    }
}

async fn hosts_that_share_nothing_but_the_tables_see_the_same_lock(db: &TestDb) {
    let (one, other) = (db.store(), db.store());
    let grant = acquire(&one, "report", "a").await;
    assert_eq!(lock(&other, "report").await.holder.token, grant.token);
    assert!(!other.acquire(&attempt("report", "b")).await.unwrap().is_granted());
    one.release(&resource("report"), &owner("a"), None).await.unwrap();
    acquire(&other, "report", "b").await;
}

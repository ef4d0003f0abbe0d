//! Freeing a lock, in every situation that it can meet.

use cronlatch::store::Released;

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_held_lock_is_free_once_released,
    a_released_row_stays_and_has_expired_for_good,
    a_lock_that_nobody_took_is_not_found,
    an_expired_lock_is_not_found_and_stays_as_it_is,
    a_lock_that_another_holds_is_forbidden_and_stays_as_it_is,
    releasing_twice_does_no_harm,
    a_release_under_the_right_token_frees_that_ownership,
    a_stale_release_of_the_same_owner_frees_nothing_new,
);

async fn a_held_lock_is_free_once_released(db: &TestDb) {
    let store = db.store();
    acquire(&store, "report", "a").await;
    acquire(&store, "other", "a").await;
    assert_eq!(store.release(&resource("report"), &owner("a"), None).await.unwrap(), Released::Released);
    assert!(!is_held(&store, "report").await);
    assert!(is_held(&store, "other").await);
    acquire(&store, "report", "b").await;
}

async fn a_released_row_stays_and_has_expired_for_good(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    acquire(&store, "report", "a").await;
    store.release(&resource("report"), &owner("a"), None).await.unwrap();
    assert_eq!(db.count("distributed_locks", "released_at = '2031-05-01T12:00:00.000Z'").await, 1);
    assert_eq!(db.count("distributed_locks", "expires_at = '1970-01-01T00:00:00.000Z'").await, 1);
}

async fn a_lock_that_nobody_took_is_not_found(db: &TestDb) {
    let answer = db.store().release(&resource("report"), &owner("a"), None).await.unwrap();
    assert_eq!(answer, Released::NotFound);
    assert_eq!(db.count("distributed_locks", "true").await, 0);
}

async fn an_expired_lock_is_not_found_and_stays_as_it_is(db: &TestDb) {
    let store = db.store();
    acquire(&store, "report", "a").await;
    db.let_expire("report").await;
    let before = db.sql("SELECT * FROM distributed_locks").await;
    for name in ["a", "b"] {
        assert_eq!(store.release(&resource("report"), &owner(name), None).await.unwrap(), Released::NotFound);
    }
    assert_eq!(db.sql("SELECT * FROM distributed_locks").await, before);
}

async fn a_lock_that_another_holds_is_forbidden_and_stays_as_it_is(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let grant = acquire(&store, "report", "a").await;
    let before = db.sql("SELECT * FROM distributed_locks").await;
    for token in [None, Some(grant.token)] {
        let answer = store.release(&resource("report"), &owner("b"), token).await.unwrap();
        assert_eq!(answer, Released::Forbidden(holder("report", "a", &grant, noon())));
    }
    assert_eq!(db.sql("SELECT * FROM distributed_locks").await, before);
}

async fn releasing_twice_does_no_harm(db: &TestDb) {
    let store = db.store();
    acquire(&store, "report", "a").await;
    assert_eq!(store.release(&resource("report"), &owner("a"), None).await.unwrap(), Released::Released);
    assert_eq!(store.release(&resource("report"), &owner("a"), None).await.unwrap(), Released::NotFound);
    acquire(&store, "report", "b").await;
    assert!(matches!(store.release(&resource("report"), &owner("a"), None).await.unwrap(), Released::Forbidden(_)));
    assert!(is_held(&store, "report").await);
}

async fn a_release_under_the_right_token_frees_that_ownership(db: &TestDb) {
    let store = db.store();
    let grant = acquire(&store, "report", "a").await;
    let answer = store.release(&resource("report"), &owner("a"), Some(grant.token)).await.unwrap();
    assert_eq!(answer, Released::Released);
    assert!(!is_held(&store, "report").await);
}

async fn a_stale_release_of_the_same_owner_frees_nothing_new(db: &TestDb) {
    let store = db.store();
    let first = acquire(&store, "report", "a").await;
    db.let_expire("report").await;
    let second = acquire(&store, "report", "a").await;
    let answer = store.release(&resource("report"), &owner("a"), Some(first.token)).await.unwrap();
    assert_ne!(answer, Released::Released);
    assert_eq!(lock(&store, "report").await.holder.token, second.token);
}

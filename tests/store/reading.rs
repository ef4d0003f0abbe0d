//! Looking at locks.

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_lock_is_shown_while_it_is_held_only,
    all_locks_are_listed_by_name_with_those_left_to_expire,
    a_lock_that_guards_a_run_says_which,
);

async fn a_lock_is_shown_while_it_is_held_only(db: &TestDb) {
    let store = db.store();
    assert_eq!(store.lock(&resource("report")).await.unwrap(), None);
    acquire(&store, "report", "a").await;
    assert!(is_held(&store, "report").await);
    db.let_expire("report").await;
    assert!(!is_held(&store, "report").await);
    acquire(&store, "report", "a").await;
    store.release(&resource("report"), &owner("a"), None).await.unwrap();
    assert!(!is_held(&store, "report").await);
}

async fn all_locks_are_listed_by_name_with_those_left_to_expire(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    for name in ["b", "a", "released", "B", "ä", "expired"] {
        acquire(&store, name, "someone").await;
    }
    store.release(&resource("released"), &owner("someone"), None).await.unwrap();
    db.let_expire("expired").await;
    let locks = store.locks().await.unwrap();
    let names: Vec<_> = locks.iter().map(|row| row.holder.resource.as_str()).collect();
    assert_eq!(names, ["B", "a", "b", "expired", "ä"]);
    assert!(locks.iter().all(|row| row.released_at.is_none()));
    let left: Vec<_> = locks.iter().map(|row| row.holder.remaining.as_secs()).collect();
    assert_eq!(left, [60, 60, 60, 0, 60]);
}

async fn a_lock_that_guards_a_run_says_which(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let claim = host.claim("backup", db.now().await);
    let run = host.run(&claim).await;
    assert_eq!(lock(&host.store, "job:backup").await.holder.run, Some(claim.run));
    host.store.finish(&run, &success(), &[]).await.unwrap();
    acquire(&host.store, "job:backup", "somebody else").await;
    assert_eq!(lock(&host.store, "job:backup").await.holder.run, None);
}

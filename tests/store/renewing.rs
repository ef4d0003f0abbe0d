//! Renewals: what goes on, what is lost, and that a batch keeps its answers apart.

use cronlatch::clock::BootInstant;
use cronlatch::lock::{FencingToken, PublicOwner};
use cronlatch::store::{Loss, Renewal, Renewed};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_renewal_moves_the_end_alone,
    a_renewal_with_a_shorter_ttl_shortens_the_grant,
    a_renewal_without_a_token_renews_whichever_the_owner_holds,
    a_batch_keeps_its_order,
    an_empty_batch_is_answered,
    a_thousand_leases_are_renewed_in_one_call,
    a_lock_that_is_not_there_is_lost_and_gone,
    a_released_lock_is_lost_and_gone,
    an_expired_lock_is_lost_and_never_revived,
    a_lock_that_another_holds_is_lost_to_it,
    a_lock_that_was_taken_over_is_lost_though_that_one_expired_too,
    a_renewal_under_an_old_token_of_the_same_owner_is_lost,
    renewing_the_same_resource_for_its_owner_and_for_others_renews_for_the_owner,
    two_batches_in_opposite_order_do_not_deadlock,
);

async fn a_renewal_moves_the_end_alone(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let grant = acquire(&store, "report", "a").await;
    let later = noon() + 20 * SECOND;
    db.freeze_clock(later).await;
    let before = BootInstant::now();
    let renewed = store.renew(&[renewal("report", "a", grant.token)], WITHIN).await.unwrap();
    let [Renewed::Renewed { valid_until, expires_at }] = renewed[..] else { panic!("{renewed:?}") };
    assert_counted_from(before, valid_until, TTL);
    assert_eq!(expires_at, later + TTL);
    let row = lock(&store, "report").await;
    assert_eq!((row.holder.acquired_at, row.holder.token), (noon(), grant.token));
    assert_eq!((row.renewed_at, row.holder.expires_at, row.released_at), (later, later + TTL, None));
}

async fn a_renewal_with_a_shorter_ttl_shortens_the_grant(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    acquire(&store, "report", "a").await;
    let shorter = Renewal { ttl: ttl(SECOND), ..renewal("report", "a", None) };
    let before = BootInstant::now();
    let renewed = store.renew(&[shorter], WITHIN).await.unwrap();
    let [Renewed::Renewed { valid_until, expires_at }] = renewed[..] else { panic!("{renewed:?}") };
    assert_counted_from(before, valid_until, SECOND);
    assert_eq!(expires_at, noon() + SECOND);
    assert_eq!(lock(&store, "report").await.holder.expires_at, noon() + SECOND);
}

async fn a_renewal_without_a_token_renews_whichever_the_owner_holds(db: &TestDb) {
    let store = db.store();
    acquire(&store, "report", "a").await;
    db.let_expire("report").await;
    acquire(&store, "report", "a").await;
    assert!(is_renewed(&store.renew(&[renewal("report", "a", None)], WITHIN).await.unwrap()[0]));
}

async fn a_batch_keeps_its_order(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let mut batch = Vec::new();
    // Neither by name nor by the order of their making; each is told apart by its TTL.
    for number in [7, 3, 9, 1, 8, 2, 6, 4, 5] {
        let name = format!("report-{number}");
        if number % 3 != 0 {
            acquire(&store, &name, "a").await;
        }
        batch.push(Renewal { ttl: ttl(number * SECOND), ..renewal(&name, "a", None) });
    }
    let answers = store.renew(&batch, WITHIN).await.unwrap();
    assert_eq!(answers.len(), batch.len());
    for (asked, answer) in batch.iter().zip(answers) {
        match answer {
            Renewed::Renewed { expires_at, .. } => assert_eq!(expires_at, noon() + asked.ttl.get()),
            answer => {
                assert_eq!(answer, Renewed::Lost(Loss::Gone));
                assert_eq!(asked.ttl.get().as_secs() % 3, 0);
            }
        }
    }
}

async fn an_empty_batch_is_answered(db: &TestDb) {
    assert_eq!(db.store().renew(&[], WITHIN).await.unwrap(), []);
}

async fn a_thousand_leases_are_renewed_in_one_call(db: &TestDb) {
    let store = db.store();
    let names: Vec<_> = (0..1000).map(|number| format!("report-{number}")).collect();
    // Made by SQL: the case is about the renewal.
    let now = db.now().await;
    let (now, end) = (super::database::text(now), super::database::text(now + TTL));
    let rows: Vec<_> = names.iter().map(|name| format!("('{name}', 'a', 1, '{now}', '{now}', '{end}')")).collect();
    db.sql(format!(
        "INSERT INTO distributed_locks (resource, owner, token, acquired_at, renewed_at, expires_at) VALUES {}",
        rows.join(", ")
    ))
    .await;
    let batch: Vec<_> = names.iter().map(|name| renewal(name, "a", FencingToken::new(1))).collect();
    let answers = store.renew(&batch, WITHIN).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| is_renewed(answer)).count(), 1000);
}

async fn a_lock_that_is_not_there_is_lost_and_gone(db: &TestDb) {
    let store = db.store();
    let grant = acquire(&store, "report", "a").await;
    db.sql("DELETE FROM distributed_locks").await;
    for token in [None, Some(grant.token)] {
        assert_eq!(store.renew(&[renewal("report", "a", token)], WITHIN).await.unwrap(), [Renewed::Lost(Loss::Gone)]);
    }
    assert_eq!(db.count("distributed_locks", "true").await, 0);
}

async fn a_released_lock_is_lost_and_gone(db: &TestDb) {
    let store = db.store();
    let grant = acquire(&store, "report", "a").await;
    store.release(&resource("report"), &owner("a"), None).await.unwrap();
    for token in [None, Some(grant.token)] {
        assert_eq!(store.renew(&[renewal("report", "a", token)], WITHIN).await.unwrap(), [Renewed::Lost(Loss::Gone)]);
    }
    assert!(!is_held(&store, "report").await);
}

async fn an_expired_lock_is_lost_and_never_revived(db: &TestDb) {
    let store = db.store();
    let grant = acquire(&store, "report", "a").await;
    db.let_expire("report").await;
    let before = db.sql("SELECT * FROM distributed_locks").await;
    for token in [None, Some(grant.token)] {
        assert_eq!(
            store.renew(&[renewal("report", "a", token)], WITHIN).await.unwrap(),
            [Renewed::Lost(Loss::Expired)]
        );
    }
    assert_eq!(db.sql("SELECT * FROM distributed_locks").await, before);
}

async fn a_lock_that_another_holds_is_lost_to_it(db: &TestDb) {
    let store = db.store();
    let mine = acquire(&store, "report", "a").await;
    db.let_expire("report").await;
    let theirs = acquire(&store, "report", "b").await;
    let before = db.sql("SELECT * FROM distributed_locks").await;
    for token in [None, Some(mine.token), Some(theirs.token)] {
        let answers = store.renew(&[renewal("report", "a", token)], WITHIN).await.unwrap();
        assert_eq!(answers, [Renewed::Lost(Loss::TakenOver(PublicOwner::of("b")))]);
    }
    assert_eq!(db.sql("SELECT * FROM distributed_locks").await, before);
}

async fn a_lock_that_was_taken_over_is_lost_though_that_one_expired_too(db: &TestDb) {
    let store = db.store();
    let mine = acquire(&store, "report", "a").await;
    db.let_expire("report").await;
    acquire(&store, "report", "b").await;
    db.let_expire("report").await;
    let answers = store.renew(&[renewal("report", "a", mine.token)], WITHIN).await.unwrap();
    assert!(matches!(answers[..], [Renewed::Lost(_)]), "{answers:?}");
}

async fn a_renewal_under_an_old_token_of_the_same_owner_is_lost(db: &TestDb) {
    let store = db.store();
    let old = acquire(&store, "report", "a").await;
    db.let_expire("report").await;
    let new = acquire(&store, "report", "a").await;
    let answers = store.renew(&[renewal("report", "a", old.token)], WITHIN).await.unwrap();
    assert_eq!(answers, [Renewed::Lost(Loss::TakenOver(PublicOwner::of("a")))]);
    let row = lock(&store, "report").await;
    assert_eq!((row.holder.token, row.holder.expires_at), (new.token, new.expires_at));
}

async fn renewing_the_same_resource_for_its_owner_and_for_others_renews_for_the_owner(db: &TestDb) {
    let store = db.store();
    let grant = acquire(&store, "report", "a").await;
    let batch = [
        renewal("report", "b", None),
        renewal("report", "a", grant.token),
        renewal("report", "a", FencingToken::new(grant.token.get() - 1)),
    ];
    let answers = store.renew(&batch, WITHIN).await.unwrap();
    assert!(matches!(answers[..], [Renewed::Lost(_), Renewed::Renewed { .. }, Renewed::Lost(_)]), "{answers:?}");
}

async fn two_batches_in_opposite_order_do_not_deadlock(db: &TestDb) {
    let stores = warm_stores(db, 4).await;
    let names: Vec<_> = (0..100).map(|number| format!("report-{number}")).collect();
    for name in &names {
        acquire(&stores[0], name, "a").await;
    }
    let forth: Vec<_> = names.iter().map(|name| renewal(name, "a", None)).collect();
    let back: Vec<_> = forth.iter().rev().cloned().collect();
    let renewers = stores.iter().cloned().enumerate().map(|(number, store)| {
        let batch = if number % 2 == 0 { forth.clone() } else { back.clone() };
        async move {
            let mut answers = Vec::new();
            for _ in 0..20 {
                answers.extend(store.renew(&batch, WITHIN).await.unwrap());
            }
            answers
        }
    });
    let answers = at_once(renewers).await.concat();
    // A row that the other batch has locked is unknown; none is lost.
    assert!(answers.iter().all(|answer| is_renewed(answer) || *answer == Renewed::Unknown));
    assert!(answers.iter().any(is_renewed));
    assert_eq!(db.errors_logged(), [""; 0]);
}

fn is_renewed(answer: &Renewed) -> bool {
    matches!(answer, Renewed::Renewed { .. })
}

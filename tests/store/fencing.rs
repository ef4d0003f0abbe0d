//! A fencing token rises with every new ownership and never falls, whatever becomes of the rows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    every_new_ownership_has_a_higher_token,
    a_token_does_not_fall_when_its_row_was_pruned,
    a_token_is_never_drawn_twice_while_rows_are_pruned,
    a_claim_draws_from_the_same_tokens_as_an_acquire,
);

async fn every_new_ownership_has_a_higher_token(db: &TestDb) {
    let store = db.store();
    let mut last = acquire(&store, "report", "a").await.token;
    for round in 0..10 {
        if round % 2 == 0 {
            db.let_expire("report").await;
        } else {
            store.release(&resource("report"), &owner("a"), None).await.unwrap();
        }
        let token = acquire(&store, "report", "a").await.token;
        assert!(token > last, "{token} after {last}");
        last = token;
    }
}

async fn a_token_does_not_fall_when_its_row_was_pruned(db: &TestDb) {
    let store = db.store();
    let mut last = acquire(&store, "report", "a").await.token;
    for _ in 0..3 {
        store.release(&resource("report"), &owner("a"), None).await.unwrap();
        db.sql("DELETE FROM distributed_locks").await;
        let token = acquire(&store, "report", "a").await.token;
        assert!(token > last, "{token} after {last}");
        last = token;
    }
}

/// Four hosts take turns while a fifth deletes each row that it finds released.
async fn a_token_is_never_drawn_twice_while_rows_are_pruned(db: &TestDb) {
    let stores = warm_stores(db, 4).await;
    let over = Arc::new(AtomicBool::new(false));
    let owners = stores.into_iter().enumerate().map(|(number, store)| {
        let name = format!("owner-{number}");
        async move {
            let mut tokens = Vec::new();
            while tokens.len() < 25 {
                if let Some(grant) = store.acquire(&attempt("report", &name)).await.unwrap().grant() {
                    tokens.push(grant.token);
                    store.release(&resource("report"), &owner(&name), Some(grant.token)).await.unwrap();
                }
            }
            tokens
        }
    });
    let pruning = async {
        while !over.load(Ordering::Relaxed) {
            db.sql("DELETE FROM distributed_locks WHERE released_at IS NOT NULL").await;
        }
    };
    let owners = async {
        let tokens = at_once(owners).await;
        over.store(true, Ordering::Relaxed);
        tokens
    };
    let (tokens, ()) = tokio::join!(owners, pruning);
    for own in &tokens {
        assert!(own.is_sorted(), "{own:?}");
    }
    let all: BTreeSet<_> = tokens.iter().flatten().collect();
    assert_eq!(all.len(), 100, "a token was drawn twice");
}

async fn a_claim_draws_from_the_same_tokens_as_an_acquire(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let before = acquire(&host.store, "job:backup", "a").await.token;
    host.store.release(&resource("job:backup"), &owner("a"), None).await.unwrap();
    let claim = host.claim("backup", db.now().await);
    let run = host.run(&claim).await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
    let after = acquire(&host.store, "job:backup", "a").await.token;
    assert!(before < run.token && run.token < after);
}

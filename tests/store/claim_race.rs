//! A thousand triggers, claimed by all hosts at once: each is run by exactly one.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use cronlatch::store::{Claimed, SharedStore, StoreError};
use cronlatch::trigger::RunId;

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    each_of_a_thousand_triggers_is_won_by_one_of_2_claimants,
    each_of_a_thousand_triggers_is_won_by_one_of_10_claimants,
    each_of_a_thousand_triggers_is_won_by_one_of_50_claimants,
);

const TRIGGERS: usize = 1000;

/// So many hosts as are opened for 50 claimants; the claimants of one host share its connections.
const HOSTS: usize = 10;

async fn each_of_a_thousand_triggers_is_won_by_one_of_2_claimants(db: &TestDb) {
    let stores = warm_stores(db, 2).await;
    each_is_won_once(db, &stores, 2, TRIGGERS).await;
}

async fn each_of_a_thousand_triggers_is_won_by_one_of_10_claimants(db: &TestDb) {
    let stores = warm_stores(db, HOSTS).await;
    each_is_won_once(db, &stores, 10, TRIGGERS).await;
}

async fn each_of_a_thousand_triggers_is_won_by_one_of_50_claimants(db: &TestDb) {
    let stores = warm_stores(db, HOSTS).await;
    each_is_won_once(db, &stores, 50, TRIGGERS).await;
}

/// Lets the claimants, spread over the stores, claim as many triggers at once, and looks at who
/// was told what and at what the tables hold.
pub async fn each_is_won_once(db: &TestDb, stores: &[SharedStore], claimants: usize, triggers: usize) {
    let due = db.now().await;
    let claimants = stores.iter().cycle().take(claimants).enumerate().map(|(number, store)| {
        let host = Host::with_store(store.clone(), &format!("host-{number}"));
        async move {
            let mut answers = Vec::with_capacity(triggers);
            for number in 0..triggers {
                answers.push(claim(&host, &format!("job-{number}"), due).await);
            }
            answers
        }
    });
    let answers = at_once(claimants).await;
    let mut tokens = BTreeSet::new();
    for trigger in 0..triggers {
        let told: Vec<_> = answers.iter().map(|answers| &answers[trigger]).collect();
        let winners: Vec<_> = told.iter().filter(|(_, answer)| answer.is_granted()).collect();
        assert_eq!(winners.len(), 1, "trigger {trigger}: {told:?}");
        let (winner, answer) = winners[0];
        tokens.insert(answer.clone().granted().token);
        for (_, answer) in told.iter().filter(|(_, answer)| !answer.is_granted()) {
            let Claimed::AlreadyClaimed { run, .. } = answer else { panic!("trigger {trigger}: {answer:?}") };
            assert_eq!(run, winner);
        }
    }
    let all = u64::try_from(triggers).unwrap();
    assert_eq!(tokens.len(), triggers);
    assert_eq!(db.count("runs", "state = 'claimed' AND token IS NOT NULL").await, all);
    assert_eq!(db.count("runs", "1 = 1").await, all);
    assert_eq!(db.count("distributed_locks", "released_at IS NULL").await, all);
    assert_eq!(db.errors_logged(), [""; 0]);
}

/// One claim, sent until it is answered, as a host does it.
async fn claim(host: &Host, name: &str, due: DateTime<Utc>) -> (RunId, Claimed) {
    let claim = host.claim(name, due);
    loop {
        match host.store.claim(&claim).await {
            Ok(answer) => return (claim.run, answer),
            Err(StoreError::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

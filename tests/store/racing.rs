//! However many callers race for one lock, one is granted and the others learn who it was.

use cronlatch::lock::PublicOwner;
use cronlatch::store::Acquired;

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    of_2_racing_for_a_free_lock_one_is_granted,
    of_10_racing_for_a_free_lock_one_is_granted,
    of_50_racing_for_a_free_lock_one_is_granted,
    of_2_racing_for_an_expired_lock_one_is_granted,
    of_10_racing_for_an_expired_lock_one_is_granted,
    of_50_racing_for_an_expired_lock_one_is_granted,
    of_10_racing_for_a_released_lock_one_is_granted,
    callers_with_one_owner_are_all_granted_under_one_token,
    busy_hosts_never_meet_an_error,
);

/// How a lock is before the race for it.
#[derive(Clone, Copy)]
enum Before {
    Free,
    Expired,
    Released,
}

async fn of_2_racing_for_a_free_lock_one_is_granted(db: &TestDb) {
    race(db, 2, 20, Before::Free).await;
}

async fn of_10_racing_for_a_free_lock_one_is_granted(db: &TestDb) {
    race(db, 10, 10, Before::Free).await;
}

async fn of_50_racing_for_a_free_lock_one_is_granted(db: &TestDb) {
    race(db, 50, 5, Before::Free).await;
}

async fn of_2_racing_for_an_expired_lock_one_is_granted(db: &TestDb) {
    race(db, 2, 20, Before::Expired).await;
}

async fn of_10_racing_for_an_expired_lock_one_is_granted(db: &TestDb) {
    race(db, 10, 10, Before::Expired).await;
}

async fn of_50_racing_for_an_expired_lock_one_is_granted(db: &TestDb) {
    race(db, 50, 5, Before::Expired).await;
}

async fn of_10_racing_for_a_released_lock_one_is_granted(db: &TestDb) {
    race(db, 10, 10, Before::Released).await;
}

/// Several rounds, each over a lock of its own and from as many stores as racers.
async fn race(db: &TestDb, racers: usize, rounds: usize, before: Before) {
    let stores = warm_stores(db, racers).await;
    for round in 0..rounds {
        let name = format!("report-{round}");
        if !matches!(before, Before::Free) {
            acquire(&stores[0], &name, "before").await;
        }
        match before {
            Before::Free => {}
            Before::Expired => db.let_expire(&name).await,
            Before::Released => {
                stores[0].release(&resource(&name), &owner("before"), None).await.unwrap();
            }
        }
        let attempts = stores.iter().cloned().enumerate().map(|(racer, store)| {
            let attempt = attempt(&name, &format!("racer-{racer}"));
            async move { store.acquire(&attempt).await }
        });
        let answers = at_once(attempts).await;
        let answers: Vec<_> = answers.into_iter().map(|answer| answer.unwrap()).collect();
        let winners: Vec<_> = (0..racers).filter(|racer| answers[*racer].is_granted()).collect();
        assert_eq!(winners.len(), 1, "round {round}: {answers:?}");
        let winner = PublicOwner::of(&format!("racer-{}", winners[0]));
        for answer in answers {
            match answer {
                Acquired::Granted(grant) => assert_eq!(grant.taken_from.is_some(), matches!(before, Before::Expired)),
                Acquired::Held(holder) => assert_eq!(holder.owner, winner),
                other @ Acquired::ClockStepped { .. } => panic!("{other:?}"),
            }
        }
        assert_eq!(lock(&stores[0], &name).await.holder.owner, winner);
    }
    assert_eq!(db.errors_logged(), [""; 0]);
}

async fn callers_with_one_owner_are_all_granted_under_one_token(db: &TestDb) {
    let stores = warm_stores(db, 10).await;
    for round in 0..5 {
        let name = format!("report-{round}");
        let attempts = stores.iter().cloned().map(|store| {
            let attempt = attempt(&name, "a");
            async move { store.acquire(&attempt).await }
        });
        let answers = at_once(attempts).await;
        let mut tokens: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().granted().token).collect();
        tokens.dedup();
        assert_eq!(tokens.len(), 1, "{tokens:?}");
    }
}

/// Whatever they do at once, nobody is refused by the database itself.
async fn busy_hosts_never_meet_an_error(db: &TestDb) {
    let due = db.now().await;
    let work = (0..8).map(|number| {
        let host = Host::new(db, &format!("host-{number}"));
        async move {
            for round in 0..25 {
                let claim = host.claim(&format!("job-{number}-{round}"), due);
                let run = host.run(&claim).await;
                let shared = host.store.acquire(&attempt("shared", &format!("owner-{number}"))).await.unwrap();
                assert!(host.store.start(&run, due).await.unwrap());
                host.store.renew(&[renewal("shared", &format!("owner-{number}"), None)], WITHIN).await.unwrap();
                assert!(host.store.finish(&run, &success(), &[]).await.unwrap().recorded);
                if shared.is_granted() {
                    host.store.release(&resource("shared"), &owner(&format!("owner-{number}")), None).await.unwrap();
                }
            }
        }
    });
    at_once(work).await;
    assert_eq!(db.count("runs", "state = 'succeeded'").await, 200);
    assert_eq!(db.errors_logged(), [""; 0]);
}

//! Expiry to the millisecond, and a database's clock that steps.

use std::time::Duration;

use chrono::TimeDelta;
use cronlatch::store::{Acquire, Acquired, Loss, Released, Renewed};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_millisecond_before_its_expiry_a_lock_is_held,
    at_the_very_instant_of_its_expiry_a_lock_is_expired,
    a_takeover_is_refused_while_the_clock_is_not_as_expected,
    a_clock_within_a_second_of_what_is_expected_is_believed,
    a_lock_that_nobody_left_to_expire_is_granted_whatever_is_expected,
    a_clock_that_steps_back_revives_no_released_lock,
    a_clock_that_steps_back_revives_no_finished_run,
    a_clock_that_steps_back_lengthens_a_lease_and_shortens_none,
    no_clock_of_this_host_decides_anything,
);

const EXPIRY_BUT_ONE: Duration = Duration::from_millis(59_999);

async fn a_millisecond_before_its_expiry_a_lock_is_held(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let grant = acquire(&store, "report", "a").await;
    acquire(&store, "renewed", "a").await;
    acquire(&store, "released", "a").await;
    let now = noon() + EXPIRY_BUT_ONE;
    db.freeze_clock(now).await;
    let held = holder("report", "a", &grant, now);
    assert_eq!(held.remaining, MILLISECOND);
    assert_eq!(store.acquire(&attempt("report", "b")).await.unwrap(), Acquired::Held(held.clone()));
    assert_eq!(lock(&store, "report").await.holder, held);
    let renewed = store.renew(&[renewal("renewed", "a", None)], WITHIN).await.unwrap();
    assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{renewed:?}");
    assert_eq!(store.release(&resource("released"), &owner("a"), None).await.unwrap(), Released::Released);
    assert_eq!(acquire(&store, "report", "a").await.token, grant.token);
}

async fn at_the_very_instant_of_its_expiry_a_lock_is_expired(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let grant = acquire(&store, "report", "a").await;
    db.freeze_clock(noon() + TTL).await;
    assert!(!is_held(&store, "report").await);
    assert_eq!(store.renew(&[renewal("report", "a", None)], WITHIN).await.unwrap(), [Renewed::Lost(Loss::Expired)]);
    assert_eq!(store.release(&resource("report"), &owner("a"), None).await.unwrap(), Released::NotFound);
    let taken = acquire(&store, "report", "b").await;
    assert_eq!(taken.taken_from.map(|from| from.token), Some(grant.token));
}

async fn a_takeover_is_refused_while_the_clock_is_not_as_expected(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    acquire(&store, "report", "a").await;
    let now = noon() + 10 * TTL;
    db.freeze_clock(now).await;
    let before = db.sql("SELECT * FROM distributed_locks").await;
    // What is expected goes on with the host's clock while the database's stands.
    for off in [TimeDelta::milliseconds(2_500), TimeDelta::milliseconds(-1_001), TimeDelta::hours(-1)] {
        for name in ["a", "b"] {
            let careful = Acquire { expected_now: Some(Expected::new(now - off)), ..attempt("report", name) };
            let answer = store.acquire(&careful).await.unwrap();
            let Acquired::ClockStepped { off_ms } = answer else { panic!("{answer:?}") };
            assert!((off.num_milliseconds() - off_ms).abs() < 1_000, "{off_ms}");
        }
    }
    assert_eq!(db.sql("SELECT * FROM distributed_locks").await, before);
    let sure = Acquire { expected_now: Some(Expected::new(now)), ..attempt("report", "b") };
    assert!(store.acquire(&sure).await.unwrap().granted().taken_from.is_some());
}

async fn a_clock_within_a_second_of_what_is_expected_is_believed(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    for off in [-900, -1, 0, 1] {
        let name = format!("report{off}");
        acquire(&store, &name, "a").await;
        db.let_expire(&name).await;
        let careful =
            Acquire { expected_now: Some(Expected::new(noon() + TimeDelta::milliseconds(off))), ..attempt(&name, "b") };
        assert!(store.acquire(&careful).await.unwrap().granted().taken_from.is_some());
    }
}

async fn a_lock_that_nobody_left_to_expire_is_granted_whatever_is_expected(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    acquire(&store, "released", "a").await;
    store.release(&resource("released"), &owner("a"), None).await.unwrap();
    let own = acquire(&store, "own", "b").await;
    for name in ["free", "released", "own"] {
        let stepped = Acquire { expected_now: Some(Expected::new(noon() - TimeDelta::hours(1))), ..attempt(name, "b") };
        let grant = store.acquire(&stepped).await.unwrap().granted();
        assert_eq!(grant.taken_from, None);
        assert_eq!(grant.token == own.token, name == "own");
    }
}

async fn a_clock_that_steps_back_revives_no_released_lock(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let grant = acquire(&store, "report", "a").await;
    store.release(&resource("report"), &owner("a"), None).await.unwrap();
    for back in [TimeDelta::seconds(30), TimeDelta::hours(1), TimeDelta::days(3650)] {
        db.freeze_clock(noon() - back).await;
        assert!(!is_held(&store, "report").await);
        let answers = store.renew(&[renewal("report", "a", grant.token)], WITHIN).await.unwrap();
        assert_eq!(answers, [Renewed::Lost(Loss::Gone)]);
        assert_eq!(store.release(&resource("report"), &owner("a"), None).await.unwrap(), Released::NotFound);
    }
    assert_eq!(acquire(&store, "report", "b").await.taken_from, None);
}

async fn a_clock_that_steps_back_revives_no_finished_run(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let finished = host.run(&host.claim("finished", noon())).await;
    host.store.finish(&finished, &success(), &[]).await.unwrap();
    let given_back = host.run(&host.claim("given back", noon())).await;
    host.store.give_back(&given_back, "drain").await.unwrap();
    host.run(&host.claim("lost", noon())).await;
    db.freeze_clock(noon() + 2 * TTL).await;
    assert_eq!(host.store.recover(None).await.unwrap().lost.len(), 1);
    db.freeze_clock(noon() - TimeDelta::hours(1)).await;
    for name in ["job:finished", "job:given back", "job:lost"] {
        assert!(!is_held(&host.store, name).await, "{name}");
        assert_eq!(acquire(&host.store, name, "b").await.taken_from, None);
    }
}

async fn a_clock_that_steps_back_lengthens_a_lease_and_shortens_none(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    let grant = acquire(&store, "report", "a").await;
    db.freeze_clock(noon() - TimeDelta::hours(1)).await;
    assert!(!store.acquire(&attempt("report", "b")).await.unwrap().is_granted());
    assert_eq!(lock(&store, "report").await.holder.token, grant.token);
    // Held since the future: for no time at all.
    assert_eq!(lock(&store, "report").await.holder.held, Duration::ZERO);
    let renewed = store.renew(&[renewal("report", "a", grant.token)], WITHIN).await.unwrap();
    assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{renewed:?}");
}

async fn no_clock_of_this_host_decides_anything(db: &TestDb) {
    let store = db.store();
    for days in [-4000, 4000] {
        db.set_clock(TimeDelta::days(days)).await;
        let name = format!("report{days}");
        let grant = acquire(&store, &name, "a").await;
        assert!((grant.acquired_at - db.now().await).abs() < TimeDelta::minutes(1));
        let left = grant.valid_until.remaining();
        assert!(left <= TTL && left > TTL / 2, "{left:?}");
        assert!(!store.acquire(&attempt(&name, "b")).await.unwrap().is_granted());
    }
}

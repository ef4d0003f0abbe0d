//! What becomes of runs that nobody ends: lost, run again, skipped or missed, each once.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use cronlatch::store::{Claim, LostRun, OverdueRun, Recovered, WhenHeld};
use cronlatch::trigger::{RunState, TriggerKind};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    a_run_whose_lock_expired_is_lost_and_its_lock_is_free,
    a_run_whose_lock_is_live_is_left_alone,
    a_run_whose_lock_was_released_taken_over_or_deleted_is_lost,
    a_taken_over_lock_is_not_freed_with_the_lost_run,
    a_lost_run_is_run_again_as_often_as_it_may,
    a_run_that_may_not_be_run_again_is_not,
    a_waiting_run_is_closed_at_the_end_of_its_wait,
    a_waiting_run_that_waits_for_the_lock_is_skipped_and_others_are_missed,
    ten_hosts_that_recover_at_once_mark_each_run_once,
    nothing_is_lost_while_the_clock_is_not_as_expected,
    waiting_runs_are_closed_even_while_the_clock_is_not_as_expected,
    a_hundred_runs_are_recovered_at_a_time,
    with_nothing_to_recover_nothing_is_done,
);

async fn a_run_whose_lock_expired_is_lost_and_its_lock_is_free(db: &TestDb) {
    let (dead, alive) = (Host::new(db, "dead"), Host::new(db, "alive"));
    db.freeze_clock(noon()).await;
    let claim = dead.claim("backup", noon());
    let run = dead.run(&claim).await;
    dead.store.start(&run, noon()).await.unwrap();
    db.freeze_clock(noon() + TTL).await;
    let lost = LostRun {
        run: run.run,
        trigger: claim.trigger,
        attempt: 1,
        host: "dead".to_owned(),
        resource: resource("job:backup"),
        token: run.token,
        rerun: None,
    };
    let recovered = alive.store.recover(Some(Expected::new(noon() + TTL))).await.unwrap();
    assert_eq!(recovered, Recovered { lost: vec![lost], overdue: vec![] });
    let after = row(&alive.store, run.run).await;
    assert_eq!((after.state, after.finished_at), (RunState::Lost, Some(noon() + TTL)));
    assert!(after.reason.is_some());
    // Marked lost, its lock is as good as released.
    assert_eq!(acquire(&alive.store, "job:backup", "b").await.taken_from, None);
}

async fn a_run_whose_lock_is_live_is_left_alone(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let claimed = host.run(&host.claim("claimed", noon())).await;
    let running = host.run(&host.claim("running", noon())).await;
    host.store.start(&running, noon()).await.unwrap();
    db.freeze_clock(noon() + Duration::from_millis(59_999)).await;
    assert_eq!(host.store.recover(None).await.unwrap(), Recovered::default());
    for (run, state) in [(claimed, RunState::Claimed), (running, RunState::Running)] {
        assert_eq!(row(&host.store, run.run).await.state, state);
        assert!(is_held(&host.store, run.resource.as_str()).await);
    }
}

async fn a_run_whose_lock_was_released_taken_over_or_deleted_is_lost(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let mut runs = BTreeSet::new();
    for name in ["released", "taken", "deleted"] {
        let run = host.run(&host.claim(name, now)).await;
        runs.insert(run.run);
        match name {
            "released" => drop(host.store.release(&run.resource, &run.owner, None).await.unwrap()),
            "taken" => {
                db.let_expire("job:taken").await;
                acquire(&host.store, "job:taken", "b").await;
            }
            _ => drop(db.sql("DELETE FROM distributed_locks WHERE resource = 'job:deleted'").await),
        }
    }
    let lost = host.store.recover(None).await.unwrap().lost;
    assert_eq!(lost.into_iter().map(|lost| lost.run).collect::<BTreeSet<_>>(), runs);
}

async fn a_taken_over_lock_is_not_freed_with_the_lost_run(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let now = db.now().await;
    let dead = one.run(&one.claim("backup", now - SECOND)).await;
    db.let_expire("job:backup").await;
    let successor = other.run(&other.claim("backup", now)).await;
    let lost = other.store.recover(None).await.unwrap().lost;
    assert_eq!(lost.iter().map(|lost| lost.run).collect::<Vec<_>>(), [dead.run]);
    assert_eq!(lock(&one.store, "job:backup").await.holder.run, Some(successor.run));
}

async fn a_lost_run_is_run_again_as_often_as_it_may(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let claim = Claim { reruns_left: 2, start_deadline: 90 * SECOND, ..host.claim("backup", noon()) };
    let mut run = host.run(&claim).await;
    for attempt in 2..=3 {
        db.let_expire("job:backup").await;
        let lost = host.store.recover(None).await.unwrap().lost;
        assert_eq!(lost.len(), 1);
        let rerun = lost[0].rerun.unwrap();
        let waiting = row(&host.store, rerun).await;
        assert_eq!((waiting.state, waiting.attempt, waiting.kind), (RunState::Waiting, attempt, TriggerKind::Rerun));
        assert_eq!((waiting.job.as_str(), waiting.scheduled_at), ("backup", noon()));
        assert_eq!((waiting.wait_until, waiting.host), (Some(noon() + 90 * SECOND), None));
        assert_eq!(db.count("runs", &format!("attempt = {attempt} AND reruns_left = {}", 3 - attempt)).await, 1);
        let again = host.take(rerun, "job:backup").await;
        assert!(again.token > run.token);
        run = again;
    }
    db.let_expire("job:backup").await;
    let lost = host.store.recover(None).await.unwrap().lost;
    assert_eq!(lost.iter().map(|lost| (lost.attempt, lost.rerun)).collect::<Vec<_>>(), [(3, None)]);
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), []);
}

async fn a_run_that_may_not_be_run_again_is_not(db: &TestDb) {
    let host = Host::new(db, "web-1");
    host.run(&host.claim("backup", db.now().await)).await;
    db.let_expire("job:backup").await;
    assert_eq!(host.store.recover(None).await.unwrap().lost[0].rerun, None);
    assert_eq!(db.count("runs", "1 = 1").await, 1);
}

async fn a_waiting_run_is_closed_at_the_end_of_its_wait(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let claim = host.claim("backup", noon());
    host.store.give_back(&host.run(&claim).await, "drain").await.unwrap();
    db.freeze_clock(noon() + Duration::from_millis(59_999)).await;
    assert_eq!(host.store.recover(None).await.unwrap(), Recovered::default());
    db.freeze_clock(noon() + TTL).await;
    let overdue = OverdueRun {
        run: claim.run,
        trigger: claim.trigger,
        attempt: 1,
        resource: resource("job:backup"),
        state: RunState::Missed,
        reason: "start_deadline".to_owned(),
    };
    let recovered = host.store.recover(None).await.unwrap();
    assert_eq!(recovered, Recovered { lost: vec![], overdue: vec![overdue] });
    let closed = row(&host.store, claim.run).await;
    assert_eq!((closed.state, closed.finished_at), (RunState::Missed, Some(noon() + TTL)));
    assert_eq!(host.store.recover(None).await.unwrap(), Recovered::default());
}

async fn a_waiting_run_that_waits_for_the_lock_is_skipped_and_others_are_missed(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    acquire(&host.store, "job:held", "by hand").await;
    let held = Claim { when_held: WhenHeld::Wait(TTL), ..host.claim("held", now) };
    host.store.claim(&held).await.unwrap();
    let given_back = host.claim("given back", now);
    host.store.give_back(&host.run(&given_back).await, "drain").await.unwrap();
    let crashed = Claim { reruns_left: 1, ..host.claim("crashed", now) };
    host.run(&crashed).await;
    db.let_expire("job:crashed").await;
    let rerun = host.store.recover(None).await.unwrap().lost[0].rerun.unwrap();
    db.sql(format!("UPDATE runs SET wait_until = '{}' WHERE state = 'waiting'", text(now))).await;
    let overdue = host.store.recover(None).await.unwrap().overdue;
    let closed: BTreeSet<_> = overdue.iter().map(|run| (run.run, run.state.as_str(), run.reason.as_str())).collect();
    let expected = BTreeSet::from([
        (held.run, "skipped", "wait_timed_out"),
        (given_back.run, "missed", "start_deadline"),
        (rerun, "missed", "start_deadline"),
    ]);
    assert_eq!(closed, expected);
    for (run, state, reason) in expected {
        let row = row(&host.store, run).await;
        assert_eq!((row.state.as_str(), row.reason.as_deref()), (state, Some(reason)));
    }
}

async fn ten_hosts_that_recover_at_once_mark_each_run_once(db: &TestDb) {
    let stores = warm_stores(db, 10).await;
    let host = Host::with_store(stores[0].clone(), "web-1");
    let now = db.now().await;
    let mut dead = BTreeSet::new();
    for number in 0..20 {
        let claim = Claim { reruns_left: 1, ..host.claim(&format!("dead-{number}"), now) };
        dead.insert(host.run(&claim).await.run);
        let claim = host.claim(&format!("overdue-{number}"), now);
        host.store.give_back(&host.run(&claim).await, "drain").await.unwrap();
    }
    let past = text(now - SECOND);
    db.sql(format!("UPDATE distributed_locks SET expires_at = '{past}'; UPDATE runs SET wait_until = '{past}' WHERE state = 'waiting'"))
        .await;
    let recovered = at_once(stores.into_iter().map(|store| async move { store.recover(None).await.unwrap() })).await;
    let lost: Vec<_> = recovered.iter().flat_map(|recovered| &recovered.lost).collect();
    assert_eq!(lost.len(), 20);
    assert_eq!(lost.iter().map(|lost| lost.run).collect::<BTreeSet<_>>(), dead);
    let reruns: BTreeSet<_> = lost.iter().map(|lost| lost.rerun.unwrap()).collect();
    assert_eq!(reruns.len(), 20);
    assert_eq!(db.count("runs", "state = 'waiting' AND attempt = 2").await, 20);
    assert_eq!(recovered.iter().map(|recovered| recovered.overdue.len()).sum::<usize>(), 20);
    assert_eq!(db.errors_logged(), [""; 0]);
}

async fn nothing_is_lost_while_the_clock_is_not_as_expected(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let run = host.run(&host.claim("backup", noon())).await;
    let now = noon() + 10 * TTL;
    db.freeze_clock(now).await;
    for off in [TimeDelta::milliseconds(1_001), TimeDelta::hours(-1)] {
        assert_eq!(host.store.recover(Some(Expected::new(now + off))).await.unwrap(), Recovered::default());
    }
    assert_eq!(row(&host.store, run.run).await.state, RunState::Claimed);
    assert_eq!(host.store.recover(Some(Expected::new(now + 900 * MILLISECOND))).await.unwrap().lost.len(), 1);
}

async fn waiting_runs_are_closed_even_while_the_clock_is_not_as_expected(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let run = host.run(&host.claim("backup", noon())).await;
    host.store.give_back(&run, "drain").await.unwrap();
    db.freeze_clock(noon() + TTL).await;
    let recovered = host.store.recover(Some(Expected::new(noon()))).await.unwrap();
    assert_eq!((recovered.lost.len(), recovered.overdue.len()), (0, 1));
}

async fn a_hundred_runs_are_recovered_at_a_time(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    for number in 0..130 {
        host.run(&host.claim(&format!("dead-{number}"), now)).await;
    }
    db.sql(format!("UPDATE distributed_locks SET expires_at = '{}'", text(now - SECOND))).await;
    for expected in [100, 30, 0] {
        assert_eq!(host.store.recover(None).await.unwrap().lost.len(), expected);
    }
}

async fn with_nothing_to_recover_nothing_is_done(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    assert_eq!(host.store.recover(None).await.unwrap(), Recovered::default());
    let over = host.run(&host.claim("over", now)).await;
    host.store.finish(&over, &success(), &[]).await.unwrap();
    acquire(&host.store, "by hand", "b").await;
    db.let_expire("by hand").await;
    assert_eq!(host.store.recover(Some(Expected::new(now))).await.unwrap(), Recovered::default());
    assert_eq!(db.count("distributed_locks", "resource = 'by hand' AND released_at IS NULL").await, 1);
}

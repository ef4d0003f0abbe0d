//! Requests that a run stop: seen by its host alone, answered once, and final.

use cronlatch::store::{Asked, Cancel, CancelAsked, Claim, OpenCancel, Retried, RunKey, Taken, WhenHeld};
use cronlatch::trigger::{RequestOutcome, RunId, RunState};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_run_under_way_has_a_request_that_its_host_sees,
    a_run_that_waits_is_cancelled_at_once,
    a_run_that_is_over_or_unknown_is_not_asked,
    a_run_that_is_asked_twice_has_one_request,
    a_request_is_answered_once_and_not_seen_again,
    a_request_of_a_run_that_is_over_is_not_seen,
    each_daemon_sees_what_is_asked_of_its_own_runs,
    a_run_that_is_to_stop_is_not_tried_again,
    a_run_that_was_to_stop_and_is_lost_is_not_run_again,
    a_run_that_is_to_stop_and_is_given_back_is_cancelled,
    a_hundred_requests_are_seen_at_a_time,
    of_a_take_and_a_cancel_at_once_the_run_is_cancelled_or_asked,
);

/// A run of `backup`, under way.
async fn running(host: &Host, db: &TestDb) -> RunKey {
    let now = db.now().await;
    host.run(&Claim { reruns_left: 2, ..host.claim("backup", now) }).await
}

async fn ask(host: &Host, run: RunId) -> CancelAsked {
    host.store.request_cancel(run, &cancel()).await.unwrap()
}

async fn seen_by(host: &Host) -> Vec<OpenCancel> {
    host.store.open_cancels(host.instance).await.unwrap()
}

async fn a_run_under_way_has_a_request_that_its_host_sees(db: &TestDb) {
    let (host, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let run = running(&host, db).await;
    assert_eq!(seen_by(&host).await, []);
    assert_eq!(ask(&other, run.run).await, CancelAsked::Asked);
    let seen = seen_by(&host).await;
    assert_eq!((seen.len(), seen[0].run, &seen[0].asked), (1, run.run, &Asked::Cancelled(cancel())));
    assert_eq!(cancel().in_words(), "cancelled by anna@laptop: it hangs");
    // It goes on until its host stops it.
    host.store.start(&run, noon()).await.unwrap();
    assert_eq!(seen_by(&host).await, seen);
    assert_eq!(row(&host.store, run.run).await.state, RunState::Running);
    assert!(is_held(&host.store, "job:backup").await);
}

async fn a_run_that_waits_is_cancelled_at_once(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let run = running(&host, db).await;
    let waits = Claim { when_held: WhenHeld::Wait(TTL), ..host.claim("backup", noon() - SECOND) };
    host.store.claim(&waits).await.unwrap();
    db.freeze_clock(noon() + SECOND).await;
    let by_hand = Cancel { by: "anna".to_owned(), reason: None };
    assert_eq!(host.store.request_cancel(waits.run, &by_hand).await.unwrap(), CancelAsked::Cancelled);
    let cancelled = row(&host.store, waits.run).await;
    assert_eq!((cancelled.state, cancelled.finished_at), (RunState::Cancelled, Some(noon() + SECOND)));
    assert_eq!(cancelled.reason.as_deref(), Some("cancelled by anna"));
    assert_eq!(ask(&host, waits.run).await, CancelAsked::Over(RunState::Cancelled));
    host.store.finish(&run, &success(), &[]).await.unwrap();
    assert_eq!(host.store.take(waits.run, &host.claimant("job:backup")).await.unwrap(), Taken::Gone);
    assert_eq!(db.count("requests", "1 = 1").await, 0);
}

async fn a_run_that_is_over_or_unknown_is_not_asked(db: &TestDb) {
    let host = Host::new(db, "web-1");
    assert_eq!(ask(&host, RunId::generate()).await, CancelAsked::Unknown);
    let now = db.now().await;
    for state in RunState::ALL.iter().copied().filter(|state| state.is_final()) {
        let run = host.run(&host.claim(state.as_str(), now)).await;
        host.store.finish(&run, &ending(state), &[]).await.unwrap();
        assert_eq!(ask(&host, run.run).await, CancelAsked::Over(state));
        assert_eq!(row(&host.store, run.run).await.state, state);
    }
    assert_eq!(db.count("requests", "1 = 1").await, 0);
}

async fn a_run_that_is_asked_twice_has_one_request(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = running(&host, db).await;
    let stores = warm_stores(db, 4).await;
    let asking = stores.into_iter().map(|store| async move { store.request_cancel(run.run, &cancel()).await.unwrap() });
    assert_eq!(at_once(asking).await, [CancelAsked::Asked; 4]);
    let seen = seen_by(&host).await;
    assert_eq!(seen.len(), 1);
    let again = Cancel { by: "bert".to_owned(), reason: None };
    assert_eq!(host.store.request_cancel(run.run, &again).await.unwrap(), CancelAsked::Asked);
    assert_eq!(seen_by(&host).await, seen, "the first one stands");
}

async fn a_request_is_answered_once_and_not_seen_again(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = running(&host, db).await;
    ask(&host, run.run).await;
    let request = seen_by(&host).await[0].request;
    assert!(host.store.answer_request(request, host.instance, RequestOutcome::Told).await.unwrap());
    assert!(!host.store.answer_request(request, host.instance, RequestOutcome::Over).await.unwrap());
    assert_eq!(seen_by(&host).await, []);
    let told = format!("outcome = 'told' AND taken_by = '{}' AND done_at IS NOT NULL", host.instance);
    assert_eq!(db.count("requests", &told).await, 1);
    // Asked once more, it is told already.
    assert_eq!(ask(&host, run.run).await, CancelAsked::Asked);
    assert_eq!(seen_by(&host).await, []);
}

async fn a_request_of_a_run_that_is_over_is_not_seen(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = running(&host, db).await;
    ask(&host, run.run).await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
    assert_eq!(seen_by(&host).await, []);
}

async fn each_daemon_sees_what_is_asked_of_its_own_runs(db: &TestDb) {
    // Two daemons of one name.
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-1"));
    let now = db.now().await;
    let run = one.run(&one.claim("one", now)).await;
    let theirs = other.run(&other.claim("other", now)).await;
    for asked in [&run, &theirs] {
        ask(&one, asked.run).await;
    }
    let runs = |seen: Vec<OpenCancel>| seen.iter().map(|seen| seen.run).collect::<Vec<_>>();
    assert_eq!(runs(seen_by(&one).await), [run.run]);
    assert_eq!(runs(seen_by(&other).await), [theirs.run]);
}

async fn a_run_that_is_to_stop_is_not_tried_again(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = running(&host, db).await;
    ask(&host, run.run).await;
    let answer = host.store.retry(&run, &failure(), RunId::generate()).await.unwrap();
    assert_eq!(answer, Retried::Cancelled);
    assert_eq!(row(&host.store, run.run).await.state, RunState::Claimed);
    assert_eq!(db.count("runs", "1 = 1").await, 1);
    assert!(host.store.finish(&run, &failure(), &[]).await.unwrap().recorded);
}

async fn a_run_that_was_to_stop_and_is_lost_is_not_run_again(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = running(&host, db).await;
    ask(&host, run.run).await;
    db.let_expire("job:backup").await;
    let lost = host.store.recover(None).await.unwrap().lost;
    assert_eq!((lost.len(), lost[0].run, lost[0].rerun), (1, run.run, None));
    let other = host.run(&Claim { reruns_left: 2, ..host.claim("other", db.now().await) }).await;
    ask(&host, other.run).await;
    host.store.finish(&other, &ending(RunState::Lost), &[]).await.unwrap();
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), []);
}

async fn a_run_that_is_to_stop_and_is_given_back_is_cancelled(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = running(&host, db).await;
    ask(&host, run.run).await;
    assert!(host.store.give_back(&run, "draining").await.unwrap());
    let over = row(&host.store, run.run).await;
    assert_eq!((over.state, over.reason.as_deref()), (RunState::Cancelled, Some("cancelled")));
    assert!(over.finished_at.is_some());
    assert!(!is_held(&host.store, "job:backup").await);
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), []);
}

async fn a_hundred_requests_are_seen_at_a_time(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = running(&host, db).await;
    ask(&host, run.run).await;
    for number in 0..104 {
        let id = RunId::generate();
        db.sql(format!(
            "INSERT INTO runs (id, job, scheduled_at, trigger, state, created_at, instance, resource, \
             start_deadline_ms, start_by) SELECT '{id}', 'job-{number}', scheduled_at, 'schedule', 'running', \
             created_at, instance, resource, 1, start_by FROM runs WHERE id = '{0}'; \
             INSERT INTO requests (id, kind, run, made_at) SELECT '{id}', 'cancel', '{id}', made_at FROM requests \
             WHERE run = '{0}'",
            run.run
        ))
        .await;
    }
    assert_eq!(seen_by(&host).await.len(), 100);
}

async fn of_a_take_and_a_cancel_at_once_the_run_is_cancelled_or_asked(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let stores = warm_stores(db, 2).await;
    for _ in 0..10 {
        let run = running(&host, db).await;
        host.store.give_back(&run, "draining").await.unwrap();
        let (taker, asker, claimant) = (stores[0].clone(), stores[1].clone(), host.claimant("job:backup"));
        let (take, ask) =
            tokio::join!(taker.take(run.run, &claimant), async { asker.request_cancel(run.run, &cancel()).await });
        match (take.unwrap(), ask.unwrap()) {
            (Taken::Granted(grant), CancelAsked::Asked) => {
                let key = RunKey { owner: claimant.owner, token: grant.token, ..run };
                assert_eq!(seen_by(&host).await.len(), 1);
                host.store.finish(&key, &ending(RunState::Cancelled), &[]).await.unwrap();
            }
            (Taken::Gone, CancelAsked::Cancelled) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(row(&host.store, run.run).await.state, RunState::Cancelled);
    }
}

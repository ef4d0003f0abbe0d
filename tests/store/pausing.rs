//! Jobs that somebody pauses: nothing of them is claimed, nothing that waited runs, and catch-up
//! hears of it.

use chrono::{DateTime, TimeDelta, Utc};
use cronlatch::store::{Claim, Claimed, Pause, Paused, Pausing, ProgressQuery, Resumed, StoreError, Taken, WhenHeld};
use cronlatch::trigger::{RunState, Target};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    a_paused_job_is_not_claimed_until_it_is_resumed,
    a_pause_says_by_whom_and_why,
    a_pause_closes_what_waits_and_leaves_what_runs,
    a_pause_with_an_end_ends_by_itself,
    a_pause_that_would_be_over_changes_nothing,
    a_job_that_nobody_registered_is_unknown,
    a_job_that_is_not_paused_is_not_resumed,
    a_pause_is_told_until_everything_is_accounted_for_past_it,
    a_pause_is_told_to_each_target_by_its_own_watermark,
    a_pause_that_is_changed_keeps_its_beginning,
    a_pause_soon_after_another_begins_with_that,
    what_came_to_wait_in_a_pause_is_closed_with_it,
    a_resumed_job_stays_resumed_when_the_clock_steps_back,
    nothing_is_left_waiting_when_a_pause_and_claims_come_at_once,
    a_waiting_run_is_taken_or_closed_when_a_pause_comes_at_once,
);

fn until(at: DateTime<Utc>) -> Pausing {
    Pausing { until: Some(at), ..pausing() }
}

async fn registered(db: &TestDb) -> Host {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    register_long_ago(db, &host, "backup", "digest").await;
    host
}

async fn pause(host: &Host, how: &Pausing) -> Paused {
    host.store.pause(&job("backup"), how).await.unwrap()
}

async fn resume(host: &Host) -> Resumed {
    host.store.resume(&job("backup")).await.unwrap()
}

async fn told(host: &Host, target: Target) -> Option<Pause> {
    let asked = [ProgressQuery { job: job("backup"), target }];
    host.store.progress(&asked).await.unwrap()[0].pause
}

async fn a_paused_job_is_not_claimed_until_it_is_resumed(db: &TestDb) {
    let host = registered(db).await;
    assert_eq!(pause(&host, &pausing()).await, Paused::Paused { from: noon(), closed: 0 });
    db.freeze_clock(noon() + TTL).await;
    let claim = host.claim("backup", noon() + TTL);
    assert_eq!(host.store.claim(&claim).await.unwrap(), Claimed::Paused);
    host.run(&host.claim("restore", noon())).await;
    assert_eq!(resume(&host).await, Resumed::Resumed { from: noon(), closed: 0 });
    host.run(&claim).await;
}

async fn a_pause_says_by_whom_and_why(db: &TestDb) {
    let host = registered(db).await;
    let how = Pausing { by: "anna".to_owned(), reason: "it's \"moving\"".to_owned(), ..until(noon() + TTL) };
    pause(&host, &how).await;
    let said = db.sql("SELECT paused_by, paused_reason FROM jobs WHERE paused").await;
    assert_eq!(said, ["anna|it's \"moving\""]);
    let instants = format!("paused_at = '{}' AND paused_until = '{}'", text(noon()), text(noon() + TTL));
    assert_eq!(db.count("jobs", &instants).await, 1);
}

async fn a_pause_closes_what_waits_and_leaves_what_runs(db: &TestDb) {
    let host = registered(db).await;
    let given_back = host.claim("backup", noon());
    host.store.give_back(&host.run(&given_back).await, "drain").await.unwrap();
    let running = host.run(&host.claim("backup", noon() - SECOND)).await;
    let waits = Claim { when_held: WhenHeld::Wait(TTL), ..host.claim("backup", noon() - 2 * SECOND) };
    host.store.claim(&waits).await.unwrap();
    let mut on_host = host.claim("backup", noon());
    on_host.trigger.target = Target::from_column("web-1");
    on_host.claimant.resource = resource("job:backup@web-1");
    host.store.give_back(&host.run(&on_host).await, "drain").await.unwrap();
    let other = host.claim("restore", noon());
    host.store.give_back(&host.run(&other).await, "drain").await.unwrap();

    db.freeze_clock(noon() + SECOND).await;
    assert_eq!(pause(&host, &pausing()).await, Paused::Paused { from: noon() + SECOND, closed: 3 });
    for run in [given_back.run, waits.run, on_host.run] {
        let closed = row(&host.store, run).await;
        assert_eq!((closed.state, closed.reason.as_deref()), (RunState::Missed, Some("paused")));
        assert_eq!(closed.finished_at, Some(noon() + SECOND));
    }
    assert_eq!(row(&host.store, other.run).await.state, RunState::Waiting);
    assert!(host.store.finish(&running, &success(), &[]).await.unwrap().recorded);
}

async fn a_pause_with_an_end_ends_by_itself(db: &TestDb) {
    let host = registered(db).await;
    pause(&host, &until(noon() + TTL)).await;
    let claim = host.claim("backup", noon());
    db.freeze_clock(noon() + TTL - MILLISECOND).await;
    assert_eq!(host.store.claim(&claim).await.unwrap(), Claimed::Paused);
    assert_eq!(told(&host, Target::fleet()).await, Some(Pause { from: noon(), until: Some(noon() + TTL) }));
    db.freeze_clock(noon() + TTL).await;
    assert_eq!(resume(&host).await, Resumed::NotPaused);
    assert_eq!(told(&host, Target::fleet()).await, Some(Pause { from: noon(), until: Some(noon() + TTL) }));
    host.run(&claim).await;
}

async fn a_pause_that_would_be_over_changes_nothing(db: &TestDb) {
    let host = registered(db).await;
    let waiting = host.claim("backup", noon());
    host.store.give_back(&host.run(&waiting).await, "drain").await.unwrap();
    for at in [noon(), noon() - TTL] {
        assert_eq!(pause(&host, &until(at)).await, Paused::Over);
    }
    assert_eq!(row(&host.store, waiting.run).await.state, RunState::Waiting);
    assert_eq!(told(&host, Target::fleet()).await, None);
    assert_eq!(db.count("jobs", "paused_at IS NULL AND paused_by IS NULL").await, 1);
}

async fn a_job_that_nobody_registered_is_unknown(db: &TestDb) {
    let host = Host::new(db, "web-1");
    assert_eq!(pause(&host, &pausing()).await, Paused::Unknown);
    assert_eq!(resume(&host).await, Resumed::Unknown);
    host.run(&host.claim("backup", db.now().await)).await;
}

async fn a_job_that_is_not_paused_is_not_resumed(db: &TestDb) {
    let host = registered(db).await;
    let waiting = host.claim("backup", noon());
    host.store.give_back(&host.run(&waiting).await, "drain").await.unwrap();
    assert_eq!(resume(&host).await, Resumed::NotPaused);
    assert_eq!(row(&host.store, waiting.run).await.state, RunState::Waiting);
    assert_eq!(told(&host, Target::fleet()).await, None);
}

async fn watermark(host: &Host) -> DateTime<Utc> {
    let asked = [ProgressQuery { job: job("backup"), target: Target::fleet() }];
    host.store.progress(&asked).await.unwrap()[0].caught_up_through
}

async fn account_through(host: &Host, through: DateTime<Utc>) {
    assert!(host.store.catch_up(&accounted(watermark(host).await, through)).await.unwrap());
}

async fn a_pause_is_told_until_everything_is_accounted_for_past_it(db: &TestDb) {
    let host = registered(db).await;
    assert_eq!(told(&host, Target::fleet()).await, None);
    pause(&host, &pausing()).await;
    assert_eq!(told(&host, Target::fleet()).await, Some(Pause { from: noon(), until: None }));
    account_through(&host, noon() + SECOND).await;
    assert_eq!(told(&host, Target::fleet()).await, Some(Pause { from: noon(), until: None }));
    let end = noon() + TTL;
    db.freeze_clock(end).await;
    resume(&host).await;
    db.freeze_clock(end + TTL).await;
    for through in [end - MILLISECOND, end] {
        assert_eq!(told(&host, Target::fleet()).await, Some(Pause { from: noon(), until: Some(end) }));
        account_through(&host, through).await;
    }
    assert_eq!(told(&host, Target::fleet()).await, None);
}

async fn a_pause_is_told_to_each_target_by_its_own_watermark(db: &TestDb) {
    let host = registered(db).await;
    db.sql(format!(
        "INSERT INTO job_progress (job, target, digest, caught_up_through, seen_at) VALUES ('backup', 'web-1', 'digest', '{0}', '{0}'), ('backup', 'web-2', 'digest', '{1}', '{1}')",
        text(noon()),
        text(noon() + TTL)
    ))
    .await;
    pause(&host, &pausing()).await;
    db.freeze_clock(noon() + TTL).await;
    resume(&host).await;
    assert!(told(&host, Target::from_column("web-1")).await.is_some());
    assert_eq!(told(&host, Target::from_column("web-2")).await, None);
}

async fn a_pause_that_is_changed_keeps_its_beginning(db: &TestDb) {
    let host = registered(db).await;
    pause(&host, &pausing()).await;
    db.freeze_clock(noon() + TTL).await;
    account_through(&host, noon() + TTL).await;
    assert_eq!(pause(&host, &until(noon() + 2 * TTL)).await, Paused::Paused { from: noon(), closed: 0 });
    db.freeze_clock(noon() + 2 * TTL).await;
    host.run(&host.claim("backup", noon() + 2 * TTL)).await;
}

async fn a_pause_soon_after_another_begins_with_that(db: &TestDb) {
    let host = registered(db).await;
    pause(&host, &pausing()).await;
    db.freeze_clock(noon() + SECOND).await;
    resume(&host).await;
    db.freeze_clock(noon() + 2 * SECOND).await;
    // What the first one took is not accounted for yet.
    assert_eq!(pause(&host, &pausing()).await, Paused::Paused { from: noon(), closed: 0 });
    db.freeze_clock(noon() + 3 * SECOND).await;
    assert_eq!(resume(&host).await, Resumed::Resumed { from: noon(), closed: 0 });
    account_through(&host, noon() + 3 * SECOND).await;
    let now = noon() + 4 * SECOND;
    db.freeze_clock(now).await;
    assert_eq!(pause(&host, &pausing()).await, Paused::Paused { from: now, closed: 0 });
}

async fn what_came_to_wait_in_a_pause_is_closed_with_it(db: &TestDb) {
    let host = registered(db).await;
    let given_back = host.run(&host.claim("backup", noon() - SECOND)).await;
    pause(&host, &pausing()).await;
    host.store.give_back(&given_back, "drain").await.unwrap();
    assert_eq!(host.store.take(given_back.run, &host.claimant("job:backup")).await.unwrap(), Taken::NotNow);
    assert_eq!(resume(&host).await, Resumed::Resumed { from: noon(), closed: 1 });
    assert_eq!(host.store.take(given_back.run, &host.claimant("job:backup")).await.unwrap(), Taken::Gone);
    let closed = row(&host.store, given_back.run).await;
    assert_eq!((closed.state, closed.reason.as_deref()), (RunState::Missed, Some("paused")));
}

async fn a_resumed_job_stays_resumed_when_the_clock_steps_back(db: &TestDb) {
    let host = registered(db).await;
    pause(&host, &pausing()).await;
    db.freeze_clock(noon() + TTL).await;
    resume(&host).await;
    db.freeze_clock(noon() + SECOND).await;
    host.run(&host.claim("backup", noon())).await;
}

async fn nothing_is_left_waiting_when_a_pause_and_claims_come_at_once(db: &TestDb) {
    db.look_for_deadlocks().await;
    let hosts: Vec<_> = warm_stores(db, 4).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    let now = db.now().await;
    for round in 0..15 {
        let name = format!("backup-{round}");
        register_long_ago(db, &hosts[0], &name, "digest").await;
        acquire(&hosts[0].store, &format!("job:{name}"), "by hand").await;
        let claims = (0_u32..).zip(&hosts).map(|(number, host)| {
            let claim = Claim { when_held: WhenHeld::Wait(TTL), ..host.claim(&name, now - number * SECOND) };
            let (host, name) = (host.clone(), name.clone());
            async move {
                loop {
                    let answer = match number {
                        0 => host.store.pause(&job(&name), &pausing()).await.map(|_| None),
                        _ => host.store.claim(&claim).await.map(Some),
                    };
                    match answer {
                        Ok(answer) => return answer,
                        Err(StoreError::Busy { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
        let answers: Vec<_> = at_once(claims).await.into_iter().flatten().collect();
        let is_answer = |answer: &Claimed| matches!(answer, Claimed::Held { .. } | Claimed::Paused);
        assert!(answers.iter().all(is_answer), "{answers:?}");
        assert_eq!(db.count("runs", "state = 'waiting'").await, 0, "round {round}: {answers:?}");
    }
    assert_eq!(db.deadlocks_logged(), [""; 0]);
}

async fn a_waiting_run_is_taken_or_closed_when_a_pause_comes_at_once(db: &TestDb) {
    db.look_for_deadlocks().await;
    let hosts: Vec<_> = warm_stores(db, 2).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    let now = db.now().await - TimeDelta::seconds(1);
    for round in 0..15 {
        let name = format!("backup-{round}");
        register_long_ago(db, &hosts[0], &name, "digest").await;
        let waiting = hosts[0].run(&hosts[0].claim(&name, now)).await;
        hosts[0].store.give_back(&waiting, "drain").await.unwrap();
        let both = [true, false].into_iter().zip(&hosts).map(|(pauses, host)| {
            let (host, name, run) = (host.clone(), name.clone(), waiting.run);
            async move {
                if pauses {
                    let paused = host.store.pause(&job(&name), &pausing()).await.unwrap();
                    return matches!(paused, Paused::Paused { closed: 1, .. });
                }
                host.store.take(run, &host.claimant(&format!("job:{name}"))).await.unwrap().is_granted()
            }
        });
        let answers = at_once(both).await;
        assert_eq!(answers.iter().filter(|done| **done).count(), 1, "round {round}: {answers:?}");
    }
    assert_eq!(db.deadlocks_logged(), [""; 0]);
}

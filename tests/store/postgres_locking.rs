//! Rows and jobs that somebody has locked, on PostgreSQL: every wait has a bound, nobody waits for
//! what is another's, and no two wait for one another.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use cronlatch::lock::PublicOwner;
use cronlatch::store::{
    CatchUpPlan, Claim, Claimant, Claimed, Loss, ProgressQuery, Renewed, Retention, RunKey, StoreError, Taken, WhenHeld,
};
use cronlatch::trigger::{RunState, Target};

use super::catching_up::plan;
use super::database::{Blocker, TestDb, text};
use super::fixtures::*;

on_postgres!(
    a_lock_whose_row_is_locked_is_busy_within_a_second_and_not_granted,
    a_run_whose_row_is_locked_is_busy_within_a_second_and_not_changed,
    a_trigger_that_somebody_is_claiming_is_busy_within_a_second,
    a_job_that_somebody_is_claiming_under_another_lock_is_busy_within_a_second,
    a_success_whose_follower_somebody_is_claiming_is_busy_within_a_second,
    hosts_that_do_everything_at_once_never_deadlock,
    a_watermark_moves_without_touching_an_index,
    a_renewal_of_a_locked_row_is_unknown_and_delays_no_other,
    a_locked_row_does_not_keep_others_from_being_recovered,
);

/// What a wait for a row may take: `lock_timeout`, and time enough for a loaded machine.
const BOUND: Duration = Duration::from_secs(2);

/// Asserts that a call gave up for a locked row, in time.
#[track_caller]
fn assert_busy<T: std::fmt::Debug>(what: &str, began: Instant, answer: Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Busy { .. })), "{what}: {answer:?}");
    assert!(began.elapsed() < BOUND, "{what}: after {:?}", began.elapsed());
}

async fn a_lock_whose_row_is_locked_is_busy_within_a_second_and_not_granted(db: &TestDb) {
    let store = db.store();
    for name in ["expired", "own"] {
        acquire(&store, name, "a").await;
    }
    db.let_expire("expired").await;
    let before = db.sql("SELECT * FROM distributed_locks ORDER BY id").await;
    let blocker = db.block("distributed_locks", "true").await;
    let began = Instant::now();
    assert_busy("a takeover", began, store.acquire(&attempt("expired", "b")).await);
    let began = Instant::now();
    assert_busy("one's own again", began, store.acquire(&attempt("own", "a")).await);
    let began = Instant::now();
    assert_busy("a release", began, store.release(&resource("own"), &owner("a"), None).await);
    // A lock that another holds needs no row lock to be refused.
    assert!(!store.acquire(&attempt("own", "b")).await.unwrap().is_granted());
    assert!(is_held(&store, "own").await);
    blocker.end().await;
    assert_eq!(db.sql("SELECT * FROM distributed_locks ORDER BY id").await, before);
    assert!(acquire(&store, "expired", "b").await.taken_from.is_some());
}

async fn a_run_whose_row_is_locked_is_busy_within_a_second_and_not_changed(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&host.claim("backup", now)).await;
    let waiting = host.run(&host.claim("waiting", now)).await;
    host.store.give_back(&waiting, "drain").await.unwrap();
    let before = db.sql("SELECT * FROM runs ORDER BY id").await;
    let blocker = db.block("runs", "true").await;
    let began = Instant::now();
    assert_busy("a start", began, host.store.start(&run, now).await);
    let began = Instant::now();
    assert_busy("an end", began, host.store.finish(&run, &success(), &[]).await);
    let began = Instant::now();
    assert_busy("giving back", began, host.store.give_back(&run, "drain").await);
    let answer = host.store.take(waiting.run, &host.claimant("job:waiting")).await.unwrap();
    assert!(matches!(answer, Taken::Gone | Taken::NotNow), "{answer:?}");
    blocker.end().await;
    assert_eq!(db.sql("SELECT * FROM runs ORDER BY id").await, before);
    assert!(is_held(&host.store, "job:backup").await);
    assert!(!is_held(&host.store, "job:waiting").await);
    assert!(host.store.finish(&run, &success(), &[]).await.unwrap().recorded);
}

async fn a_trigger_that_somebody_is_claiming_is_busy_within_a_second(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let claim = host.claim("backup", now);
    // A claim that never ends: its host stopped between two packets.
    let insert = format!(
        "BEGIN; INSERT INTO runs (id, job, scheduled_at, trigger, state, created_at, resource, start_deadline_ms, \
         start_by) VALUES (gen_random_uuid(), 'backup', '{}', 'schedule', 'claimed', now(), 'job:backup', 0, now())",
        text(now)
    );
    let blocker = Blocker::begin(db.as_postgres().connect().await, &insert).await;
    let began = Instant::now();
    assert_busy("a claim", began, host.store.claim(&claim).await);
    blocker.end().await;
    assert!(!is_held(&host.store, "job:backup").await);
    host.run(&claim).await;
}

/// Another host's claim of a trigger of `backup`, not committed yet.
async fn claiming(db: &TestDb, at: DateTime<Utc>) -> Blocker {
    let claiming = format!(
        "BEGIN; SELECT cronlatch_claim_v2(gen_random_uuid(), 'backup', '{}', '', 'schedule', 1, 'schedule', 'web-2', \
         gen_random_uuid(), 'owner', 'owner', 'storage', 60000, NULL, NULL, NULL, 60000, 0)",
        text(at)
    );
    Blocker::begin(db.as_postgres().connect().await, &claiming).await
}

async fn a_job_that_somebody_is_claiming_under_another_lock_is_busy_within_a_second(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let blocker = claiming(db, now - SECOND).await;
    let began = Instant::now();
    assert_busy("a claim", began, host.store.claim(&host.claim("backup", now)).await);
    assert!(host.store.claim(&host.claim("other", now)).await.unwrap().is_granted(), "other jobs go on");
    blocker.end().await;
    host.run(&host.claim("backup", now)).await;
}

async fn a_success_whose_follower_somebody_is_claiming_is_busy_within_a_second(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&host.claim("extract", now)).await;
    let follower = follower("backup", &["extract"]);
    let blocker = claiming(db, now).await;
    let began = Instant::now();
    assert_busy("an end", began, host.store.finish(&run, &success(), std::slice::from_ref(&follower)).await);
    // All of it, or nothing.
    assert_eq!(row(&host.store, run.run).await.state, RunState::Claimed);
    assert!(is_held(&host.store, "job:extract").await);
    blocker.end().await;
    assert_eq!(host.store.finish(&run, &success(), &[follower]).await.unwrap().followed.len(), 1);
}

/// Jobs that follow one another, are claimed, taken, given back, paused, caught up, registered and
/// pruned, by all hosts at once.
async fn hosts_that_do_everything_at_once_never_deadlock(db: &TestDb) {
    db.look_for_deadlocks().await;
    let hosts: Vec<_> = warm_stores(db, 8).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    let names = ["extract", "clean", "load", "report"];
    let began = db.now().await;
    let everything = hosts.into_iter().enumerate().map(|(number, host)| async move {
        for round in 0..40 {
            let name = names[(number + round) % names.len()];
            let seconds = i64::try_from((round * 7 + number) % 5).unwrap();
            let error = one_of_everything(&host, name, round + number, began - TimeDelta::seconds(seconds)).await.err();
            assert!(matches!(error, None | Some(StoreError::Busy { .. })), "{error:?}");
        }
    });
    at_once(everything).await;
    assert_eq!(db.deadlocks_logged(), [""; 0]);
}

async fn one_of_everything(host: &Host, name: &str, which: usize, at: DateTime<Utc>) -> Result<(), StoreError> {
    let digest = format!("digest-{}", which % 3);
    let jobs = ["report", "load", "extract", "clean"].map(|name| seen(name, &digest));
    host.store.register(host.instance, &jobs).await?;
    let claim = Claim { when_held: WhenHeld::Wait(TTL), reruns_left: 1, ..host.claim(name, at) };
    if let Claimed::Granted(grant) = host.store.claim(&claim).await? {
        let run = key(&claim, &grant);
        match which % 4 {
            0 => drop(host.store.give_back(&run, "drain").await?),
            1 => drop(host.store.finish(&run, &ending(RunState::Lost), &[]).await?),
            _ => {
                let followers = ["report", "load"].map(|name| follower(name, &["extract"]));
                host.store.finish(&run, &success(), &followers).await?;
            }
        }
    }
    match which % 5 {
        0 => drop(host.store.pause(&job(name), &pausing()).await?),
        1 | 2 => drop(host.store.resume(&job(name)).await?),
        3 => drop(host.store.prune(&Retention { keep: TTL, keep_runs: 2, horizon: SECOND, after: None }).await?),
        _ => drop(host.store.recover(None).await?),
    }
    let asked = ProgressQuery { job: job(name), target: Target::fleet() };
    if let Some(progress) = host.store.progress(&[asked]).await?.pop() {
        let from = progress.caught_up_through;
        let plan = CatchUpPlan { job: job(name), ..plan(from) };
        host.store.catch_up(&CatchUpPlan { through: from, ..plan }).await?;
    }
    for waiting in host.store.waiting(&host.name).await?.into_iter().take(3) {
        let claimant = host.claimant(&format!("job:{}", waiting.trigger.job));
        if let Taken::Granted(grant) = host.store.take(waiting.run, &claimant).await? {
            let Claimant { owner, resource, .. } = claimant;
            let run = RunKey { run: waiting.run, owner, resource, token: grant.token };
            host.store.finish(&run, &success(), &[follower("report", &["load"])]).await?;
        }
    }
    Ok(())
}

async fn a_watermark_moves_without_touching_an_index(db: &TestDb) {
    let host = Host::new(db, "web-1");
    host.register("backup", "digest").await;
    let mut from = db.now().await - TimeDelta::days(1);
    db.sql(format!("UPDATE job_progress SET caught_up_through = '{}'", text(from))).await;
    for _ in 0..20 {
        let through = from + SECOND;
        let plan = CatchUpPlan { through, ranges: vec![], late: vec![], ..plan(from) };
        assert!(host.store.catch_up(&plan).await.unwrap());
        from = through;
    }
    drop(host);
    let counted = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'job_progress'";
    crate::support::wait::eventually_async("all updates are counted", Duration::from_secs(20), async || {
        db.sql(counted).await.concat().starts_with("21|")
    })
    .await;
    assert_eq!(db.sql(counted).await, ["21|21"]);
}

async fn a_renewal_of_a_locked_row_is_unknown_and_delays_no_other(db: &TestDb) {
    let store = db.store();
    db.freeze_clock(noon()).await;
    for name in ["one", "locked", "three", "foreign"] {
        acquire(&store, name, if name == "foreign" { "b" } else { "a" }).await;
    }
    let later = noon() + 20 * SECOND;
    db.freeze_clock(later).await;
    let batch = ["one", "locked", "three", "foreign", "none"].map(|name| renewal(name, "a", None));
    let blocker = db.block("distributed_locks", "resource IN ('locked', 'foreign')").await;
    let began = Instant::now();
    let answers = store.renew(&batch, WITHIN).await.unwrap();
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    let [Renewed::Renewed { .. }, Renewed::Unknown, Renewed::Renewed { .. }, taken, gone] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(*taken, Renewed::Lost(Loss::TakenOver(PublicOwner::of("b"))));
    assert_eq!(*gone, Renewed::Lost(Loss::Gone));
    for (name, renewed_at) in [("one", later), ("locked", noon()), ("three", later)] {
        assert_eq!(lock(&store, name).await.renewed_at, renewed_at, "{name}");
    }
    blocker.end().await;
    assert!(matches!(store.renew(&batch[1..2], WITHIN).await.unwrap()[..], [Renewed::Renewed { .. }]));
}

async fn a_locked_row_does_not_keep_others_from_being_recovered(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let locked = host.run(&host.claim("locked", now)).await;
    let free = host.run(&host.claim("free", now)).await;
    for name in ["job:locked", "job:free"] {
        db.let_expire(name).await;
    }
    let blocker = db.block("runs", "job = 'locked'").await;
    let began = Instant::now();
    let lost = host.store.recover(None).await.unwrap().lost;
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert_eq!(lost.iter().map(|lost| lost.run).collect::<Vec<_>>(), [free.run]);
    blocker.end().await;
    let lost = host.store.recover(None).await.unwrap().lost;
    assert_eq!(lost.iter().map(|lost| lost.run).collect::<Vec<_>>(), [locked.run]);
}

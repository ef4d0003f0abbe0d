//! Tables of the first version, with what daemons left in them, brought to this one.

use chrono::TimeDelta;
use cronlatch::lock::FencingToken;
use cronlatch::store::{
    Claimed, JobProgress, LockAtEnd, Migrated, MissedRow, ProgressQuery, RangeKind, RunKey, SCHEMA_VERSION,
};
use cronlatch::trigger::{RunId, RunState, Target};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    what_was_accounted_for_is_carried_over,
    a_paused_job_stays_paused,
    runs_and_locks_go_on,
    a_binary_of_the_first_version_is_refused_from_then_on,
);

/// A database of the first version in which a job was registered at noon and accounted for a minute
/// longer.
async fn first_version(db: &TestDb) -> TestDb {
    let old = db.unmigrated().await;
    let (sql, instant) = match old {
        TestDb::Postgres(_) => (include_str!("../../migrations/postgres/0001_initial.sql"), "timestamptz"),
        TestDb::Sqlite(_) => {
            // The file is made by whoever opens it.
            old.store().check_schema().await.unwrap_err();
            (include_str!("../../migrations/sqlite/0001_initial.sql"), "text")
        }
    };
    old.sql(format!(
        "CREATE TABLE cronlatch_schema (id integer PRIMARY KEY, version bigint NOT NULL, min_reader bigint NOT NULL, \
         cluster text, migrated_at {instant} NOT NULL);
         INSERT INTO cronlatch_schema VALUES (1, 1, 1, NULL, '{now}');
         {sql};
         INSERT INTO jobs (name, digest, caught_up_through) VALUES ('backup', 'digest', '{accounted}')",
        now = text(noon()),
        accounted = text(noon() + TTL),
    ))
    .await;
    old.freeze_clock(noon() + 5 * TTL).await;
    old
}

async fn migrate(old: &TestDb) -> Host {
    let host = Host::new(old, "web-1");
    assert_eq!(host.store.migrate().await.unwrap(), Migrated { from: 1, to: SCHEMA_VERSION });
    host.store.check_schema().await.unwrap();
    host
}

/// An open run as the first version left it.
async fn insert_run(old: &TestDb, name: &str, state: &str, rest: &str) -> RunId {
    let run = RunId::generate();
    let (at, until) = (text(noon() + 4 * TTL), text(noon() + 9 * TTL));
    old.sql(format!(
        "INSERT INTO runs (id, job, scheduled_at, trigger, state, created_at, wait_until, resource, start_deadline_ms, \
         start_by) VALUES ('{run}', '{name}', '{at}', 'schedule', '{state}', '{at}', '{until}', 'job:{name}', 60000, \
         '{until}'); UPDATE runs SET {rest} WHERE id = '{run}'",
    ))
    .await;
    run
}

async fn what_was_accounted_for_is_carried_over(db: &TestDb) {
    let old = first_version(db).await;
    old.sql(format!(
        "INSERT INTO trigger_ranges (job, kind, reason, range_from, range_to, count, recorded_at) \
         VALUES ('backup', 'missed', 'too_old', '{0}', '{0}', 3, '{0}')",
        text(noon())
    ))
    .await;
    let host = migrate(&old).await;
    let asked = [ProgressQuery { job: job("backup"), target: Target::fleet() }];
    let expected = JobProgress {
        job: job("backup"),
        target: Target::fleet(),
        caught_up_through: noon() + TTL,
        settled_through: noon() + TTL,
        with_row: vec![],
        pause: None,
        edited_at: None,
    };
    assert_eq!(host.store.progress(&asked).await.unwrap(), std::slice::from_ref(&expected));
    // The same file, read again, changes nothing.
    host.register("backup", "digest").await;
    assert_eq!(host.store.progress(&asked).await.unwrap(), [expected]);
    assert_eq!(host.store.claim(&host.claim("backup", noon() + TTL)).await.unwrap(), Claimed::Settled);
    host.run(&host.claim("backup", noon() + 2 * TTL)).await;
    let range = MissedRow {
        job: "backup".to_owned(),
        target: Target::fleet(),
        kind: RangeKind::Missed,
        from: noon(),
        to: noon(),
        count: 3,
        reason: "too_old".to_owned(),
        recorded_at: noon(),
    };
    assert_eq!(host.store.missed(&everything()).await.unwrap(), [range]);
    old.remove().await;
}

async fn a_paused_job_stays_paused(db: &TestDb) {
    let old = first_version(db).await;
    old.sql(format!("UPDATE jobs SET paused = true, paused_by = 'anna', paused_at = '{}'", text(noon()))).await;
    let host = migrate(&old).await;
    assert_eq!(host.store.claim(&host.claim("backup", noon() + 2 * TTL)).await.unwrap(), Claimed::Paused);
    assert_eq!(old.count("jobs", "paused_by = 'anna'").await, 1);
    old.remove().await;
}

async fn runs_and_locks_go_on(db: &TestDb) {
    let old = first_version(db).await;
    let waiting = insert_run(&old, "backup", "waiting", "reason = 'drain'").await;
    let owner = Host::new(db, "web-2").claimant("job:restore").owner;
    let public = owner.public();
    let live = format!("owner = '{}', token = 7, host = 'web-2'", public.as_str());
    let running = insert_run(&old, "restore", "running", &live).await;
    old.sql(format!(
        "INSERT INTO distributed_locks (resource, owner, token, acquired_at, renewed_at, expires_at) \
         VALUES ('job:restore', '{}', 7, '{1}', '{1}', '{2}')",
        owner.reveal(),
        text(noon()),
        text(noon() + TimeDelta::hours(1))
    ))
    .await;
    match old {
        TestDb::Postgres(_) => old.sql("SELECT setval('fencing_tokens', 7)").await,
        TestDb::Sqlite(_) => old.sql("UPDATE fencing_tokens SET last = 7").await,
    };
    let host = migrate(&old).await;
    let listed = host.store.waiting(&host.name).await.unwrap();
    assert_eq!(listed.iter().map(|run| run.run).collect::<Vec<_>>(), [waiting]);
    assert!(host.take(waiting, "job:backup").await.token > FencingToken::new(7));
    let key = RunKey { run: running, owner, resource: resource("job:restore"), token: FencingToken::new(7) };
    let ended = host.store.finish(&key, &success(), &[]).await.unwrap();
    assert_eq!((ended.recorded, ended.lock), (true, LockAtEnd::Released));
    assert_eq!(row(&host.store, running).await.state, RunState::Succeeded);
    old.remove().await;
}

async fn a_binary_of_the_first_version_is_refused_from_then_on(db: &TestDb) {
    let old = first_version(db).await;
    migrate(&old).await;
    assert_eq!(old.sql("SELECT version, min_reader FROM cronlatch_schema").await, ["3|2"]);
    old.remove().await;
}

//! What PostgreSQL alone can do to a host: isolation levels, time zones, sessions ended by an
//! administrator, a server process that hangs. Rows locked by somebody: `postgres_locking`.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use cronlatch::lock::PublicOwner;
use cronlatch::store::{Claim, Location, OpenOptions, Renewed, SharedStore, StoreError, WhenHeld};
use cronlatch::trigger::RunState;

use super::claim_race::each_is_won_once;
use super::database::{TestDb, cluster};
use super::fixtures::*;

on_postgres!(
    a_role_with_repeatable_read_as_its_default_claims_without_an_error,
    a_role_with_serializable_as_its_default_claims_without_an_error,
    a_database_with_serializable_as_its_default_claims_without_an_error,
    behind_a_pooler_each_trigger_is_won_once_whatever_the_default_isolation,
    everything_works_without_named_statements,
    sessions_in_different_time_zones_see_the_same_instants,
    a_host_whose_sessions_were_ended_goes_on,
    a_session_that_hangs_costs_one_call_only,
    a_heartbeat_that_hangs_costs_one_call_only,
    an_abandoned_acquire_is_found_again_under_its_owner,
    a_refused_claim_writes_nothing_to_the_log,
);

/// What a call that gives up may take, on a loaded machine.
const BOUND: Duration = Duration::from_secs(2);

/// A login of this database alone, with settings of its own.
async fn role(db: &TestDb, suffix: &str, settings: &str) -> String {
    let role = format!("{}_{suffix}", db.as_postgres().name());
    db.sql(format!("CREATE ROLE {role} LOGIN SUPERUSER")).await;
    for setting in settings.split(';') {
        db.sql(format!("ALTER ROLE {role} SET {setting}")).await;
    }
    role
}

async fn drop_role(db: &TestDb, role: &str) {
    db.sql(format!("DROP ROLE {role}")).await;
}

fn store_as(db: &TestDb, role: &str, pooler: bool) -> SharedStore {
    let url = db.as_postgres().url_as(role);
    db.store_with(|options| options.location = Location::Postgres { url, password: None, pooler, direct_url: None })
}

async fn races_under(db: &TestDb, settings: &str) {
    let role = role(db, "isolated", settings).await;
    let stores: Vec<_> = (0..10).map(|_| store_as(db, &role, false)).collect();
    each_is_won_once(db, &stores, 10, 200).await;
    drop(stores);
    drop_role(db, &role).await;
}

async fn a_role_with_repeatable_read_as_its_default_claims_without_an_error(db: &TestDb) {
    races_under(db, "default_transaction_isolation = 'repeatable read'").await;
}

async fn a_role_with_serializable_as_its_default_claims_without_an_error(db: &TestDb) {
    races_under(db, "default_transaction_isolation = 'serializable'").await;
}

async fn a_database_with_serializable_as_its_default_claims_without_an_error(db: &TestDb) {
    let name = db.as_postgres().name();
    db.sql(format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")).await;
    let stores = warm_stores(db, 10).await;
    each_is_won_once(db, &stores, 10, 200).await;
}

/// A pooler refuses the startup option that sets the level; what it then costs are calls sent again.
async fn behind_a_pooler_each_trigger_is_won_once_whatever_the_default_isolation(db: &TestDb) {
    let role = role(db, "pooled", "default_transaction_isolation = 'serializable'").await;
    let hosts: Vec<_> = (0..4).map(|_| Host::with_store(store_as(db, &role, true), "web")).collect();
    let due = db.now().await;
    let claimants = hosts.into_iter().map(|host| async move {
        let mut won = Vec::new();
        for number in 0..100 {
            let claim = host.claim(&format!("job-{number}"), due);
            loop {
                match host.store.claim(&claim).await {
                    Ok(answer) => break won.push(answer.is_granted()),
                    Err(StoreError::Busy { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
        won
    });
    let won = at_once(claimants).await;
    for trigger in 0..100 {
        assert_eq!(won.iter().filter(|won| won[trigger]).count(), 1, "trigger {trigger}");
    }
    drop_role(db, &role).await;
}

async fn everything_works_without_named_statements(db: &TestDb) {
    let host = Host::with_store(store_as(db, "postgres", true), "web-1");
    let now = db.now().await;
    register_long_ago(db, &host, "backup", "digest").await;
    for round in 0..3 {
        let run = host.run(&host.claim("backup", now - round * SECOND)).await;
        assert!(host.store.start(&run, now).await.unwrap());
        let renewal = [renewal("job:backup", run.owner.reveal(), run.token)];
        assert!(matches!(host.store.renew(&renewal, WITHIN).await.unwrap()[..], [Renewed::Renewed { .. }]));
        assert!(host.store.finish(&run, &success(), &[]).await.unwrap().recorded);
        host.store.recover(Some(Expected::new(now))).await.unwrap();
    }
    let sessions = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'sqlx_s_%'";
    assert_eq!(db.sql(sessions).await, ["0"]);
    assert_eq!(host.store.history(&everything()).await.unwrap().len(), 3);
}

async fn sessions_in_different_time_zones_see_the_same_instants(db: &TestDb) {
    let name = db.as_postgres().name();
    db.sql(format!("ALTER DATABASE {name} SET timezone = 'America/St_Johns'")).await;
    let settings = "timezone = 'Pacific/Chatham';datestyle = 'German, DMY';intervalstyle = 'sql_standard'";
    let role = role(db, "far", settings).await;
    let (here, there) = (Host::new(db, "here"), Host::with_store(store_as(db, &role, false), "there"));
    // In the hour that Chatham has twice, and around the hours that St. John's and Chatham skip.
    for at in ["2031-04-05T14:30:00Z", "2031-03-09T05:30:00Z", "2031-09-27T14:00:00Z"] {
        let at = at.parse().unwrap();
        db.freeze_clock(at).await;
        let run = here.run(&here.claim("backup", at)).await;
        let held = lock(&there.store, "job:backup").await.holder;
        assert_eq!((held.acquired_at, held.expires_at, held.remaining), (at, at + TTL, TTL));
        assert!(!there.store.claim(&there.claim("backup", at)).await.unwrap().is_granted());
        assert_eq!(row(&there.store, run.run).await.scheduled_at, at);
        assert_eq!(there.store.recover(Some(Expected::new(at))).await.unwrap().lost, []);
        db.freeze_clock(at + TTL).await;
        assert_eq!(there.store.recover(Some(Expected::new(at + TTL))).await.unwrap().lost.len(), 1);
    }
    drop(there);
    drop_role(db, &role).await;
}

async fn a_host_whose_sessions_were_ended_goes_on(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&host.claim("backup", now)).await;
    let batch = [renewal("job:backup", run.owner.reveal(), run.token)];
    host.store.renew(&batch, WITHIN).await.unwrap();
    for _ in 0..3 {
        let ended = db
            .sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .await;
        assert!(!ended.is_empty() && ended.iter().all(|ended| ended == "t"), "{ended:?}");
        // The call that finds out may fail, and says that it is weather; the next does not.
        for _ in 0..2 {
            if let Err(error) = host.store.renew(&batch, WITHIN).await {
                assert!(error.is_transient() && error.is_unknown(), "{error}");
            }
            if let Err(error) = host.store.locks().await {
                assert!(error.is_transient() && error.is_unknown(), "{error}");
            }
        }
        assert!(matches!(host.store.renew(&batch, WITHIN).await.unwrap()[..], [Renewed::Renewed { .. }]));
        assert!(host.store.start(&run, now).await.unwrap());
    }
    assert!(host.store.finish(&run, &success(), &[]).await.unwrap().recorded);
}

/// A store whose calls wait for a second at most, known to the server by a name of its own.
fn impatient(db: &TestDb, application: &str) -> SharedStore {
    db.store_with(|options: &mut OpenOptions| {
        options.call_timeout = Duration::from_secs(1);
        options.heartbeat_timeout = Duration::from_secs(1);
        options.application = application.to_owned();
    })
}

/// The one server process behind a store.
async fn backend(db: &TestDb, application: &str) -> i32 {
    let sql = format!(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = '{application}'"
    );
    let pids = db.sql(sql).await;
    assert_eq!(pids.len(), 1, "{pids:?}");
    pids[0].parse().unwrap()
}

#[track_caller]
fn assert_timed_out<T: std::fmt::Debug>(began: Instant, answer: Result<T, StoreError>) {
    let error = answer.expect_err("a process that is stopped can't answer");
    assert!(matches!(error, StoreError::TimedOut { .. }), "{error:?}");
    assert!(error.is_transient() && error.is_unknown());
    assert!(began.elapsed() < 2 * BOUND, "{:?}", began.elapsed());
}

async fn a_session_that_hangs_costs_one_call_only(db: &TestDb) {
    let store = impatient(db, "hanging");
    acquire(&store, "report", "a").await;
    let paused = cluster().pause_backend(backend(db, "hanging").await);
    let began = Instant::now();
    assert_timed_out(began, store.lock(&resource("report")).await);
    assert!(is_held(&store, "report").await);
    assert!(store.acquire(&attempt("other", "a")).await.unwrap().is_granted());
    paused.resume();
}

async fn a_heartbeat_that_hangs_costs_one_call_only(db: &TestDb) {
    let (store, others) = (impatient(db, "beating"), db.store());
    acquire(&others, "report", "a").await;
    let batch = [renewal("report", "a", None)];
    store.renew(&batch, WITHIN).await.unwrap();
    let paused = cluster().pause_backend(backend(db, "beating").await);
    let began = Instant::now();
    assert_timed_out(began, store.renew(&batch, BOUND).await);
    assert!(matches!(store.renew(&batch, WITHIN).await.unwrap()[..], [Renewed::Renewed { .. }]));
    paused.resume();
}

/// The server carries out, late, what nobody waits for any more.
async fn an_abandoned_acquire_is_found_again_under_its_owner(db: &TestDb) {
    let store = impatient(db, "abandoned");
    store.locks().await.unwrap();
    let paused = cluster().pause_backend(backend(db, "abandoned").await);
    assert_timed_out(Instant::now(), store.acquire(&attempt("report", "a")).await);
    let grant = acquire(&store, "report", "a").await;
    paused.resume();
    crate::support::wait::eventually_async("the abandoned session ends", Duration::from_secs(20), async || {
        db.sql("SELECT FROM pg_stat_activity WHERE application_name = 'abandoned'").await.len() <= 1
    })
    .await;
    let held = lock(&store, "report").await.holder;
    assert_eq!((held.owner, held.token), (PublicOwner::of("a"), grant.token));
    assert!(held.expires_at >= grant.expires_at);
}

async fn a_refused_claim_writes_nothing_to_the_log(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    host.run(&host.claim("backup", now - SECOND)).await;
    for _ in 0..3 {
        let skipped = host.claim("backup", now);
        host.store.claim(&skipped).await.unwrap();
        host.store.claim(&host.claim("backup", now + TimeDelta::hours(1))).await.unwrap();
        host.store
            .claim(&Claim { when_held: WhenHeld::Wait(TTL), ..host.claim("backup", now - 2 * SECOND) })
            .await
            .unwrap();
        host.store.acquire(&attempt("job:backup", "b")).await.unwrap();
        host.store.release(&resource("job:backup"), &owner("b"), None).await.unwrap();
        host.store.renew(&[renewal("job:backup", "b", None)], WITHIN).await.unwrap();
    }
    assert_eq!(db.count("runs", &format!("state = '{}'", RunState::Claimed)).await, 1);
    assert_eq!(db.errors_logged(), [""; 0]);
}

//! What SQLite alone can do to a host: instants as text, and one writer for the whole file.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cronlatch::store::{Claim, StoreError};

use super::database::{Blocker, TestDb, connect_to_file, text};
use super::fixtures::*;
use crate::support::wait::{PATIENCE, eventually_async};

on_sqlite!(
    an_instant_in_any_other_shape_is_refused_by_every_table,
    a_file_that_another_process_holds_shortly_is_waited_for,
    a_file_that_another_process_holds_long_is_answered_within_the_calls_time,
    a_read_does_not_wait_for_a_writer,
    a_heartbeat_does_not_wait_for_the_other_calls_of_its_host,
    the_file_is_in_write_ahead_mode,
);

/// Says to this test binary that it is the other process, and which file it holds.
const HOLD: &str = "CRONLATCH_TEST_HOLD";

/// Another process that has the file for itself.
struct OtherProcess {
    child: Child,
    /// Read to its end: closed before, the other process would fail in its last words.
    said: Lines<BufReader<ChildStdout>>,
}

impl OtherProcess {
    fn hold(file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "store::sqlite_alone::holds_a_file_for_another_process"])
            .env(HOLD, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("held")), "the other process ended early");
        Self { child, said }
    }

    fn let_go(mut self) {
        drop(self.child.stdin.take());
        assert!(self.said.all(|line| line.is_ok()));
        assert!(self.child.wait().unwrap().success());
    }
}

#[tokio::test]
async fn holds_a_file_for_another_process() {
    // Nothing to do unless it is the other process of two cases above.
    let Some(file) = std::env::var_os(HOLD) else { return };
    let blocker = Blocker::begin(connect_to_file(Path::new(&file)).await, "BEGIN EXCLUSIVE").await;
    writeln!(std::io::stdout(), "held").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    blocker.end().await;
}

async fn an_instant_in_any_other_shape_is_refused_by_every_table(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = text(db.now().await);
    host.register("backup", "digest").await;
    host.run(&host.claim("backup", db.now().await)).await;
    db.sql(format!(
        "INSERT INTO hosts VALUES ('i', 'n', 'v', '[]', 'd', 0, 0, 0, '{now}', '{now}');
         INSERT INTO trigger_ranges VALUES (1, 'j', 'missed', 'r', '{now}', '{now}', 1, '{now}', '');
         INSERT INTO requests (id, kind, made_at) VALUES ('r', 'start', '{now}');
         INSERT INTO holds (resource, owner, token, acquired_at) VALUES ('r', 'o', 1, '{now}')"
    ))
    .await;
    let instants = db
        .sql(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' \
             AND t.name <> 'cronlatch_schema' AND (c.name LIKE '%\\_at' ESCAPE '\\' OR c.name LIKE '%\\_until' ESCAPE '\\' \
             OR c.name LIKE '%\\_through' ESCAPE '\\' OR c.name LIKE 'range\\__%' ESCAPE '\\' OR c.name = 'not_before')",
        )
        .await;
    assert!(instants.len() > 28, "{instants:?}");
    let shapes = [
        "2031-05-01 12:00:00.000Z",
        "2031-05-01T12:00:00Z",
        "2031-05-01T12:00:00.000",
        "2031-05-01T12:00:00.000+00:00",
        "2031-05-01T12:00:00.000000Z",
        "2031-05-01T12:00:00.000Z ",
        "31-05-01T12:00:00.000Z",
        "1935403200",
        "now",
        "",
    ];
    for instant in &instants {
        let (table, column) = instant.split_once('|').unwrap();
        assert!(db.count(table, "1 = 1").await > 0, "{table} has no row to try it on");
        for shape in shapes {
            let refused = db.try_sql(format!("UPDATE {table} SET {column} = '{shape}'")).await;
            assert!(refused.is_err(), "{table}.{column} takes {shape:?}");
        }
        for number in ["1935403200", "1935403200.5"] {
            assert!(db.try_sql(format!("UPDATE {table} SET {column} = {number}")).await.is_err(), "{instant} {number}");
        }
        db.sql(format!("UPDATE {table} SET {column} = '2031-05-01T12:00:00.000Z'")).await;
    }
}

async fn a_file_that_another_process_holds_shortly_is_waited_for(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    acquire(&host.store, "report", "a").await;
    let other = OtherProcess::hold(db.as_sqlite().path());
    let mut calls = tokio::task::JoinSet::new();
    let (one, two, three) = (host.clone(), host.clone(), host.clone());
    calls.spawn(async move { one.store.claim(&one.claim("backup", now)).await.map(|answer| answer.is_granted()) });
    calls.spawn(async move { two.store.acquire(&attempt("other", "a")).await.map(|answer| answer.is_granted()) });
    calls.spawn(async move {
        three.store.renew(&[renewal("report", "a", None)], WITHIN).await.map(|answers| answers.len() == 1)
    });
    let began = Instant::now();
    eventually_async("they have waited", PATIENCE, async || began.elapsed() > Duration::from_millis(300)).await;
    assert!(calls.try_join_next().is_none(), "nobody writes while the file is held");
    other.let_go();
    for answer in calls.join_all().await {
        assert!(answer.unwrap());
    }
}

async fn a_file_that_another_process_holds_long_is_answered_within_the_calls_time(db: &TestDb) {
    let timeout = Duration::from_millis(800);
    let host = Host::with_store(
        db.store_with(|options| {
            options.call_timeout = timeout;
            options.heartbeat_timeout = timeout;
        }),
        "web-1",
    );
    let now = db.now().await;
    let run = host.run(&host.claim("backup", now)).await;
    let before = (db.sql("SELECT * FROM runs").await, db.sql("SELECT * FROM distributed_locks").await);
    let other = OtherProcess::hold(db.as_sqlite().path());
    for call in 0..5 {
        let began = Instant::now();
        let answer = match call {
            0 => host.store.acquire(&attempt("other", "a")).await.map(drop),
            1 => host.store.claim(&host.claim("restore", now)).await.map(drop),
            2 => host.store.renew(&[renewal("job:backup", run.owner.reveal(), None)], WITHIN).await.map(drop),
            3 => host.store.finish(&run, &success(), &[]).await.map(drop),
            _ => host.store.release(&run.resource, &run.owner, None).await.map(drop),
        };
        let error = answer.expect_err("the file is held");
        assert!(matches!(error, StoreError::Busy { .. } | StoreError::TimedOut { .. }), "call {call}: {error:?}");
        assert!(error.is_transient());
        assert!(began.elapsed() < timeout + SECOND, "call {call}: {:?}", began.elapsed());
    }
    assert!(is_held(&host.store, "job:backup").await, "reading goes on");
    other.let_go();
    assert_eq!((db.sql("SELECT * FROM runs").await, db.sql("SELECT * FROM distributed_locks").await), before);
    // What was not answered in time was not done behind our back, and the store serves again.
    assert!(host.store.finish(&run, &success(), &[]).await.unwrap().recorded);
    assert_eq!(db.count("distributed_locks", "resource = 'other'").await, 0);
}

async fn a_read_does_not_wait_for_a_writer(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let run = host.run(&host.claim("backup", now)).await;
    let blocker = db.block("runs", "true").await;
    let began = Instant::now();
    assert!(is_held(&host.store, "job:backup").await);
    assert_eq!(host.store.history(&everything()).await.unwrap().len(), 1);
    assert_eq!(host.store.recover(None).await.unwrap().lost, []);
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), []);
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    blocker.end().await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
}

/// All of a host's other connections are taken by calls that wait; the renewal has its own.
async fn a_heartbeat_does_not_wait_for_the_other_calls_of_its_host(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    acquire(&host.store, "report", "a").await;
    let mut claims = tokio::task::JoinSet::new();
    for number in 0..50 {
        let host = host.clone();
        claims.spawn(async move {
            let claim = Claim { start_deadline: TTL, ..host.claim(&format!("job-{number}"), now) };
            host.store.claim(&claim).await.unwrap()
        });
    }
    let renewed = host.store.renew(&[renewal("report", "a", None)], WITHIN).await.unwrap();
    assert_eq!(renewed.len(), 1);
    assert!(claims.join_all().await.iter().all(MayBeGranted::is_granted));
}

async fn the_file_is_in_write_ahead_mode(db: &TestDb) {
    acquire(&db.store(), "report", "a").await;
    assert_eq!(db.sql("PRAGMA journal_mode").await, ["wal"]);
}

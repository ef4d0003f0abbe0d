use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use sqlx::postgres::PgConnection;
use sqlx::{Connection, query_scalar};
use tokio::time::timeout;

use crate::support::postgres::{Cluster, Setup, Shutdown};
use crate::support::proxy::{Mode, Proxy};
use crate::support::wait::{PATIENCE, eventually};

const SHORT: Duration = Duration::from_millis(300);
const CHILD: &str = "CRONLATCH_SELFTEST_CHILD";

#[tokio::test]
async fn the_shared_cluster_gives_each_test_a_database_of_its_own() {
    let cluster = Cluster::shared();
    let (one, other) = (cluster.create_database().await, cluster.create_database().await);
    assert_ne!(one, other);
    let mut connection = PgConnection::connect(&one).await.unwrap();
    let encoding: String = query_scalar("SHOW server_encoding").fetch_one(&mut connection).await.unwrap();
    assert_eq!(encoding, "UTF8");
}

#[tokio::test]
async fn a_database_made_from_another_has_its_tables() {
    let cluster = Cluster::shared();
    let template = cluster.create_database().await;
    let mut connection = PgConnection::connect(&template).await.unwrap();
    sqlx::raw_sql("CREATE TABLE t AS SELECT 7 AS n").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let copy = cluster.create_database_from(&template).await;
    let mut connection = PgConnection::connect(&copy).await.unwrap();
    let n: i32 = query_scalar("SELECT n FROM t").fetch_one(&mut connection).await.unwrap();
    assert_eq!(n, 7);
}

#[tokio::test]
async fn psql_prints_the_rows_of_all_statements() {
    let rows = Cluster::shared().psql("postgres", "SELECT 1, NULL, 'a b'; VALUES (true), (false)").await;
    assert_eq!(rows, "1||a b\nt\nf");
}

#[tokio::test]
async fn the_unix_socket_leads_to_the_same_server() {
    let cluster = Cluster::shared();
    let mut connection = PgConnection::connect(&cluster.socket_url("postgres")).await.unwrap();
    let port: String = query_scalar("SHOW port").fetch_one(&mut connection).await.unwrap();
    assert_eq!(port, cluster.port().to_string());
}

#[tokio::test]
async fn errors_of_the_server_are_found_in_its_log() {
    let cluster = Cluster::start();
    assert_eq!(cluster.errors_in_log(), Vec::<String>::new());
    cluster.try_psql("postgres", "SELECT 1/0").await.unwrap_err();
    let errors = || cluster.errors_in_log();
    eventually("the log says so", PATIENCE, || errors().iter().any(|line| line.contains("division by zero")));
}

#[tokio::test]
async fn settings_of_the_caller_win() {
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let settings = vec![setting("shared_buffers", "1MB"), setting("log_statement", "all")];
    let cluster = Cluster::start_with(Setup { durable: true, settings, ..Setup::default() });
    assert_eq!(cluster.psql("postgres", "SHOW shared_buffers; SHOW fsync").await, "1MB\non");
    assert!(cluster.log().contains("SHOW fsync"));
}

#[tokio::test]
async fn commits_survive_every_way_to_stop_the_server() {
    let mut cluster = Cluster::start();
    cluster.psql("postgres", "CREATE TABLE t (n int)").await;
    let port = cluster.port();
    for n in 0..3 {
        cluster.psql("postgres", &format!("INSERT INTO t VALUES ({n})")).await;
        match n {
            0 => cluster.restart(Shutdown::Fast),
            1 => cluster.restart(Shutdown::Immediate),
            _ => {
                cluster.kill9();
                cluster.start_again();
            }
        }
    }
    assert_eq!(cluster.psql("postgres", "SELECT count(*) FROM t").await, "3");
    assert_eq!(cluster.port(), port);
}

#[tokio::test]
async fn a_stopped_server_refuses_connections() {
    let mut cluster = Cluster::start();
    cluster.stop(Shutdown::Immediate);
    assert!(cluster.try_psql("postgres", "SELECT 1").await.is_err());
    cluster.start_again();
    cluster.psql("postgres", "SELECT 1").await;
}

#[tokio::test]
async fn a_paused_backend_hangs_its_connection_and_no_other() {
    let cluster = Cluster::shared();
    let mut connection = PgConnection::connect(&cluster.url("postgres")).await.unwrap();
    let pid: i32 = query_scalar("SELECT pg_backend_pid()").fetch_one(&mut connection).await.unwrap();
    let paused = cluster.pause_backend(pid);
    {
        let hanging = query_scalar::<_, i32>("SELECT 1").fetch_one(&mut connection);
        tokio::pin!(hanging);
        assert!(timeout(SHORT, &mut hanging).await.is_err(), "it answered");
        assert_eq!(cluster.psql("postgres", "SELECT 2").await, "2");
        paused.resume();
        assert_eq!(timeout(PATIENCE, hanging).await.unwrap().unwrap(), 1);
    }
}

#[tokio::test]
async fn a_paused_server_hangs_old_connections_and_new_ones() {
    let mut cluster = Cluster::start();
    let mut old = PgConnection::connect(&cluster.url("postgres")).await.unwrap();
    let paused = cluster.pause_all();
    assert!(timeout(SHORT, old.ping()).await.is_err());
    assert!(timeout(SHORT, cluster.try_psql("postgres", "SELECT 1")).await.is_err());
    paused.resume();
    cluster.psql("postgres", "SELECT 1").await;
}

#[tokio::test]
async fn a_paused_server_is_gone_with_its_cluster_all_the_same() {
    let mut cluster = Cluster::start();
    let folder = cluster.folder().to_owned();
    let _paused = cluster.pause_all();
    drop(cluster);
    assert_gone(&folder);
}

#[tokio::test]
async fn a_server_is_reached_through_the_proxy_until_that_stalls() {
    let cluster = Cluster::shared();
    let proxy = Proxy::to_port(cluster.port());
    let mut connection = PgConnection::connect(&proxy.url(&cluster.url("postgres"))).await.unwrap();
    connection.ping().await.unwrap();
    proxy.set(Mode::StallDown);
    assert!(timeout(SHORT, connection.ping()).await.is_err());
}

/// The test starts itself again as the process to be killed; that one takes the first branch.
#[test]
fn a_cluster_is_gone_after_its_test_process_was_killed() {
    if env::var_os(CHILD).is_some() {
        let folder = Cluster::shared().folder().display();
        println_now(&format!("\n{CHILD} {folder}"));
        loop {
            std::thread::park();
        }
    }
    let name = "postgres::a_cluster_is_gone_after_its_test_process_was_killed";
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.filter_map(|line| line.strip_prefix(CHILD).map(|rest| PathBuf::from(rest.trim()))).next();
    let folder = said.expect("the child tells its folder");
    assert!(folder.join("data/postmaster.pid").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("its folder is removed", PATIENCE, || !folder.exists());
    assert_gone(&folder);
}

fn assert_gone(folder: &Path) {
    assert!(!folder.exists(), "{} is there", folder.display());
    let works_there =
        |entry: &fs::DirEntry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    let left: Vec<_> = fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(works_there).collect();
    assert!(left.is_empty(), "{left:?} live");
}

fn println_now(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

//! A throwaway PostgreSQL, started by the test process and gone with it.
//!
//! The server runs as an unprivileged user, as it insists on: `postgres` (else `nobody`) when the
//! tests run as root, otherwise the current user. It is found by `CRONLATCH_TEST_PG_BIN`, else it
//! is the newest of `/usr/lib/postgresql/*/bin`. A missing server fails the test; nothing is ever
//! skipped.
//!
//! [`Cluster::shared`] is the one that most tests use, each with a database of its own. The faults
//! that strike a whole server take `&mut self`, so they need a cluster of one's own:
//! [`Cluster::start`], 0.2 s.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, process};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row, ValueRef};

use super::scratch::{Farewell, Scratch};
use super::wait::{PATIENCE, eventually, eventually_some, eventually_some_async};

mod installation;
mod port;

use installation::Installation;
pub use installation::User;
pub use port::Port;

/// Recovery after a crash may take this long before the server is ready.
const START: Duration = Duration::from_secs(60);

/// Numbers the databases of this process; names are unique over all clusters.
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// How a cluster is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Keeps fsync and full page writes on. Off by default: that loses data at a power failure
    /// only, not when processes are killed.
    pub durable: bool,
    /// Settings, name and value; they win over those of the suite.
    pub settings: Vec<(String, String)>,
    /// Environment of the server alone, e.g. for a clock that is off.
    pub env: Vec<(String, String)>,
}

/// How a server is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// SIGINT: sessions are ended, data written.
    Fast,
    /// SIGQUIT: as a crash, recovery at the next start.
    Immediate,
}

/// One server with its folder, port and socket.
#[derive(Debug)]
pub struct Cluster {
    /// First, so that its guard has ended the server before we wait for it.
    scratch: Scratch,
    /// `None` while the server is stopped.
    postmaster: Option<Postmaster>,
    installation: Installation,
    setup: Setup,
    port: Port,
}

/// The server's first process, waited for when dropped.
#[derive(Debug)]
struct Postmaster(Child);

/// Processes that were stopped by SIGSTOP; they go on when this is dropped.
#[derive(Debug)]
#[must_use = "what was paused goes on when this is dropped"]
pub struct Paused(Vec<Pid>);

impl Cluster {
    /// Starts a cluster of one's own.
    pub fn start() -> Self {
        Self::start_with(Setup::default())
    }

    /// Starts a cluster whose fsync is on.
    pub fn start_durable() -> Self {
        Self::start_with(Setup { durable: true, ..Setup::default() })
    }

    /// Starts a cluster of one's own, set up as said.
    pub fn start_with(setup: Setup) -> Self {
        let installation = Installation::find();
        let template = installation.template();
        let scratch = Scratch::new("pg", Farewell::Quit);
        if let Some(user) = &installation.user {
            chown(scratch.path(), Some(user.uid), Some(user.gid)).expect("root may give a folder away");
        }
        let copy =
            Command::new("cp").args(["-a", "--reflink=auto"]).arg(template).arg(scratch.path().join("data")).status();
        assert!(copy.is_ok_and(|status| status.success()), "can't copy the template cluster");
        let mut cluster = Self { scratch, postmaster: None, installation, setup, port: Port::reserve() };
        cluster.boot(true);
        cluster
    }

    /// The cluster of this test process, started by the first who asks.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The URL of a database over TCP, without TLS. It has a query part already.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}?sslmode=disable", self.port())
    }

    /// The URL of a database over the unix socket.
    pub fn socket_url(&self, database: &str) -> String {
        let folder = self.folder().to_string_lossy().replace('/', "%2F");
        format!("postgres://postgres@{folder}:{}/{database}", self.port())
    }

    /// The port on 127.0.0.1; it stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The folder: `data`, `log` and the socket.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// The folder of the programs: `postgres`, `initdb`, `pg_ctl`; Debian has `pg_dump` and more there.
    pub fn bin(&self) -> &Path {
        &self.installation.bin
    }

    /// As whom the server runs; `None`: as the tests themselves.
    pub fn user(&self) -> Option<&User> {
        self.installation.user.as_ref()
    }

    /// A command that runs another program as the server's user.
    pub fn command_of(&self, program: &str) -> Command {
        self.installation.command(program, &[])
    }

    /// The server's major version.
    pub fn major_version(&self) -> u32 {
        self.installation.major()
    }

    /// Makes an empty database and returns its URL.
    pub async fn create_database(&self) -> String {
        self.create("template1").await
    }

    /// Makes a database as a copy of another of this cluster, given by its URL, and returns its URL.
    ///
    /// All pools of the original must have been closed.
    pub async fn create_database_from(&self, template_url: &str) -> String {
        self.create(database_of(template_url)).await
    }

    /// Runs statements and returns the rows of all as `psql -At` prints them: a line a row,
    /// columns parted by `|`, NULL empty. Panics when one fails.
    pub async fn psql(&self, database: &str, sql: &str) -> String {
        self.try_psql(database, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// As [`Self::psql`], but a failure is an answer.
    pub async fn try_psql(&self, database: &str, sql: &str) -> Result<String, sqlx::Error> {
        let mut connection = PgConnection::connect(&self.url(database)).await?;
        let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await?;
        connection.close().await?;
        Ok(rows.iter().map(printed).collect::<Vec<_>>().join("\n"))
    }

    /// The server's log since the cluster was made.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    /// The lines of the log that are an ERROR, FATAL or PANIC.
    pub fn errors_in_log(&self) -> Vec<String> {
        let is_error = |line: &&str| ["ERROR:", "FATAL:", "PANIC:"].iter().any(|level| line.contains(level));
        self.log().lines().filter(is_error).map(str::to_owned).collect()
    }

    /// Stops the server and waits until it is gone.
    pub fn stop(&mut self, how: Shutdown) {
        let signal = match how {
            Shutdown::Fast => Signal::INT,
            Shutdown::Immediate => Signal::QUIT,
        };
        self.end(signal);
    }

    /// Kills the server's first process; the others notice and leave. No recovery yet: `start_again`.
    pub fn kill9(&mut self) {
        self.end(Signal::KILL);
        eventually("a killed server's other processes leave", PATIENCE, || self.processes().is_empty());
    }

    /// Starts a stopped or killed server on the same port and waits until it is ready.
    pub fn start_again(&mut self) {
        assert!(self.postmaster.is_none(), "the server is running");
        self.boot(false);
    }

    /// Stops and starts.
    pub fn restart(&mut self, how: Shutdown) {
        self.stop(how);
        self.start_again();
    }

    /// Stops every process of the server: sessions and new connections hang.
    pub fn pause_all(&mut self) -> Paused {
        let postmaster = self.postmaster_pid().expect("the server is running");
        // It first, so that no process is added behind our back.
        let mut paused = Paused(vec![postmaster]);
        send(postmaster, Signal::STOP);
        for pid in self.processes().into_iter().filter(|pid| *pid != postmaster) {
            send(pid, Signal::STOP);
            paused.0.push(pid);
        }
        paused
    }

    /// Stops the one process behind a session (`pg_backend_pid()`): a connection that hangs.
    pub fn pause_backend(&self, pid: i32) -> Paused {
        let pid = Pid::from_raw(pid).expect("a process id is positive");
        assert!(self.processes().contains(&pid), "{pid:?} is no process of this server");
        send(pid, Signal::STOP);
        Paused(vec![pid])
    }

    async fn create(&self, template: &str) -> String {
        let name = format!("test_{}_{}", process::id(), DATABASES.fetch_add(1, Ordering::Relaxed));
        let sql = format!("CREATE DATABASE {name} TEMPLATE {template}");
        // A session of the template that was just closed may still be leaving: 55006.
        let create = async || match self.try_psql("postgres", &sql).await {
            Ok(_) => Some(()),
            Err(sqlx::Error::Database(e)) if e.code().as_deref() == Some("55006") => None,
            Err(e) => panic!("{sql}: {e}"),
        };
        eventually_some_async(format!("nobody uses database {template}"), PATIENCE, create).await;
        self.url(&name)
    }

    /// Starts the server and waits until it is ready. A port that somebody else took is changed
    /// for another only while nobody knows it.
    fn boot(&mut self, may_move: bool) {
        let what = format!("PostgreSQL is ready, see {}", self.folder().join("log").display());
        eventually(what, START, || {
            let log_before = self.log().len();
            let mut child = self.spawn();
            if self.wait_until_ready(&mut child) {
                self.postmaster = Some(Postmaster(child));
                return true;
            }
            let said = self.log().split_off(log_before);
            if may_move && said.contains("could not bind") {
                self.port = Port::reserve();
                return false;
            }
            // After kill -9 the old shared memory may be in use for a moment; a port that is
            // ours may be in use by a connection that is leaving.
            let passing = ["pre-existing shared memory", "could not bind", "postmaster.pid"];
            assert!(passing.iter().any(|text| said.contains(text)), "PostgreSQL does not start:\n{said}");
            false
        });
    }

    fn spawn(&self) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.folder().join("log"));
        let log = log.expect("the folder is our own");
        let mut command = self.installation.command("postgres", &self.setup.env);
        command.arg("-D").arg(self.data());
        let own = [
            ("listen_addresses", "127.0.0.1"),
            ("port", &self.port().to_string()),
            ("unix_socket_directories", &self.folder().to_string_lossy()),
            ("shared_buffers", "32MB"),
            ("max_connections", "200"),
            ("logging_collector", "off"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        // Commits still reach the kernel before they are answered, so that killing the server loses none.
        let fast = [("fsync", "off"), ("full_page_writes", "off")];
        let fast =
            fast.into_iter().filter(|_| !self.setup.durable).map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (name, value) in own.into_iter().chain(fast).chain(self.setup.settings.iter().cloned()) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.stdin(Stdio::null()).stderr(log.try_clone().expect("a file can be shared")).stdout(log);
        // The guard finds the server by its working directory, from its first instant on.
        command.current_dir(self.data()).process_group(0).spawn().expect("PostgreSQL can be started")
    }

    /// Whether it came up; false when it ended instead.
    fn wait_until_ready(&self, child: &mut Child) -> bool {
        let pid_file = self.data().join("postmaster.pid");
        let id = child.id().to_string();
        eventually_some("PostgreSQL starts or ends", START, || {
            if child.try_wait().expect("it is our child").is_some() {
                return Some(false);
            }
            let text = fs::read_to_string(&pid_file).unwrap_or_default();
            let mut lines = text.lines();
            // A file that a killed server left says "ready" too: its first line is another process.
            (lines.next() == Some(&id) && lines.nth(6).is_some_and(|state| state.trim() == "ready")).then_some(true)
        })
    }

    fn end(&mut self, signal: Signal) {
        let postmaster = self.postmaster.take().expect("the server is running");
        send(postmaster.pid(), signal);
    }

    fn postmaster_pid(&self) -> Option<Pid> {
        self.postmaster.as_ref().map(Postmaster::pid)
    }

    /// All processes of the server: those that work in its data folder.
    fn processes(&self) -> Vec<Pid> {
        let data = self.data();
        let entries = fs::read_dir("/proc").expect("/proc is there").filter_map(Result::ok);
        entries
            .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == data))
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
            .collect()
    }

    fn data(&self) -> PathBuf {
        self.folder().join("data")
    }
}

impl Postmaster {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        // An error means that it has been waited for.
        self.0.wait().ok();
    }
}

impl Paused {
    /// Lets them go on; the same as a drop, with a name.
    pub fn resume(self) {}
}

impl Drop for Paused {
    fn drop(&mut self) {
        for pid in &self.0 {
            // One that has been killed meanwhile is no fault of the test.
            kill_process(*pid, Signal::CONT).ok();
        }
    }
}

fn send(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap_or_else(|e| panic!("can't send {signal:?} to {pid:?}: {e}"));
}

/// The database in one of our URLs.
fn database_of(url: &str) -> &str {
    let path = url.split('?').next().expect("a text has a first part");
    path.rsplit('/').next().expect("a text has a last part")
}

fn printed(row: &PgRow) -> String {
    let column = |at| {
        let value = row.try_get_raw(at).expect("the column is there");
        if value.is_null() { String::new() } else { value.as_str().expect("simple queries answer in text").to_owned() }
    };
    (0..row.len()).map(column).collect::<Vec<_>>().join("|")
}

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child as Process, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::executable::{ENTRY, Executable};
use super::link::register;
use super::pool::Pool;
use super::socket;
use crate::events;

/// The pause before a fork server that died is started again; doubles while the next one dies soon, too.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A fork server that lives as long as this has come up well.
const WELL: Duration = Duration::from_secs(10);

/// How often shims are let go that nobody needs.
const LOOK_AFTER_POOL: Duration = Duration::from_secs(30);

/// How fork servers are called in lists of processes.
const NAME: &str = "cronlatch";

/// The daemon's end of the way to a fork server.
pub(super) type ServerSocket = Arc<AsyncFd<OwnedFd>>;

/// The fork server, and the task that starts it again.
#[derive(Debug)]
pub(super) struct Server {
    /// Written by the task, read by who starts jobs; `None` while there is none.
    current: watch::Receiver<Option<ServerSocket>>,
    task: JoinHandle<()>,
}

/// A fork server that was started.
struct Running {
    process: Process,
    exited: AsyncFd<OwnedFd>,
    socket: ServerSocket,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "its handle is kept and aborts it on drop")]
    pub(super) fn start(executable: Executable, pool: Pool) -> io::Result<Self> {
        let running = Running::start(&executable)?;
        let (sender, current) = watch::channel(Some(running.socket.clone()));
        let task = tokio::spawn(tend(executable, running, sender, pool));
        Ok(Self { current, task })
    }

    /// The way to it, once there is one; `None` if there will be none.
    pub(super) async fn socket(&self) -> Option<ServerSocket> {
        let mut current = self.current.clone();
        current.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Waits until it is not this one any more.
    pub(super) async fn wait_for_another(&self, dead: &ServerSocket) {
        let mut current = self.current.clone();
        let is_another = |now: &Option<ServerSocket>| now.as_ref().is_none_or(|now| !Arc::ptr_eq(now, dead));
        // An error means that there will be none, which the next call says.
        current.wait_for(is_another).await.map(drop).ok();
    }

    /// Waits until the task has ended, which it does only by a panic.
    pub(super) async fn gone(&self) {
        let mut current = self.current.clone();
        while current.changed().await.is_ok() {}
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts the fork server again whenever it has died. Running jobs have channels of their own.
async fn tend(executable: Executable, mut running: Running, current: watch::Sender<Option<ServerSocket>>, pool: Pool) {
    let mut pause = FIRST_PAUSE;
    loop {
        let since = tokio::time::Instant::now();
        let how = loop {
            tokio::select! {
                how = running.end() => break how,
                () = tokio::time::sleep(LOOK_AFTER_POOL) => pool.expire(),
            }
        };
        current.send_replace(None);
        pool.clear();
        pause = if since.elapsed() > WELL { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        events::fork_server_died(&how, pause);
        running = loop {
            tokio::time::sleep(pause).await;
            match Running::start(&executable) {
                Ok(running) => break running,
                Err(error) => {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    events::fork_server_died(&format!("it can't be started: {error}"), pause);
                }
            }
        };
        current.send_replace(Some(running.socket.clone()));
    }
}

impl Running {
    fn start(executable: &Executable) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let (ours, theirs) = socket::pair()?;
        let socket = Arc::new(register(ours)?);
        // Nothing of the daemon's environment, which may hold passwords, and none of its streams: a log that
        // is piped somewhere ends with the daemon.
        let mut command = Command::new(executable.path());
        command.arg0(NAME).arg(ENTRY).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let watched = pidfd_open(Pid::from_child(&process), PidfdFlags::NONBLOCK);
        match watched.map_err(io::Error::from).and_then(register) {
            Ok(exited) => Ok(Self { process, exited, socket }),
            Err(error) => {
                // Without its socket it ends by itself; it has no shim yet.
                process.kill().and_then(|()| process.wait()).ok();
                Err(error)
            }
        }
    }

    /// Waits until it has ended, and says how.
    async fn end(&mut self) -> String {
        if let Err(error) = self.exited.readable().await {
            // It can't be watched, so it can't be left.
            self.process.kill().ok();
            return format!("it can't be watched: {error}");
        }
        match self.process.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }
}

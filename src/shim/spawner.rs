use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::unix::pipe;

use super::child::{Child, Output, Shim};
use super::executable::Executable;
use super::fork_server::FORK;
use super::link::Link;
use super::passwd::{User, current_user};
use super::pool::Pool;
use super::server::{Server, ServerSocket};
use super::socket;
use super::wire::{self, Cause, NotStarted, Order, Program, Report, SpawnRequest};

/// How long a start that was given up may take to say whether it has happened. A shim that is so slow
/// is stopped; it is killed, and its tree with it.
const LAST_WORD: Duration = Duration::from_secs(2);

/// How many fork servers may die over one start: what kills each of them is no accident.
const MOST_TRIES: u32 = 3;

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Something of the job is missing or not allowed: trying again won't help.
    #[error("{0}")]
    Job(String),
    /// The machine has no process, descriptor or memory left: another host, or later, may do.
    #[error("the machine can't start any process now: {0}")]
    Exhausted(String),
    /// The deadline passed, or the start was given up, before anything was executed.
    #[error("the lease ended before the process could be started")]
    TooLate,
    /// Its preparation hangs, in the name service or a file system, and was given up. Nothing was executed.
    #[error("{0}")]
    Hung(String),
    /// Nobody knows whether anything was executed: its shim is gone, or was killed. What may be left of it is
    /// being killed.
    #[error("its shim is gone: some of it may have been done")]
    Vanished,
}

/// What starts jobs: a fork server, started again when it dies. Dropped, it ends, and with their channels
/// all jobs.
#[derive(Debug)]
pub struct Spawner {
    server: Server,
    /// Shims that are free.
    pool: Pool,
    /// Who the daemon runs as.
    user: User,
}

/// What one try came to.
enum Tried {
    Started(Box<Child>),
    /// The fork server died before it forked: nothing was executed.
    Unheard,
}

/// Both ends of what a child is connected by.
struct Connections {
    /// What the shim is told, and the descriptors that come along.
    message: Vec<u8>,
    theirs: Vec<OwnedFd>,
    output: Output,
    input: Option<pipe::Sender>,
}

impl Spawner {
    /// Starts the fork server, inside a runtime.
    ///
    /// # Errors
    /// When the system gives no process for it.
    pub fn start(executable: Executable) -> io::Result<Self> {
        let pool = Pool::default();
        Ok(Self { server: Server::start(executable, pool.clone())?, pool, user: current_user() })
    }

    /// Waits until fork servers are not started any more, which is a bug: no job can be started then.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn gone(&self) {
        self.server.gone().await;
    }

    /// Starts a job's process, below a shim of its own. Given up when `given_up` comes first.
    ///
    /// # Errors
    /// [`SpawnError`]: nothing runs. After [`SpawnError::Vanished`] something of it may have run, and may
    /// take a moment to be gone.
    ///
    /// What had started when it was given up is handed out, and is being killed.
    ///
    /// # Cancel safety
    /// Dropped, whatever was started is told to end.
    pub async fn spawn(&self, request: &SpawnRequest, given_up: impl Future<Output = ()>) -> Result<Child, SpawnError> {
        let mut given_up = std::pin::pin!(given_up);
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_to_spawn(request, given_up.as_mut()).await? {
                Tried::Started(child) => return Ok(*child),
                // Others may have died with it.
                Tried::Unheard if tries < MOST_TRIES => self.pool.clear(),
                Tried::Unheard => return Err(SpawnError::Exhausted("no shim could be forked".to_owned())),
            }
        }
    }

    async fn try_to_spawn(
        &self,
        request: &SpawnRequest,
        mut given_up: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Tried, SpawnError> {
        let connections = Connections::new(request, &self.user).map_err(exhausted)?;
        let mut shim = tokio::select! {
            biased;
            shim = self.shim() => shim.map_err(exhausted)?,
            () = &mut given_up => return Err(SpawnError::Exhausted("the fork server doesn't answer".to_owned())),
        };
        let Some(link) = &mut shim.link else { return Ok(Tried::Unheard) };
        if !link.hand_over(&connections.message, &connections.theirs).map_err(exhausted)? {
            return Ok(Tried::Unheard);
        }
        drop(connections.theirs);
        let started = tokio::select! {
            biased;
            started = wait_for_start(link) => started,
            () = given_up => give_up(link).await,
        };
        match started {
            Ok(Some(pid)) => {
                let pid = Pid::from_raw(pid).ok_or(SpawnError::Vanished)?;
                let Connections { output, input, .. } = connections;
                Ok(Tried::Started(Box::new(Child { shim, pid, output: Some(output), input })))
            }
            Ok(None) => {
                shim.link = None;
                Ok(Tried::Unheard)
            }
            Err(SpawnError::Vanished) => {
                shim.link = None;
                Err(SpawnError::Vanished)
            }
            Err(not_started) => {
                shim.give_back();
                Err(not_started)
            }
        }
    }

    /// A free shim, or a new one from the fork server that lives.
    async fn shim(&self) -> io::Result<Shim> {
        let pool = self.pool.clone();
        loop {
            let Some(server) = self.server.socket().await else {
                return Err(io::Error::other("the fork server is gone"));
            };
            if let Some(link) = pool.take(&server) {
                return Ok(Shim { link: Some(link), server, pool });
            }
            let (ours, theirs) = socket::pair()?;
            if send(&server, &theirs).await? {
                return Ok(Shim { link: Some(Link::new(ours)?), server, pool });
            }
            self.server.wait_for_another(&server).await;
        }
    }
}

/// Sends a shim's end of its channel to the fork server; false if that is gone.
async fn send(server: &ServerSocket, channel: &OwnedFd) -> io::Result<bool> {
    loop {
        let mut ready = server.writable().await?;
        match socket::send(ready.get_inner(), FORK, &[channel.as_fd()]) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Waits until the program is executed, or won't be; `None` if no shim was forked for it.
async fn wait_for_start(link: &mut Link) -> Result<Option<i32>, SpawnError> {
    loop {
        match link.next().await {
            Some(Report::Started { pid }) => return Ok(Some(pid)),
            Some(Report::NotStarted(why)) => return Err(why.into()),
            Some(_) => {}
            None if link.has_shim() => return Err(SpawnError::Vanished),
            None => return Ok(None),
        }
    }
}

/// Kills what is being started, and waits for its last word.
async fn give_up(link: &mut Link) -> Result<Option<i32>, SpawnError> {
    link.order(Order::Kill);
    let last_word = async {
        loop {
            match link.next().await {
                Some(Report::NotStarted(why)) => return Err(why.into()),
                // It was faster; it is killed now.
                Some(Report::Started { pid }) => return Ok(Some(pid)),
                None if link.has_shim() => return Err(SpawnError::Vanished),
                None => return Ok(None),
                Some(_) => {}
            }
        }
    };
    let last_word = tokio::time::timeout(LAST_WORD, last_word).await;
    last_word.unwrap_or_else(|_| {
        link.kill_shim();
        Err(SpawnError::Vanished)
    })
}

impl Connections {
    fn new(request: &SpawnRequest, user: &User) -> io::Result<Self> {
        let (stdout, stdout_theirs) = io::pipe()?;
        let (stderr, stderr_theirs) = io::pipe()?;
        let (message, memory) = wire::spawn(request, user)?;
        let mut theirs: Vec<OwnedFd> = memory.into_iter().collect();
        theirs.extend([stdout_theirs.into(), stderr_theirs.into()]);
        let input = match request.program {
            Program::Execute(_) => None,
            Program::WriteFiles(..) => {
                let (reader, ours): (PipeReader, PipeWriter) = io::pipe()?;
                theirs.push(reader.into());
                Some(pipe::Sender::from_owned_fd(ours.into())?)
            }
        };
        let output = Output {
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
        };
        Ok(Self { message, theirs, output, input })
    }
}

fn exhausted(error: io::Error) -> SpawnError {
    SpawnError::Exhausted(error.to_string())
}

impl From<NotStarted> for SpawnError {
    fn from(why: NotStarted) -> Self {
        match why.cause {
            Cause::Job => Self::Job(why.message),
            Cause::Exhausted => Self::Exhausted(why.message),
            Cause::TooLate => Self::TooLate,
            Cause::Hung => Self::Hung(why.message),
        }
    }
}

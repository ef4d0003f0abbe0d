use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::child::{Child, Output};
use super::group::Group;
use crate::clock::BootInstant;

/// How often deadlines are looked at when none is near: they move, and machines sleep.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What to start.
#[derive(Debug)]
pub struct SpawnRequest {
    /// Program and arguments; not empty.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: PathBuf,
    /// When the group is killed unless the deadline is moved. A request whose deadline has passed
    /// starts nothing.
    pub deadline: BootInstant,
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program or the directory is missing or not allowed: trying again won't help.
    #[error("can't start {program:?} in {directory:?}: {source}")]
    Program {
        /// The first argument.
        program: String,
        /// Where.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The machine has no process, descriptor or memory left: another host, or later, may do.
    #[error("the machine can't start any process now: {0}")]
    Exhausted(io::Error),
    /// The deadline passed before the start.
    #[error("the lease ended before the process could be started")]
    TooLate,
}

/// The one thread that starts jobs and enforces their deadlines. Dropped, it ends, and the kernel
/// kills what it started.
#[derive(Debug)]
pub struct Spawner {
    requests: mpsc::Sender<Request>,
}

#[derive(Debug)]
struct Request {
    spawn: SpawnRequest,
    answer: oneshot::Sender<Result<Started, SpawnError>>,
}

#[derive(Debug)]
struct Started {
    group: Group,
    pid: Pid,
    stdout: std::process::ChildStdout,
    stderr: std::process::ChildStderr,
}

impl Spawner {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel();
        thread::Builder::new().name("spawner".to_owned()).spawn(move || serve(&inbox))?;
        Ok(Self { requests })
    }

    /// Starts a job's process in a group of its own, with empty standard input.
    ///
    /// # Errors
    /// [`SpawnError`]: nothing runs.
    ///
    /// # Cancel safety
    /// Dropped, whatever was started is killed.
    pub async fn spawn(&self, spawn: SpawnRequest) -> Result<Child, SpawnError> {
        let (answer, started) = oneshot::channel();
        let gone = || SpawnError::Exhausted(io::Error::other("the spawner's thread is gone"));
        self.requests.send(Request { spawn, answer }).map_err(|_| gone())?;
        let started = started.await.map_err(|_| gone())??;
        started.watch().map_err(SpawnError::Exhausted)
    }
}

impl Started {
    fn watch(self) -> io::Result<Child> {
        let Self { group, pid, stdout, stderr } = self;
        let watch = || -> io::Result<(AsyncFd<_>, Output)> {
            let exited = watch_exit(pidfd_open(pid, PidfdFlags::NONBLOCK)?)?;
            let stdout = pipe::Receiver::from_owned_fd(stdout.into())?;
            let stderr = pipe::Receiver::from_owned_fd(stderr.into())?;
            Ok((exited, Output { stdout, stderr }))
        };
        match watch() {
            Ok((exited, output)) => Ok(Child { group, exited, output: Some(output), reaped: false }),
            Err(error) => {
                // It can't be watched, so it can't be let run.
                group.signal(Signal::KILL);
                group.reap();
                Err(error)
            }
        }
    }
}

/// Registers a process's descriptor with the runtime: it is readable once the process has exited.
fn watch_exit(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: `pidfd` owns its descriptor, and always answers with the same one until it is
    // dropped, which is after its registration.
    #[expect(unsafe_code, reason = "the caller has to promise that the descriptor stays open")]
    let registered = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
    registered.map_err(io::Error::from)
}

/// The thread: starts what is asked for, and kills what is overdue.
fn serve(inbox: &mpsc::Receiver<Request>) {
    let mut groups: Vec<Group> = Vec::new();
    loop {
        let mut wait = LOOK_AGAIN;
        groups.retain(|group| match group.enforce() {
            Some(deadline) => {
                wait = wait.min(deadline.remaining());
                true
            }
            None => false,
        });
        let Request { spawn, answer } = match inbox.recv_timeout(wait) {
            Ok(request) => request,
            Err(mpsc::RecvTimeoutError::Timeout) => continue,
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        match start(&spawn) {
            Ok(started) => {
                let group = started.group.clone();
                if answer.send(Ok(started)).is_err() {
                    group.signal(Signal::KILL);
                    group.reap();
                } else {
                    groups.push(group);
                }
            }
            Err(error) => {
                answer.send(Err(error)).ok();
            }
        }
    }
}

fn start(spawn: &SpawnRequest) -> Result<Started, SpawnError> {
    if spawn.deadline.has_passed() {
        return Err(SpawnError::TooLate);
    }
    let program = spawn.argv.first().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command
        .args(spawn.argv.iter().skip(1))
        .env_clear()
        .envs(spawn.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spawn.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    die_with_parent(&mut command);
    let mut process = command.spawn().map_err(|source| spawn_error(spawn, &program, source))?;
    let pid = Pid::from_child(&process);
    let stdout = process.stdout.take().expect("its standard output was asked for");
    let stderr = process.stderr.take().expect("its standard error was asked for");
    Ok(Started { group: Group::new(process, spawn.deadline), pid, stdout, stderr })
}

/// Lets the kernel kill the job when this thread, and so the daemon, ends.
fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let in_child = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The daemon may have died before the line above: then nobody would kill us.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::other("the daemon died"));
        }
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls may be made; these are three
    // system calls and no allocation on the way that succeeds.
    #[expect(unsafe_code, reason = "the only way to set the parent death signal before exec")]
    unsafe {
        command.pre_exec(in_child);
    }
}

fn spawn_error(spawn: &SpawnRequest, program: &str, source: io::Error) -> SpawnError {
    // fork(2), pipe(2): no process, descriptor or memory left.
    const EXHAUSTED: [i32; 4] = [
        rustix::io::Errno::AGAIN.raw_os_error(),
        rustix::io::Errno::MFILE.raw_os_error(),
        rustix::io::Errno::NFILE.raw_os_error(),
        rustix::io::Errno::NOMEM.raw_os_error(),
    ];
    if source.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code)) {
        return SpawnError::Exhausted(source);
    }
    SpawnError::Program { program: program.to_owned(), directory: spawn.directory.clone(), source }
}

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::child::{Child, Output};
use super::enforcer;
use super::group::Group;
use super::thread_end::{ThreadWatch, thread_end};
use crate::clock::BootInstant;

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
    /// It was started, and killed at once, because it can't be watched: some of it may have been done.
    #[error("killed right after its start, because it can't be watched: {0}")]
    Unwatched(io::Error),
    /// Its start hangs, in its directory or its program, and was given up. What comes of it late is
    /// killed.
    #[error("the start of {program:?} in {directory:?} hangs and was given up")]
    Hung {
        /// The first argument.
        program: String,
        /// Where.
        directory: PathBuf,
    },
}

/// The thread that starts jobs, and the one that enforces their deadlines. Dropped, both end, and
/// the kernel kills what was started.
#[derive(Debug)]
pub struct Spawner {
    requests: mpsc::Sender<Request>,
    threads: [ThreadWatch; 2],
}

#[derive(Debug)]
struct Request {
    spawn: SpawnRequest,
    answer: oneshot::Sender<Result<Started, SpawnError>>,
    progress: Arc<Progress>,
}

/// Whether a start has begun; given up before, it never will.
#[derive(Debug, Default)]
struct Progress(AtomicU8);

#[derive(Debug)]
struct Started {
    group: Group,
    pid: Pid,
    stdout: std::process::ChildStdout,
    stderr: std::process::ChildStderr,
}

impl Spawner {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel();
        let (enforcer_end, enforcer) = thread_end();
        let (spawner_end, spawner) = thread_end();
        let groups = enforcer::start(enforcer_end)?;
        thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            let _end = spawner_end;
            serve(&inbox, &groups);
        })?;
        Ok(Self { requests, threads: [spawner, enforcer] })
    }

    /// Waits until one of the threads is gone, which is a bug: nothing can be started safely then.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn gone(&self) {
        let [spawner, enforcer] = &self.threads;
        tokio::select! {
            () = spawner.ended() => {}
            () = enforcer.ended() => {}
        }
    }

    /// Starts a job's process in a group of its own, with empty standard input. Given up when
    /// `given_up` comes first.
    ///
    /// # Errors
    /// [`SpawnError`]: nothing runs. After [`SpawnError::Unwatched`] and [`SpawnError::Hung`]
    /// something of it may have run.
    ///
    /// # Cancel safety
    /// Dropped, whatever was started is killed.
    pub async fn spawn(&self, spawn: SpawnRequest, given_up: impl Future<Output = ()>) -> Result<Child, SpawnError> {
        let (answer, started) = oneshot::channel();
        let gone = || SpawnError::Exhausted(io::Error::other("the spawner's thread is gone"));
        let progress = Arc::<Progress>::default();
        let hung = SpawnError::Hung {
            program: spawn.argv.first().cloned().unwrap_or_default(),
            directory: spawn.directory.clone(),
        };
        self.requests.send(Request { spawn, answer, progress: progress.clone() }).map_err(|_| gone())?;
        let started = tokio::select! {
            biased;
            started = started => started.map_err(|_| gone())??,
            () = given_up => {
                let waited = "the start of another process hangs";
                return Err(if progress.give_up() { SpawnError::Exhausted(io::Error::other(waited)) } else { hung });
            }
        };
        started.watch().map_err(SpawnError::Unwatched)
    }
}

impl Progress {
    const BEGUN: u8 = 1;
    const GIVEN_UP: u8 = 2;

    /// Whether it may begin: nobody has given it up.
    fn begin(&self) -> bool {
        self.0.compare_exchange(0, Self::BEGUN, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether it was given up before it began.
    fn give_up(&self) -> bool {
        self.0.compare_exchange(0, Self::GIVEN_UP, Ordering::SeqCst, Ordering::SeqCst).is_ok()
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

/// The thread: starts what is asked for.
fn serve(inbox: &mpsc::Receiver<Request>, groups: &mpsc::Sender<Group>) {
    while let Ok(Request { spawn, answer, progress }) = inbox.recv() {
        if !progress.begin() {
            continue;
        }
        let started = start(&spawn);
        let group = started.as_ref().ok().map(|started| started.group.clone());
        let was_taken = answer.send(started).is_ok();
        let Some(group) = group else { continue };
        // Nobody enforces its deadline, or nobody waits for it: it can't be let run.
        if groups.send(group.clone()).is_err() || !was_taken {
            group.signal(Signal::KILL);
            group.reap();
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
    right_before_exec(&mut command, spawn.deadline);
    let mut process = command.spawn().map_err(|source| spawn_error(spawn, &program, source))?;
    let pid = Pid::from_child(&process);
    let stdout = process.stdout.take().expect("its standard output was asked for");
    let stderr = process.stderr.take().expect("its standard error was asked for");
    Ok(Started { group: Group::new(process, spawn.deadline), pid, stdout, stderr })
}

/// Lets the kernel kill the job when this thread, and so the daemon, ends; and starts nothing that
/// took too long to come this far.
fn right_before_exec(command: &mut Command, deadline: BootInstant) {
    let parent = rustix::process::getpid();
    let in_child = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The daemon may have died before the line above: then nobody would kill us.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::other("the daemon died"));
        }
        if deadline.has_passed() {
            return Err(rustix::io::Errno::TIMEDOUT.into());
        }
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls may be made; these are four
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
    if spawn.deadline.has_passed() {
        return SpawnError::TooLate;
    }
    SpawnError::Program { program: program.to_owned(), directory: spawn.directory.clone(), source }
}

#[cfg(test)]
mod tests;

//! What happens in the job's own process before its program is executed: everything that may hang or
//! fail for the job's own reasons, and nothing that a daemon or a guard should wait for.
//!
//! In this order, since each step needs what the one after it takes away: session, account (the name
//! service may be far away), limits and niceness (only root may raise them), groups and user, then as that
//! user umask, directory, `env_file`, standard input. Right before the program it looks at the deadline and at the
//! daemon's channel; then it says that it executes, and does. What has not said so has executed nothing.

mod account;
mod environment;
mod limits;
mod program;

use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};

use super::passwd::User;
use super::signals;
use super::socket::{self, Received};
use super::wire::{Cause, Handed, NotStarted, Program, SpawnRequest, encode};
use super::writer::write_files;
use crate::job::{OutputKeep, Stdin};
use account::Account;

/// What a job's process says to its shim: that it executes its program next, or that the shim has to say whether, for
/// the daemon has ordered something meanwhile; and the shim's answer.
pub(super) const EXECUTING: &[u8] = b"executing";
pub(super) const READY: &[u8] = b"ready";
pub(super) const GO: &[u8] = b"go";

/// The exit code of a process that executed nothing; its guard hears why.
const NOT_EXECUTED: i32 = 127;

/// The job's ends of its streams.
#[derive(Debug)]
pub(super) struct Streams {
    /// Its standard input; `None` for what the request says.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// What a step could not do.
#[derive(Debug)]
struct Failed {
    what: String,
    error: io::Error,
}

/// A program that is ready to be executed.
struct Prepared {
    argv: Vec<CString>,
    env: Vec<(String, String)>,
}

/// The whole life of the job's process up to its program. Returns its exit code if that was not executed.
pub(super) fn main(handed: &Handed, streams: Streams, guard: OwnedFd, channel: Option<&OwnedFd>) -> i32 {
    match launch(handed, streams, &guard, channel) {
        Ok(Launched::Writer(path, keep)) => {
            // The guard takes its end for the execution of a program.
            drop(guard);
            write_to(path, keep)
        }
        Err(failure) => {
            // A guard that is gone has killed us, or will.
            socket::send(&guard, &encode(&failure), &[]).ok();
            NOT_EXECUTED
        }
    }
}

/// What goes on in this process; an executed program doesn't.
enum Launched<'a> {
    Writer(&'a Path, &'a OutputKeep),
}

fn launch<'a>(
    handed: &'a Handed,
    streams: Streams,
    guard: &OwnedFd,
    channel: Option<&OwnedFd>,
) -> Result<Launched<'a>, NotStarted> {
    let request = &handed.request;
    let prepared = prepare(request, &handed.daemon, streams).map_err(|failed| not_started(request, &failed))?;
    let is_quiet = channel.is_some_and(|channel| !has_something(channel));
    if !is_quiet && !wait_for_go(guard) || request.deadline.has_passed() {
        return Err(NotStarted::too_late());
    }
    if socket::send(guard, EXECUTING, &[]).is_err() {
        return Err(NotStarted::too_late());
    }
    match &request.program {
        Program::Execute(_) => Err(not_started(request, &program::execute(&prepared.argv, &prepared.env))),
        Program::WriteFiles(path, keep) => Ok(Launched::Writer(path, keep)),
    }
}

fn write_to(path: &Path, keep: &OutputKeep) -> i32 {
    // A daemon that doesn't listen any more is an error of a write.
    signals::ignore_broken_pipes();
    match write_files(io::stdin().lock(), path, keep) {
        Ok(_) => 0,
        Err(error) => {
            // Standard error is the daemon's to read; without a reader there is nobody to tell.
            writeln!(io::stderr(), "{}: {error}", path.display()).ok();
            1
        }
    }
}

fn prepare(request: &SpawnRequest, daemon: &User, streams: Streams) -> Result<Prepared, Failed> {
    let setup = &request.setup;
    rustix::process::setsid().or_failed("make a session")?;
    let account = Account::of(setup.user.as_deref(), setup.group.as_deref(), daemon)?;
    limits::nice(setup.nice)?;
    limits::set(&setup.limits)?;
    account.assume()?;
    limits::set_memory(&setup.limits)?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(setup.umask.0.into()));
    let directory = request.directory.as_deref().unwrap_or(&account.home);
    rustix::process::chdir(directory).or_failed_with(|| format!("enter the directory {directory:?}"))?;
    let env = environment::merge(request, &account)?;
    let argv = match &request.program {
        Program::Execute(argv) => {
            argv.iter().map(|argument| environment::c_string(argument)).collect::<Result<_, _>>()?
        }
        Program::WriteFiles(..) => Vec::new(),
    };
    connect(streams, &setup.stdin)?;
    signals::unblock().or_failed("unblock the signals")?;
    Ok(Prepared { argv, env })
}

/// Puts the streams where a program looks for them.
fn connect(streams: Streams, stdin: &Stdin) -> Result<(), Failed> {
    let input = match (streams.stdin, stdin) {
        (Some(given), _) => given,
        (None, Stdin::Empty) => open_to_read(Path::new("/dev/null"))?,
        (None, Stdin::File(path)) => open_to_read(path)?,
        (None, Stdin::Text(text)) => in_memory(text).or_failed("keep the standard input in memory")?,
    };
    rustix::stdio::dup2_stdin(&input).or_failed("connect the standard input")?;
    rustix::stdio::dup2_stdout(&streams.stdout).or_failed("connect the standard output")?;
    rustix::stdio::dup2_stderr(&streams.stderr).or_failed("connect the standard error")?;
    Ok(())
}

fn open_to_read(path: &Path) -> Result<OwnedFd, Failed> {
    let file = std::fs::File::open(path).or_failed_with(|| format!("open {path:?} for the standard input"))?;
    Ok(file.into())
}

/// A text of any length, which no pipe would take before somebody reads.
fn in_memory(text: &str) -> io::Result<OwnedFd> {
    use std::io::Seek;
    let memory = rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Whether the daemon has ordered something that the shim may not have seen yet, or is gone.
fn has_something(channel: &OwnedFd) -> bool {
    const AT_ONCE: rustix::fs::Timespec = rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut readable = [PollFd::new(channel, PollFlags::IN)];
    !matches!(poll(&mut readable, Some(&AT_ONCE)), Ok(0))
}

/// Tells the guard that all is prepared and waits for its word; false if there will be none.
fn wait_for_go(guard: &OwnedFd) -> bool {
    if socket::send(guard, READY, &[]).is_err() {
        return false;
    }
    loop {
        match socket::receive(guard) {
            Ok(Received::Message(message, _)) => return message == GO,
            Ok(Received::Nothing) => {
                let mut readable = [PollFd::new(guard, PollFlags::IN)];
                if poll(&mut readable, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
                    return false;
                }
            }
            Ok(Received::Closed) | Err(_) => return false,
        }
    }
}

/// Whether something of the job is to blame, or the machine.
fn not_started(request: &SpawnRequest, failed: &Failed) -> NotStarted {
    let limits = &request.setup.limits;
    let cause = match failed.error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        // Its own limit of processes or memory, or its own size.
        Some(rustix::io::Errno::AGAIN) if limits.processes.is_some() => Cause::Job,
        Some(rustix::io::Errno::NOMEM) if limits.memory.is_some() => Cause::Job,
        Some(rustix::io::Errno::MFILE) if limits.open_files.is_some() => Cause::Job,
        Some(errno) if is_exhaustion(errno) => Cause::Exhausted,
        _ => Cause::Job,
    };
    NotStarted::new(cause, format!("can't {}: {}", failed.what, failed.error))
}

/// fork(2), open(2), execve(2): no process, descriptor or memory left.
pub(super) fn is_exhaustion(errno: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM].contains(&errno)
}

/// Names the step that failed.
trait OrFailed<T> {
    fn or_failed_with(self, what: impl FnOnce() -> String) -> Result<T, Failed>;

    fn or_failed(self, what: &str) -> Result<T, Failed>
    where
        Self: Sized,
    {
        self.or_failed_with(|| what.to_owned())
    }
}

impl<T, E: Into<io::Error>> OrFailed<T> for Result<T, E> {
    fn or_failed_with(self, what: impl FnOnce() -> String) -> Result<T, Failed> {
        self.map_err(|error| Failed { what: what(), error: error.into() })
    }
}

/// A step that failed by its own judgement.
fn refused(what: String, why: &str) -> Failed {
    Failed { what, error: io::Error::other(why.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_jobs_own_limits_refuse_is_not_the_machines_fault() {
        let mut request = SpawnRequest {
            program: Program::Execute(vec!["true".to_owned()]),
            base_env: Vec::new(),
            env: Vec::new(),
            directory: None,
            setup: crate::job::ProcessSetup::default(),
            deadline: crate::clock::BootInstant::NEVER,
            kill_grace: std::time::Duration::ZERO,
            start_within: std::time::Duration::ZERO,
        };
        let again = || Failed { what: "execute".to_owned(), error: rustix::io::Errno::AGAIN.into() };
        assert_eq!(not_started(&request, &again()).cause, Cause::Exhausted);
        request.setup.limits.processes = Some(1);
        assert_eq!(not_started(&request, &again()).cause, Cause::Job);
    }

    #[test]
    fn a_text_is_read_from_its_start() {
        let mut text = String::new();
        io::Read::read_to_string(&mut std::fs::File::from(in_memory("one\ntwo").unwrap()), &mut text).unwrap();
        assert_eq!(text, "one\ntwo");
    }
}

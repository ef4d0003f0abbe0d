use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::group::Group;
use crate::clock::BootInstant;

/// How often a process is asked after that can't be watched.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// A job's process and its group. Dropped before [`Child::reap`], the group is killed.
#[derive(Debug)]
pub struct Child {
    pub(super) group: Group,
    /// Readable once the process has exited (`pidfd_open(2)`).
    pub(super) exited: AsyncFd<OwnedFd>,
    pub(super) output: Option<Output>,
    pub(super) reaped: bool,
}

/// Where the job's output comes from.
#[derive(Debug)]
pub struct Output {
    /// Its standard output.
    pub stdout: pipe::Receiver,
    /// Its standard error.
    pub stderr: pipe::Receiver,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Child {
    /// The output, to be taken once.
    pub fn take_output(&mut self) -> Option<Output> {
        self.output.take()
    }

    /// Waits until the job's own process has exited; its pipes may still be open elsewhere.
    ///
    /// If the runtime can't watch it any more it is killed, and asked after from time to time.
    ///
    /// # Cancel safety
    /// Safe: the process is reaped by [`Child::reap`] alone.
    pub async fn exited(&self) {
        if self.exited.readable().await.is_ok() {
            return;
        }
        self.kill();
        while !self.group.has_exited() {
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Asks the whole group to end: TERM, and CONT for those that are stopped.
    pub fn terminate(&self) {
        self.group.signal(Signal::TERM);
        self.group.signal(Signal::CONT);
    }

    /// Kills the whole group.
    pub fn kill(&self) {
        self.group.signal(Signal::KILL);
    }

    /// Moves the instant at which the group is killed by itself. It only rises, and not once
    /// killing began.
    pub fn move_deadline(&self, to: BootInstant) {
        self.group.move_deadline(to);
    }

    /// Kills what the job left behind in its group and reaps it. Call it after [`Child::exited`].
    pub fn reap(mut self) -> Exit {
        self.reaped = true;
        Exit::of(self.group.reap())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        }
    }
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

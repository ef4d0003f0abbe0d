use rustix::process::Pid;
use tokio::net::unix::pipe;

use super::link::Link;
use super::pool::Pool;
use super::server::ServerSocket;
use super::wire::{Ended, Order, Report, Survivors};
use crate::clock::BootInstant;

/// A job's process and its whole tree, as the daemon has them. Dropped before it has ended, the tree is
/// killed.
#[derive(Debug)]
pub struct Child {
    pub(super) shim: Shim,
    pub(super) pid: Pid,
    pub(super) output: Option<Output>,
    pub(super) input: Option<pipe::Sender>,
}

/// A shim at work, until it is free for the next run.
#[derive(Debug)]
pub(super) struct Shim {
    /// `None` once it is given back, or gone.
    pub(super) link: Option<Link>,
    pub(super) server: ServerSocket,
    pub(super) pool: Pool,
}

/// Where the job's output comes from.
#[derive(Debug)]
pub struct Output {
    /// Its standard output.
    pub stdout: pipe::Receiver,
    /// Its standard error.
    pub stderr: pipe::Receiver,
}

/// What happens to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// Its own process has ended, and others of its tree have not: they are told to end.
    LeftBehind(Survivors),
    /// Killed processes don't die. Their tree is not gone until [`ChildEvent::Ended`].
    Unkillable(Survivors),
    /// No process of its tree is left.
    Ended(Ended),
    /// Its shim is gone without a word; whatever is left of the tree is killed by the fork server, and
    /// nobody says when that is done.
    Vanished,
}

impl Child {
    /// The number of the job's own process, to be shown: it is never signalled by it.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The output, to be taken once.
    pub fn take_output(&mut self) -> Option<Output> {
        self.output.take()
    }

    /// The standard input of a [`Program::WriteFiles`](super::Program::WriteFiles), to be taken once.
    pub fn take_input(&mut self) -> Option<pipe::Sender> {
        self.input.take()
    }

    /// Waits for what happens next. After [`ChildEvent::Ended`] or [`ChildEvent::Vanished`] it is over, and
    /// this answers [`ChildEvent::Vanished`].
    ///
    /// # Cancel safety
    /// Safe: an event is taken or it is not.
    pub async fn next(&mut self) -> ChildEvent {
        loop {
            let Some(link) = &mut self.shim.link else { return ChildEvent::Vanished };
            let event = match link.next().await {
                Some(Report::LeftBehind(survivors)) => ChildEvent::LeftBehind(survivors),
                Some(Report::Unkillable(survivors)) => ChildEvent::Unkillable(survivors),
                Some(Report::Ended(ended)) => {
                    self.shim.give_back();
                    ChildEvent::Ended(ended)
                }
                None => {
                    self.shim.link = None;
                    ChildEvent::Vanished
                }
                // Said before the child was handed out.
                Some(Report::Ready | Report::Started { .. } | Report::NotStarted(_)) => continue,
            };
            return event;
        }
    }

    /// Tells the whole tree to end: TERM now, and CONT for those that are stopped; KILL at `kill_at`, or at
    /// the deadline if that comes first.
    pub fn terminate(&self, kill_at: BootInstant) {
        self.shim.order(Order::Terminate(kill_at));
    }

    /// Kills the whole tree.
    pub fn kill(&self) {
        self.shim.order(Order::Kill);
    }

    /// Moves the deadline. It only rises, and not once killing began.
    pub fn move_deadline(&self, to: BootInstant) {
        self.shim.order(Order::Deadline(to));
    }

    /// Kills a shim that does not do its work, because somebody has stopped it; the fork server kills
    /// what it leaves.
    pub fn kill_shim(&self) {
        self.shim.kill();
    }

    /// Closes the channel as the end of the daemon would: the shim acts by itself from now on.
    pub fn close_channel(mut self) {
        self.shim.link = None;
    }
}

impl Shim {
    fn order(&self, order: Order) {
        if let Some(link) = &self.link {
            link.order(order);
        }
    }

    pub(super) fn kill(&self) {
        if let Some(link) = &self.link {
            link.kill_shim();
        }
    }

    /// It has nothing to do any more, and can have the next run.
    pub(super) fn give_back(&mut self) {
        if let Some(link) = self.link.take() {
            self.pool.give_back(link, self.server.clone());
        }
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        self.order(Order::Kill);
    }
}

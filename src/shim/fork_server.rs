//! The fork server: a process with one thread, executed once at the daemon's start, that forks shims. It is
//! small, so that a fork costs little, and knows nothing of runs: a shim hears over its own channel what it is to
//! do.
//!
//! It is the subreaper of its shims: one that ends in any other way than seeing its tree to the end leaves
//! that tree to the fork server, which kills it. When the daemon is gone it stays until all shims are.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::cgroup::Delegated;
use super::fork::fork;
use super::guard;
use super::socket::{self, Received};
use super::wire::Exit;
use super::{signals, tree};

/// How often shims are told to go on once the daemon is gone, in case somebody has stopped one.
const CONTINUE_AGAIN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How often orphans are killed again while there are any.
const KILL_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// What the daemon sends with a shim's end of its channel.
pub(super) const FORK: &[u8] = b"fork 1";

struct ForkServer {
    /// `None` once the daemon is gone.
    socket: Option<OwnedFd>,
    children: SignalFd,
    shims: HashSet<Pid>,
    delegated: Option<Delegated>,
    /// Shims that may have left processes, which are ours to kill.
    orphans_of: Vec<Pid>,
}

/// The whole life of the fork server. `socket` leads to the daemon.
pub(super) fn main(socket: OwnedFd) -> io::Result<()> {
    // An error means that the kernel has no name for it.
    rustix::thread::set_name(c"cronlatch-fork").ok();
    let children = signals::block_all_but_children()?;
    signals::reset()?;
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let mut server = ForkServer {
        socket: Some(socket),
        children,
        shims: HashSet::new(),
        delegated: Delegated::find(),
        orphans_of: Vec::new(),
    };
    server.serve()
}

impl ForkServer {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.wait()?;
            signals::drain(&self.children);
            let is_alone = self.reap()?;
            if !self.orphans_of.is_empty() {
                self.kill_orphans();
            }
            self.hear_daemon()?;
            if self.socket.is_none() {
                self.let_shims_go_on();
            }
            if self.socket.is_none() && is_alone {
                return Ok(());
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let mut sources = vec![PollFd::new(&self.children, PollFlags::IN)];
        sources.extend(self.socket.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
        let timeout = match (!self.orphans_of.is_empty(), &self.socket) {
            (true, _) => Some(&KILL_AGAIN),
            (false, None) => Some(&CONTINUE_AGAIN),
            (false, Some(_)) => None,
        };
        match poll(&mut sources, timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaps who has ended; whether no child is left.
    fn reap(&mut self) -> io::Result<bool> {
        let reaping = tree::reap()?;
        for ended in &reaping.ended {
            if self.shims.remove(&ended.pid) && ended.exit != Exit::Code(0) {
                self.orphans_of.push(ended.pid);
            }
        }
        if !self.orphans_of.is_empty() && (reaping.is_alone || tree::survivors(&self.shims).count == 0) {
            self.clear_groups();
            self.orphans_of.clear();
        }
        Ok(reaping.is_alone)
    }

    fn kill_orphans(&self) {
        self.clear_groups();
        tree::signal(Signal::KILL, &self.shims);
    }

    fn clear_groups(&self) {
        if let Some(delegated) = &self.delegated {
            self.orphans_of.iter().for_each(|shim| delegated.clear(*shim));
        }
    }

    /// A stopped shim sees neither that the daemon is gone nor its deadline, and nobody else will kill it.
    fn let_shims_go_on(&self) {
        for shim in &self.shims {
            // Our own child, not reaped yet: the number is its own.
            kill_process(*shim, Signal::CONT).ok();
        }
    }

    fn hear_daemon(&mut self) -> io::Result<()> {
        while let Some(socket) = &self.socket {
            match socket::receive(socket)? {
                Received::Nothing => return Ok(()),
                Received::Closed => self.socket = None,
                Received::Message(message, descriptors) if message == FORK => self.fork(descriptors),
                // Of another version: its channel closes, which the daemon takes for a start that never was.
                Received::Message(..) => {}
            }
        }
        Ok(())
    }

    /// Forks a shim. Its channel is closed here in any case, or nobody would ever see its end.
    fn fork(&mut self, descriptors: Vec<OwnedFd>) {
        let Some(channel) = descriptors.into_iter().next() else { return };
        // Nor does a shim keep what is the fork server's.
        let socket = &mut self.socket;
        let delegated = self.delegated.as_ref();
        let forked = fork(None, || {
            *socket = None;
            guard::main(channel, delegated)
        });
        // Without a shim the channel has closed without a word, and the daemon knows.
        if let Ok(pid) = forked {
            self.shims.insert(pid);
        }
    }
}

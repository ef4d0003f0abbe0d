//! The shim itself: a process with one thread between the daemon and one job.
//!
//! It is the subreaper of the job's whole tree, has a channel of its own to the daemon, and knows the
//! deadline. It ends when no process of the tree is left, and says so; as long as it lives, the tree may
//! live. Whatever happens to daemon and fork server, it acts by itself: TERM `kill_grace` before the deadline or
//! when the channel closes, KILL at the deadline at the latest. Its clock is `CLOCK_BOOTTIME`, which goes
//! on while the machine sleeps.

mod lifetime;
mod timer;
mod watch;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::cgroup::{Delegated, RunGroup};
use super::fork::fork;
use super::launch::{self, Streams};
use super::signals;
use super::socket::{self, Received};
use super::wire::{self, Handed, NotStarted, Report, ToShim, decode, encode};
use timer::Timer;
use watch::Watch;

/// The whole life of a shim. Its exit code is 0 if it has seen all of its trees to their ends; with any other,
/// its reaper has to.
pub(super) fn main(channel: OwnedFd, delegated: Option<&Delegated>) -> i32 {
    match serve(channel, delegated) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// One run after the other, until the daemon closes the channel: a shim that has seen a tree to its end is as good
/// as a new one, and forking one costs half of a short run (measured).
fn serve(channel: OwnedFd, delegated: Option<&Delegated>) -> io::Result<()> {
    // An error means that the kernel has no name for it.
    rustix::thread::set_name(c"cronlatch-shim").ok();
    rustix::process::setsid()?;
    let children = signals::block_all_but_children()?;
    let timer = Timer::new()?;
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let itself = pidfd_open(getpid(), PidfdFlags::empty())?;
    // A daemon that is gone is seen below.
    socket::send(&channel, &encode(&Report::Ready), &[itself.as_fd()]).ok();
    drop(itself);
    let mut shim = Shim { channel: Some(channel), children, timer, delegated, group: None };
    while let Some(open) = &shim.channel {
        match socket::receive(open)? {
            Received::Nothing => wait_for(open)?,
            Received::Closed => return Ok(()),
            Received::Message(message, descriptors) => match decode(&message)? {
                ToShim::Spawn(handed) => shim.run(handed, descriptors)?,
                // Ordered for a run that has ended meanwhile.
                ToShim::Order(_) => {}
            },
        }
    }
    Ok(())
}

/// What outlives a run.
struct Shim<'a> {
    /// `None` once the daemon is gone.
    channel: Option<OwnedFd>,
    children: SignalFd,
    timer: Timer,
    delegated: Option<&'a Delegated>,
    /// Where the processes of its runs are, where there are cgroups.
    group: Option<RunGroup>,
}

impl Shim<'_> {
    /// One run, from its request to the end of its tree.
    fn run(&mut self, handed: Option<Box<Handed>>, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| io::Error::other("a descriptor is missing"));
        let handed = match handed {
            Some(handed) => *handed,
            None => wire::read(next()?)?,
        };
        let (stdout, stderr) = (next()?, next()?);
        let streams = Streams { stdin: next().ok(), stdout, stderr };
        self.prepare_group();
        match self.start(&handed, streams) {
            Ok((job, link)) => Watch::new(self, &handed.request, job, link).see_out(),
            Err(why) => {
                self.report(&Report::NotStarted(why));
                Ok(())
            }
        }
    }

    /// Without a group the tree is killed by walking it.
    fn prepare_group(&mut self) {
        if !self.group.as_ref().is_some_and(RunGroup::is_fresh) {
            // Removed before its name is used again.
            self.group = None;
            self.group = self.delegated.and_then(|delegated| delegated.make(getpid()).ok());
        }
    }

    fn start(&self, handed: &Handed, streams: Streams) -> Result<(Pid, OwnedFd), NotStarted> {
        if handed.request.deadline.has_passed() {
            return Err(NotStarted::too_late());
        }
        let forked = socket::pair().and_then(|(link, theirs)| {
            // The child's copies of everything that is only ours are closed on exec.
            let group = self.group.as_ref().map(AsFd::as_fd);
            let job = fork(group, || launch::main(handed, streams, theirs, self.channel.as_ref()))?;
            Ok((job, link))
        });
        forked.map_err(|error| NotStarted::exhausted("start a process", &error))
    }

    /// Says something to the daemon. One that doesn't read has been told enough; one that is gone is noticed
    /// where it is listened to.
    fn report(&self, report: &Report) {
        if let Some(channel) = &self.channel {
            socket::send(channel, &encode(report), &[]).ok();
        }
    }
}

fn wait_for(channel: &OwnedFd) -> io::Result<()> {
    match poll(&mut [PollFd::new(channel, PollFlags::IN)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

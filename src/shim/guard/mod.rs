//! The shim itself: a process with one thread between the daemon and one job.
//!
//! It is the subreaper of the job's whole tree, has a channel of its own to the daemon, and knows the
//! deadline. It ends when no process of the tree is left, and says so; as long as it lives, the tree may
//! live. Whatever happens to daemon and fork server, it acts by itself: TERM `kill_grace` before the deadline or
//! when the channel closes, KILL at the deadline at the latest. Its clock is `CLOCK_BOOTTIME`, which goes
//! on while the machine sleeps.

mod lifetime;
mod timer;

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open};

use super::fork::fork;
use super::launch::{self, GO, READY, Streams};
use super::socket::{self, Received};
use super::tree::Usage;
use super::wire::{Cause, Ended, Exit, Handed, NotStarted, Order, Report, SpawnRequest, decode, encode};
use super::{signals, tree};
use crate::clock::BootInstant;
use lifetime::{Act, Lifetime};
use timer::Timer;

/// How often killing is done again while anything lives: what is killed is gone in far less, what forks
/// is seen again, and what can't be killed costs no more than this.
const KILL_AGAIN: Duration = Duration::from_millis(5);
const KILL_AGAIN_AT_MOST: Duration = Duration::from_secs(1);

/// How long killed processes may take to die before it is said.
const UNKILLABLE_AFTER: Duration = Duration::from_secs(2);

/// How far the job's own process has come.
enum Phase {
    /// It prepares; `by` then it is given up.
    Preparing { link: OwnedFd, by: BootInstant },
    /// It was told to go on; the link closes when its program is executed.
    Executing { link: OwnedFd },
    /// Its program is executed.
    Running,
    /// It was never executed, for this reason.
    Failed(NotStarted),
}

struct Guard<'a> {
    /// `None` once the daemon is gone.
    channel: Option<OwnedFd>,
    children: &'a SignalFd,
    timer: &'a Timer,
    lifetime: Lifetime,
    phase: Phase,
    job: Pid,
    exit: Option<Exit>,
    usage: Usage,
    /// When it was first killed, and the pause until it is killed again.
    killing: Option<Killing>,
    said_left_behind: bool,
}

struct Killing {
    since: BootInstant,
    again_at: BootInstant,
    pause: Duration,
    said: bool,
}

/// The whole life of a shim. Its exit code is 0 if it has seen all of its trees to their ends; with any other,
/// its reaper has to.
pub(super) fn main(channel: OwnedFd) -> i32 {
    match serve(channel) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// One run after the other, until the daemon closes the channel: a shim that has seen a tree to its end is as good
/// as a new one, and forking one costs half of a short run (measured).
fn serve(channel: OwnedFd) -> io::Result<()> {
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
    let mut channel = Some(channel);
    while let Some(open) = &channel {
        match socket::receive(open)? {
            Received::Nothing => wait_for(open)?,
            Received::Closed => return Ok(()),
            Received::Message(message, descriptors) => {
                // What was ordered for a run that has ended meanwhile is no matter.
                if decode::<Order>(&message)? == Order::Spawn {
                    channel = run(&mut channel, &children, &timer, descriptors)?;
                }
            }
        }
    }
    Ok(())
}

/// One run. Gives the channel back if the daemon is still there.
fn run(
    channel: &mut Option<OwnedFd>,
    children: &SignalFd,
    timer: &Timer,
    descriptors: Vec<OwnedFd>,
) -> io::Result<Option<OwnedFd>> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next();
    let (Some(request), Some(stdout), Some(stderr)) = (next(), next(), next()) else {
        return Err(io::Error::other("a spawn comes with three descriptors"));
    };
    let streams = Streams { stdin: next(), stdout, stderr };
    let handed = super::wire::unwrap(request)?;
    let started = start(&handed, streams);
    let phase = match started {
        Ok((job, link)) => (job, Phase::Preparing { link, by: BootInstant::now() + handed.request.start_within }),
        Err(why) => {
            if let Some(channel) = &channel {
                // A daemon that is gone is seen where it is listened to.
                socket::send(channel, &encode(&Report::NotStarted(why)), &[]).ok();
            }
            return Ok(channel.take());
        }
    };
    let (job, phase) = phase;
    let mut guard = Guard {
        channel: channel.take(),
        children,
        timer,
        lifetime: Lifetime::new(handed.request.deadline, handed.request.kill_grace),
        phase,
        job,
        exit: None,
        usage: Usage::default(),
        killing: None,
        said_left_behind: false,
    };
    guard.see_to_the_end(&handed.request)?;
    Ok(guard.channel)
}

fn start(handed: &Handed, streams: Streams) -> Result<(Pid, OwnedFd), NotStarted> {
    if handed.request.deadline.has_passed() {
        return Err(NotStarted::too_late());
    }
    let forked = socket::pair().and_then(|(link, theirs)| {
        // The child's copies of everything that is only ours are closed on exec.
        let job = fork(|| launch::main(handed, streams, theirs))?;
        Ok((job, link))
    });
    forked.map_err(|error| NotStarted::exhausted("start a process", &error))
}

fn wait_for(channel: &OwnedFd) -> io::Result<()> {
    match poll(&mut [PollFd::new(channel, PollFlags::IN)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Guard<'_> {
    /// Everything that can happen, until no process of the tree is left.
    fn see_to_the_end(&mut self, request: &SpawnRequest) -> io::Result<()> {
        loop {
            let act = self.lifetime.look(BootInstant::now());
            self.act(act);
            if self.reap(request)? {
                return Ok(());
            }
            self.wait()?;
            signals::drain(self.children);
            self.hear_daemon()?;
            self.hear_job(request);
        }
    }

    fn act(&mut self, act: Act) {
        let before_exec = matches!(self.phase, Phase::Preparing { .. });
        match act {
            Act::Nothing => {}
            // A process that prepares has nothing of the job's to end in peace.
            Act::Terminate if before_exec => self.fail(NotStarted::too_late()),
            Act::Terminate => {
                tree::signal(Signal::TERM, &HashSet::new());
                // Who is stopped gets no TERM before it goes on.
                tree::signal(Signal::CONT, &HashSet::new());
            }
            Act::Kill if before_exec => self.fail(NotStarted::too_late()),
            Act::Kill => self.kill(),
        }
    }

    /// Kills the tree, now and, more and more rarely, as long as anything of it lives.
    fn kill(&mut self) {
        let now = BootInstant::now();
        let killing = self.killing.get_or_insert(Killing { since: now, again_at: now, pause: KILL_AGAIN, said: false });
        if now < killing.again_at {
            return;
        }
        killing.again_at = now + killing.pause;
        killing.pause = (killing.pause * 2).min(KILL_AGAIN_AT_MOST);
        tree::signal(Signal::KILL, &HashSet::new());
        if !killing.said && now.since(killing.since) > UNKILLABLE_AFTER {
            killing.said = true;
            self.report(&Report::Unkillable(tree::survivors(&HashSet::new())));
        }
    }

    /// Nothing was executed: what was forked for it is killed.
    fn fail(&mut self, why: NotStarted) {
        self.phase = Phase::Failed(why);
        self.lifetime.obey(Order::Kill);
        self.kill();
    }

    /// Reaps who has ended; true once nobody is left and that is said.
    fn reap(&mut self, request: &SpawnRequest) -> io::Result<bool> {
        let reaping = tree::reap()?;
        reaping.ended.iter().for_each(|ended| self.usage.add(&ended.usage));
        if let Some(own) = reaping.ended.iter().find(|ended| ended.pid == self.job) {
            // What it said before its end is heard first.
            self.hear_job(request);
            self.exit = Some(own.exit);
            self.own_process_ended(own.exit);
        }
        if reaping.is_alone {
            self.say_end();
            return Ok(true);
        }
        if self.exit.is_some() && !self.said_left_behind && matches!(self.phase, Phase::Running) {
            self.said_left_behind = true;
            let survivors = tree::survivors(&HashSet::new());
            if survivors.count > 0 {
                self.report(&Report::LeftBehind(survivors));
                let act = self.lifetime.left_behind(BootInstant::now());
                self.act(act);
            }
        }
        Ok(false)
    }

    fn own_process_ended(&mut self, exit: Exit) {
        match &self.phase {
            Phase::Preparing { .. } => {
                let how = match exit {
                    Exit::Code(code) => format!("exit code {code}"),
                    Exit::Signal(signal) => format!("signal {signal}"),
                };
                let message = format!("can't prepare the process: it ended by {how} (are its limits too low?)");
                self.phase = Phase::Failed(NotStarted { cause: Cause::Job, message });
            }
            // Nobody knows whether its program was executed before it was killed.
            Phase::Executing { .. } => {
                self.phase = Phase::Running;
                self.report(&Report::Started { pid: self.job.as_raw_nonzero().get() });
            }
            Phase::Running | Phase::Failed(_) => {}
        }
    }

    fn say_end(&mut self) {
        let last = match &self.phase {
            Phase::Failed(why) => Report::NotStarted(why.clone()),
            _ => Report::Ended(Ended {
                // Its own process was our child, and no child is left.
                exit: self.exit.unwrap_or(Exit::Signal(Signal::KILL.as_raw())),
                by_itself: self.lifetime.by_itself(),
                cpu: self.usage.cpu,
                memory_peak_kib: self.usage.memory_peak_kib,
            }),
        };
        self.report(&last);
    }

    /// Says something to the daemon. One that doesn't read has been told enough; one that is gone is noticed
    /// where it is listened to.
    fn report(&self, report: &Report) {
        if let Some(channel) = &self.channel {
            socket::send(channel, &encode(report), &[]).ok();
        }
    }

    /// Sleeps until something happens or is due.
    fn wait(&mut self) -> io::Result<()> {
        let give_up = match &self.phase {
            Phase::Preparing { by, .. } => Some(*by),
            _ => None,
        };
        let again = self.killing.as_ref().map(|killing| killing.again_at);
        let next = [self.lifetime.next(), give_up, again].into_iter().flatten().min();
        self.timer.set(next)?;
        let mut sources = vec![PollFd::new(self.timer, PollFlags::IN), PollFd::new(self.children, PollFlags::IN)];
        sources.extend(self.channel.iter().map(|channel| PollFd::new(channel, PollFlags::IN)));
        if let Phase::Preparing { link, .. } | Phase::Executing { link } = &self.phase {
            sources.push(PollFd::new(link, PollFlags::IN));
        }
        match poll(&mut sources, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the daemon's orders in.
    fn hear_daemon(&mut self) -> io::Result<()> {
        while let Some(channel) = &self.channel {
            let act = match socket::receive(channel) {
                Ok(Received::Message(message, _)) => self.lifetime.obey(decode(&message)?),
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::Closed) | Err(_) => {
                    self.channel = None;
                    self.lifetime.daemon_gone(BootInstant::now())
                }
            };
            self.act(act);
        }
        Ok(())
    }

    /// Takes in what the job's process says before it becomes its program.
    fn hear_job(&mut self, request: &SpawnRequest) {
        let (heard, may_go) = match &self.phase {
            Phase::Preparing { link, by } => {
                if by.has_passed() {
                    let within = crate::clock::human(request.start_within);
                    let message = format!("the preparation of the process hangs, and was given up after {within}");
                    return self.fail(NotStarted { cause: Cause::Hung, message });
                }
                (socket::receive(link), true)
            }
            Phase::Executing { link } => (socket::receive(link), false),
            Phase::Running | Phase::Failed(_) => return,
        };
        match heard {
            Ok(Received::Nothing) => {}
            Ok(Received::Message(message, _)) if message == READY && may_go => self.let_go(),
            Ok(Received::Message(message, _)) => {
                let garbled = |error: io::Error| NotStarted { cause: Cause::Job, message: error.to_string() };
                self.phase = Phase::Failed(decode(&message).unwrap_or_else(garbled));
            }
            // While it prepares, its end is heard of when it is reaped.
            Ok(Received::Closed) | Err(_) if may_go => {}
            Ok(Received::Closed) | Err(_) => {
                self.phase = Phase::Running;
                self.report(&Report::Started { pid: self.job.as_raw_nonzero().get() });
            }
        }
    }

    /// The last look before the program is executed: at the channel, at the deadline.
    fn let_go(&mut self) {
        if self.hear_daemon().is_err()
            || self.lifetime.look(BootInstant::now()) != Act::Nothing
            || self.lifetime.is_over()
        {
            return self.fail(NotStarted::too_late());
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Running);
        if let Phase::Preparing { link, .. } = phase {
            // If it is gone, that is heard of when it is reaped.
            socket::send(&link, GO, &[]).ok();
            self.phase = Phase::Executing { link };
        } else {
            // The daemon's orders have ended it meanwhile.
            self.phase = phase;
        }
    }
}

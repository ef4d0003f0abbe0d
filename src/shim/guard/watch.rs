use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal};

use super::Shim;
use super::lifetime::{Act, Lifetime};
use crate::clock::{BootInstant, human};
use crate::shim::launch::{EXECUTING, GO, READY};
use crate::shim::signals;
use crate::shim::socket::{self, Received};
use crate::shim::tree::{self, Usage};
use crate::shim::wire::{Cause, Ended, Exit, NotStarted, Report, SpawnRequest, ToShim, decode};

/// How often killing is done again while anything lives: what is killed is gone in far less, what forks
/// is seen again, and what can't be killed costs no more than this.
const KILL_AGAIN: Duration = Duration::from_millis(5);
const KILL_AGAIN_AT_MOST: Duration = Duration::from_secs(1);

/// How long killed processes may take to die before it is said.
const UNKILLABLE_AFTER: Duration = Duration::from_secs(2);

/// How far the job's own process has come.
enum Phase {
    /// It prepares, and is given up `by` then. Nothing is executed as long as it doesn't say so.
    Preparing { link: OwnedFd, by: BootInstant },
    /// It has said that it executes its program; the link closes when that is done.
    Executing { link: OwnedFd },
    /// Its program is executed.
    Running,
    /// Its program could not be executed.
    Failed(NotStarted),
}

/// The watch over one run.
pub(super) struct Watch<'a, 'd> {
    shim: &'a mut Shim<'d>,
    request: &'a SpawnRequest,
    lifetime: Lifetime,
    phase: Phase,
    /// Why a process that prepares is killed.
    refusal: Option<NotStarted>,
    job: Pid,
    exit: Option<Exit>,
    usage: Usage,
    killing: Option<Killing>,
    said_left_behind: bool,
}

/// Killing, from its first time on.
struct Killing {
    since: BootInstant,
    again_at: BootInstant,
    pause: Duration,
    said: bool,
}

/// What there is to look at.
#[derive(Clone, Copy)]
struct Ready {
    children: bool,
    daemon: bool,
    job: bool,
}

impl<'a, 'd> Watch<'a, 'd> {
    pub(super) fn new(shim: &'a mut Shim<'d>, request: &'a SpawnRequest, job: Pid, link: OwnedFd) -> Self {
        Self {
            shim,
            request,
            lifetime: Lifetime::new(request.deadline, request.kill_grace),
            phase: Phase::Preparing { link, by: BootInstant::now() + request.start_within },
            refusal: None,
            job,
            exit: None,
            usage: Usage::default(),
            killing: None,
            said_left_behind: false,
        }
    }

    /// Everything that can happen, until no process of the tree is left.
    pub(super) fn see_out(mut self) -> io::Result<()> {
        loop {
            let act = self.lifetime.look(BootInstant::now());
            self.act(act);
            let ready = self.wait()?;
            if ready.daemon {
                self.hear_daemon()?;
            }
            if ready.job {
                self.hear_job();
            }
            self.give_up_if_hung();
            if ready.children {
                signals::drain(&self.shim.children);
                if self.reap()? {
                    return Ok(());
                }
            }
        }
    }

    fn act(&mut self, act: Act) {
        let prepares = matches!(self.phase, Phase::Preparing { .. });
        match act {
            Act::Nothing => {}
            // A process that prepares has nothing of the job's to end in peace.
            Act::Terminate | Act::Kill if prepares => self.refuse(NotStarted::too_late()),
            Act::Terminate => {
                tree::signal(Signal::TERM, &HashSet::new());
                // Who is stopped gets no TERM before it goes on.
                tree::signal(Signal::CONT, &HashSet::new());
            }
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
        if let Some(group) = &mut self.shim.group {
            group.kill();
        }
        tree::signal(Signal::KILL, &HashSet::new());
        if !killing.said && now.since(killing.since) > UNKILLABLE_AFTER {
            killing.said = true;
            self.shim.report(&Report::Unkillable(tree::survivors(&HashSet::new())));
        }
    }

    /// Kills a process that prepares. Whether it was faster is known when it is reaped.
    fn refuse(&mut self, why: NotStarted) {
        self.refusal.get_or_insert(why);
        self.lifetime.kill();
        self.kill();
    }

    fn give_up_if_hung(&mut self) {
        if matches!(self.phase, Phase::Preparing { by, .. } if by.has_passed()) {
            let within = human(self.request.start_within);
            let message = format!("the preparation of the process hangs, and was given up after {within}");
            self.refuse(NotStarted { cause: Cause::Hung, message });
        }
    }

    /// Reaps who has ended; true once nobody is left and that is said.
    fn reap(&mut self) -> io::Result<bool> {
        let reaping = tree::reap()?;
        reaping.ended.iter().for_each(|ended| self.usage.add(&ended.usage));
        if let Some(own) = reaping.ended.iter().find(|ended| ended.pid == self.job) {
            self.exit = Some(own.exit);
            self.own_process_ended(own.exit);
        }
        if reaping.is_alone {
            self.say_end();
            return Ok(true);
        }
        if self.exit.is_some() && !self.said_left_behind {
            self.said_left_behind = true;
            if !self.lifetime.is_over() {
                self.say_left_behind();
            }
            let act = self.lifetime.left_behind(BootInstant::now());
            self.act(act);
        }
        Ok(false)
    }

    /// Who only lives a moment longer than what it was told to end with is not worth a word.
    fn say_left_behind(&self) {
        let survivors = tree::survivors(&HashSet::new());
        if survivors.count > 0 {
            self.shim.report(&Report::LeftBehind(survivors));
        }
    }

    fn own_process_ended(&mut self, exit: Exit) {
        // What it said before its end comes first.
        self.hear_job();
        if matches!(self.phase, Phase::Preparing { .. }) {
            let how = match exit {
                Exit::Code(code) => format!("exit code {code}"),
                Exit::Signal(signal) => format!("signal {signal}"),
            };
            let message = format!("can't prepare the process: it ended by {how} (are its limits too low?)");
            self.refusal.get_or_insert(NotStarted { cause: Cause::Job, message });
        } else {
            // Nobody knows whether its program was executed before it was killed.
            self.executed();
        }
    }

    fn executed(&mut self) {
        if matches!(self.phase, Phase::Executing { .. }) {
            self.phase = Phase::Running;
            self.shim.report(&Report::Started { pid: self.job.as_raw_nonzero().get() });
        }
    }

    fn say_end(&mut self) {
        let not_executed = match &self.phase {
            Phase::Preparing { .. } => self.refusal.clone(),
            Phase::Failed(why) => Some(why.clone()),
            Phase::Executing { .. } | Phase::Running => None,
        };
        let last = not_executed.map_or_else(
            || {
                Report::Ended(Ended {
                    // Its own process was our child, and no child is left.
                    exit: self.exit.unwrap_or(Exit::Signal(Signal::KILL.as_raw())),
                    by_itself: self.lifetime.by_itself(),
                    cpu: self.usage.cpu,
                    memory_peak_kib: self.usage.memory_peak_kib,
                })
            },
            Report::NotStarted,
        );
        self.shim.report(&last);
    }

    /// Sleeps until something happens or is due.
    fn wait(&mut self) -> io::Result<Ready> {
        let give_up = match &self.phase {
            Phase::Preparing { by, .. } if self.refusal.is_none() => Some(*by),
            _ => None,
        };
        let again = self.killing.as_ref().map(|killing| killing.again_at);
        self.shim.timer.set([self.lifetime.next(), give_up, again].into_iter().flatten().min())?;
        let mut sources =
            vec![PollFd::new(&self.shim.timer, PollFlags::IN), PollFd::new(&self.shim.children, PollFlags::IN)];
        let channel = self.shim.channel.as_ref().map(|channel| {
            sources.push(PollFd::new(channel, PollFlags::IN));
            sources.len() - 1
        });
        let link = match &self.phase {
            Phase::Preparing { link, .. } | Phase::Executing { link } => {
                sources.push(PollFd::new(link, PollFlags::IN));
                Some(sources.len() - 1)
            }
            Phase::Running | Phase::Failed(_) => None,
        };
        match poll(&mut sources, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |index: usize| !sources[index].revents().is_empty();
        Ok(Ready { children: is_ready(1), daemon: channel.is_some_and(is_ready), job: link.is_some_and(is_ready) })
    }

    /// Takes the daemon's orders in.
    fn hear_daemon(&mut self) -> io::Result<()> {
        while let Some(channel) = &self.shim.channel {
            let act = match socket::receive(channel) {
                Ok(Received::Message(message, _)) => match decode(&message)? {
                    ToShim::Order(order) => self.lifetime.obey(order),
                    // One run at a time: the daemon knows.
                    ToShim::Spawn(_) => Act::Nothing,
                },
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::Closed) | Err(_) => {
                    self.shim.channel = None;
                    self.lifetime.daemon_gone(BootInstant::now())
                }
            };
            self.act(act);
        }
        Ok(())
    }

    /// Takes in what the job's process says before it becomes its program.
    fn hear_job(&mut self) {
        loop {
            let link = match &self.phase {
                Phase::Preparing { link, .. } | Phase::Executing { link } => link,
                Phase::Running | Phase::Failed(_) => return,
            };
            match socket::receive(link) {
                Ok(Received::Nothing) => return,
                Ok(Received::Message(message, _)) if message == READY => self.let_go(),
                Ok(Received::Message(message, _)) if message == EXECUTING => self.executing(),
                Ok(Received::Message(message, _)) => {
                    let garbled = |error: io::Error| NotStarted { cause: Cause::Job, message: error.to_string() };
                    self.phase = Phase::Failed(decode(&message).unwrap_or_else(garbled));
                }
                // Of one that prepared, more is known when it is reaped.
                Ok(Received::Closed) | Err(_) => return self.executed(),
            }
        }
    }

    fn executing(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Running);
        self.phase = match phase {
            Phase::Preparing { link, .. } => Phase::Executing { link },
            other => other,
        };
    }

    /// The daemon has ordered something while the process prepared: the last look before its program is executed is
    /// ours.
    fn let_go(&mut self) {
        let heard = self.hear_daemon();
        let is_over =
            heard.is_err() || self.lifetime.look(BootInstant::now()) != Act::Nothing || self.lifetime.is_over();
        match &self.phase {
            _ if is_over => self.refuse(NotStarted::too_late()),
            // If it is gone, that is heard of when it is reaped.
            Phase::Preparing { link, .. } => socket::send(link, GO, &[]).ok().unwrap_or_default(),
            _ => {}
        }
    }
}

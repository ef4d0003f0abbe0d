use std::os::unix::process::ExitStatusExt;
use std::process::{Child as Process, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::clock::BootInstant;

/// A child and its process group, until the child is reaped: from then on its number may be
/// somebody else's, so signals and reaping exclude one another.
#[derive(Clone, Debug)]
pub(super) struct Group(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    leader: Pid,
    /// `None` once reaped.
    process: Option<Process>,
    /// Moved by renewals, read by the enforcer's thread. Never once killing began.
    deadline: BootInstant,
    killed: bool,
}

impl Group {
    pub(super) fn new(process: Process, deadline: BootInstant) -> Self {
        let leader = Pid::from_child(&process);
        Self(Arc::new(Mutex::new(Inner { leader, process: Some(process), deadline, killed: false })))
    }

    /// Signals every process of the group; nothing once the leader is reaped.
    pub(super) fn signal(&self, signal: Signal) {
        let mut inner = self.lock();
        inner.killed |= signal == Signal::KILL;
        if inner.process.is_some() {
            // ESRCH: all of them are gone already, which is what was wanted.
            kill_process_group(inner.leader, signal).ok();
        }
    }

    /// Moves the deadline; it only rises, and not once killing began.
    pub(super) fn move_deadline(&self, to: BootInstant) {
        let mut inner = self.lock();
        if !inner.killed {
            inner.deadline = inner.deadline.max(to);
        }
    }

    /// Kills the group if its deadline has passed; says when to look again, `None` for never.
    pub(super) fn enforce(&self) -> Option<BootInstant> {
        let deadline = {
            let inner = self.lock();
            inner.process.as_ref()?;
            inner.deadline
        };
        if !deadline.has_passed() {
            return Some(deadline);
        }
        self.signal(Signal::KILL);
        None
    }

    /// Whether the leader has exited; it is not reaped by this.
    pub(super) fn has_exited(&self) -> bool {
        let inner = self.lock();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error would mean that somebody else reaped it.
        inner.process.is_none() || !matches!(waitid(WaitId::Pid(inner.leader), options), Ok(None))
    }

    /// Kills what the leader left behind, then reaps it. Only after it has exited.
    pub(super) fn reap(&self) -> ExitStatus {
        let mut inner = self.lock();
        let Some(mut process) = inner.process.take() else { return ExitStatus::from_raw(0) };
        kill_process_group(inner.leader, Signal::KILL).ok();
        // It has exited, so this doesn't wait; an error would mean that somebody else reaped it.
        process.wait().unwrap_or_else(|_| ExitStatus::from_raw(Signal::KILL.as_raw()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

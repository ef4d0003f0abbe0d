use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use super::ending::{StopCause, codes, judge};
use super::pump::Pump;
use super::stops::StopTicket;
use super::supervise::{Assignment, Runner, Stop};
use crate::clock::BootInstant;
use crate::lease::{Deadline, LeaseState};
use crate::shim::Child;
use crate::store::{Ending, RunKey};

/// A job that runs longer than this is marked as running; a shorter one is written once, at its end.
const MARK_AFTER: Duration = Duration::from_secs(1);

/// A stop under way.
struct Stopping {
    cause: StopCause,
    kill_at: BootInstant,
}

/// A run whose process is there.
pub(super) struct Running<'a> {
    runner: &'a Runner,
    assignment: &'a Assignment,
    key: &'a RunKey,
    child: Child,
    lease: watch::Receiver<LeaseState>,
    /// The lease's, as it stands.
    deadline: Deadline,
    started: BootInstant,
    /// Through which it is asked to stop.
    ticket: StopTicket,
    stopping: Option<Stopping>,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        runner: &'a Runner,
        assignment: &'a Assignment,
        key: &'a RunKey,
        child: Child,
        lease: watch::Receiver<LeaseState>,
        ticket: StopTicket,
    ) -> Self {
        let deadline = lease.borrow().deadline();
        let started = BootInstant::now();
        Self { runner, assignment, key, child, lease, deadline, started, ticket, stopping: None }
    }

    /// Waits for the process to end, stops it when it has to be stopped, and reaps its group.
    pub(super) async fn run_out(mut self, pump: Option<Pump>, started_at: DateTime<Utc>) -> Ending {
        self.watch(started_at).await;
        let exit = self.child.reap();
        let ended_at = self.runner.clock.now();
        let output_tail = match pump {
            Some(pump) => pump.finish().await,
            None => None,
        };
        let (state, reason) = judge(exit, self.stopping.as_ref().map(|stopping| &stopping.cause));
        let (exit_code, signal) = codes(exit);
        let (started_at, finished_at) = (Some(started_at), ended_at);
        // Known once a shim reaps the tree.
        let (cpu, memory_peak_kib) = (None, None);
        Ending { state, exit_code, signal, reason, started_at, finished_at, output_tail, cpu, memory_peak_kib }
    }

    /// Everything that can happen while the process runs. Returns once it has exited.
    async fn watch(&mut self, started_at: DateTime<Utc>) {
        let mut stop = self.runner.stop.clone();
        let mut killed = false;
        let timeout_at = self.assignment.job.timeout.map(|timeout| self.started + timeout);
        let mut mark = std::pin::pin!(mark_as_running(self.runner, self.key, started_at));
        let mut marked = false;
        loop {
            let kill_at = self.stopping.as_ref().map(|stopping| stopping.kill_at);
            let told = self.stopping.is_some();
            tokio::select! {
                biased;
                () = self.child.exited() => return,
                Ok(()) = self.lease.changed() => self.lease_changed(),
                () = self.deadline.term_at.reached(), if !told => self.stop(StopCause::LeaseEnding),
                () = reached(kill_at), if told && !killed => {
                    self.child.kill();
                    killed = true;
                }
                () = reached(timeout_at), if !told => self.stop(StopCause::Timeout),
                asked = self.ticket.asked(), if !told => self.stop(StopCause::Asked(asked)),
                asked = wait_for_stop(&mut stop, told), if !killed => {
                    self.stop(StopCause::Drained);
                    if asked == Stop::Kill {
                        self.child.kill();
                        killed = true;
                    }
                }
                () = &mut mark, if !marked => marked = true,
            }
        }
    }

    fn lease_changed(&mut self) {
        let state = self.lease.borrow_and_update().clone();
        self.deadline = state.deadline();
        match state {
            LeaseState::Held(deadline) => self.child.move_deadline(deadline.kill_at),
            LeaseState::Lost(loss, _) => self.stop(StopCause::LeaseLost(loss)),
        }
    }

    /// TERM now, KILL after the grace, but never past the lease's own deadline. The first cause
    /// stands.
    fn stop(&mut self, cause: StopCause) {
        if self.stopping.is_some() {
            return;
        }
        self.child.terminate();
        let grace = self.assignment.job.timing.kill_grace();
        let kill_at = self.deadline.kill_after(BootInstant::now(), grace);
        self.stopping = Some(Stopping { cause, kill_at });
    }
}

/// Waits for an instant; for ever if there is none.
async fn reached(at: Option<BootInstant>) {
    match at {
        Some(at) => at.reached().await,
        None => std::future::pending().await,
    }
}

/// Waits until the daemon tells its runs to stop, or, once one is told, to be killed.
async fn wait_for_stop(stop: &mut watch::Receiver<Stop>, told: bool) -> Stop {
    let least = if told { Stop::Kill } else { Stop::Terminate };
    let asked = stop.wait_for(|stop| *stop >= least).await.map(|stop| *stop);
    match asked {
        Ok(asked) => asked,
        // The daemon's end of the channel is gone, and with it whoever waits for this run.
        Err(_) => Stop::Kill,
    }
}

/// Marks a run as running once it has been for a while. An error is no matter: the end is written
/// with everything that this would write.
async fn mark_as_running(runner: &Runner, key: &RunKey, started_at: DateTime<Utc>) {
    tokio::time::sleep(MARK_AFTER).await;
    if let Err(error) = runner.store.start(key, started_at).await {
        tracing::debug!(run = %key.run, "not marked as running: {error}");
    }
}

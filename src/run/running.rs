use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use super::assignment::Assignment;
use super::ending::{StopCause, codes, judge};
use super::pump::Pump;
use super::stops::StopTicket;
use super::supervise::{Runner, Stop};
use crate::clock::BootInstant;
use crate::events::{self, RunLabel};
use crate::job::OnLeaseLost;
use crate::lease::{Deadline, LeaseState};
use crate::shim::{Child, ChildEvent, Ended, OwnStop};
use crate::store::{Ending, RunKey};

/// A job that runs longer than this is marked as running; a shorter one is written once, at its end.
const MARK_AFTER: Duration = Duration::from_secs(1);

/// How long after its kill a tree's end, or that it doesn't die, may take to be said.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

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
    /// Why it was told to end.
    stopping: Option<StopCause>,
    /// When its shim has to have ended it, or said why not.
    answer_by: Option<BootInstant>,
    /// Through which it is asked to stop.
    ticket: &'a mut StopTicket,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        runner: &'a Runner,
        assignment: &'a Assignment,
        key: &'a RunKey,
        child: Child,
        lease: watch::Receiver<LeaseState>,
        ticket: &'a mut StopTicket,
    ) -> Self {
        let deadline = lease.borrow().deadline();
        Self {
            runner,
            assignment,
            key,
            child,
            lease,
            deadline,
            started: BootInstant::now(),
            stopping: None,
            answer_by: None,
            ticket,
        }
    }

    /// Waits until no process of its tree is left, and stops it when it has to be stopped. `None` if nobody
    /// will ever say that: its shim is gone.
    pub(super) async fn run_out(mut self, pump: Option<Pump>, started_at: DateTime<Utc>) -> Option<Ending> {
        self.catch_up_with_stops();
        let ended = self.watch(started_at).await;
        let ended_at = self.runner.clock.now();
        let output_tail = match pump {
            Some(pump) => pump.finish().await,
            None => None,
        };
        let ended = ended?;
        if ended.by_itself == Some(OwnStop::Deadline) {
            self.stopping.get_or_insert(StopCause::LeaseEnding);
        }
        let (state, reason) = judge(ended.exit, self.stopping.as_ref(), &self.assignment.job.success_codes);
        let (exit_code, signal) = codes(ended.exit);
        let (started_at, finished_at) = (Some(started_at), ended_at);
        let (cpu, memory_peak_kib) = (Some(ended.cpu), Some(ended.memory_peak_kib));
        Some(Ending { state, exit_code, signal, reason, started_at, finished_at, output_tail, cpu, memory_peak_kib })
    }

    /// What was asked while the process was being started, which is killed by then.
    fn catch_up_with_stops(&mut self) {
        let asked = *self.runner.stop.borrow();
        if asked >= Stop::Terminate {
            self.drained(asked);
        } else if !self.outlives_its_lease() && self.deadline.kill_at.has_passed() {
            self.stop(StopCause::LeaseEnding);
        }
    }

    /// Everything that can happen while the tree lives.
    async fn watch(&mut self, started_at: DateTime<Utc>) -> Option<Ended> {
        let mut stop = self.runner.stop.clone();
        let timeout_at = self.assignment.job.timeout.map(|timeout| self.started + timeout);
        let mut mark = std::pin::pin!(mark_as_running(self.runner, self.key, started_at));
        let (mut marked, mut killed, mut enforced) = (false, false, false);
        loop {
            let told = self.stopping.is_some();
            let (term_at, overdue_at) = (self.term_at(), self.overdue_at());
            tokio::select! {
                biased;
                event = self.child.next() => match event {
                    ChildEvent::Ended(ended) => return Some(ended),
                    ChildEvent::Vanished => return None,
                    ChildEvent::LeftBehind(survivors) => events::run_left_behind(self.label(), &survivors.names, survivors.count),
                    ChildEvent::Unkillable(survivors) => events::run_unkillable(self.label(), &survivors.names, survivors.count),
                },
                Ok(()) = self.lease.changed() => self.lease_changed(),
                () = reached(term_at), if !told => self.stop(StopCause::LeaseEnding),
                () = reached(overdue_at), if !enforced => {
                    enforced = true;
                    self.child.kill_shim();
                }
                () = reached(timeout_at), if !told => self.stop(StopCause::Timeout),
                asked = self.ticket.asked(), if !told => self.stop(StopCause::Asked(asked)),
                asked = wait_for_stop(&mut stop, told), if !killed => {
                    killed = asked == Stop::Kill;
                    self.drained(asked);
                }
                () = &mut mark, if !marked => marked = true,
            }
        }
    }

    fn lease_changed(&mut self) {
        let state = self.lease.borrow_and_update().clone();
        self.deadline = state.deadline();
        if self.outlives_its_lease() {
            return;
        }
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
        let grace = self.assignment.job.timing.kill_grace();
        let now = BootInstant::now();
        let kill_at = if self.outlives_its_lease() { now + grace } else { self.deadline.kill_after(now, grace) };
        self.child.terminate(kill_at);
        self.answer_by = Some(kill_at + ANSWER_WITHIN);
        self.stopping = Some(cause);
    }

    /// The daemon doesn't let jobs go on any more, or not for another moment.
    fn drained(&mut self, asked: Stop) {
        if asked == Stop::Kill {
            self.child.kill();
            self.answer_by = Some(BootInstant::now() + ANSWER_WITHIN);
            self.stopping.get_or_insert(StopCause::Drained);
        } else {
            self.stop(StopCause::Drained);
        }
    }

    fn outlives_its_lease(&self) -> bool {
        self.assignment.job.on_lease_lost == OnLeaseLost::Continue
    }

    /// When the lease ends, if that is this run's end.
    fn term_at(&self) -> Option<BootInstant> {
        (!self.outlives_its_lease()).then_some(self.deadline.term_at)
    }

    /// When a shim is overdue that should have killed its tree, because somebody has stopped it. At the lease's
    /// end there is still some time until others may take the lock.
    fn overdue_at(&self) -> Option<BootInstant> {
        let slack = self.assignment.job.timing.slack();
        let lease_over = (!self.outlives_its_lease()).then(|| self.deadline.kill_at + slack / 3);
        [lease_over, self.answer_by].into_iter().flatten().min()
    }

    fn label(&self) -> RunLabel<'_> {
        self.assignment.label(Some(self.key.token))
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

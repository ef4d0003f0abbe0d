use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::assignment::Assignment;
use super::environment::{base_environment, environment};
use super::output::FileOutput;
use super::pump::Pump;
use super::running::Running;
use super::stops::StopTicket;
use super::supervise::{Runner, Stop, TOO_LATE, Tenure};
use crate::clock::BootInstant;
use crate::events;
use crate::job::OnLeaseLost;
use crate::lease::Deadline;
use crate::lock::FencingToken;
use crate::shim::{Program, SpawnError, SpawnRequest};
use crate::store::Ending;
use crate::trigger::RunState;

/// How long a process may take to prepare itself: a name service that is away answers within this or not
/// at all.
const START_WITHIN: Duration = Duration::from_secs(30);

/// What one attempt came to.
pub(super) enum Attempted {
    /// It is over, and nothing of it is left.
    Ended(Ending),
    /// Surely nothing of it was executed, for this reason, and another host, or a later try, may do better.
    NotStarted(String),
    /// Its shim is gone without a word.
    Vanished,
}

impl Runner {
    /// Starts the job's process and sees it to its end. What is left to be written of its files is written after
    /// that, and not waited for here.
    pub(super) async fn attempt(
        &self,
        assignment: &Arc<Assignment>,
        tenure: &mut Tenure,
        ticket: &mut StopTicket,
    ) -> Attempted {
        // Of the attempt before.
        tenure.finish_writing(assignment).await;
        let (file, writer) = self.start_writer(assignment).await.unzip();
        tenure.writer = writer;
        self.execute(assignment, tenure, ticket, file).await
    }

    async fn execute(
        &self,
        assignment: &Arc<Assignment>,
        tenure: &mut Tenure,
        ticket: &mut StopTicket,
        file: Option<FileOutput>,
    ) -> Attempted {
        let deadline = tenure.lease.watch().borrow().deadline();
        let started_at = self.clock.now();
        let request = self.request(assignment, tenure.token, deadline);
        match self.spawner.spawn(&request, self.start_given_up(deadline)).await {
            Ok(mut child) => {
                self.exhaustion.started();
                let late = assignment.lateness(started_at);
                events::run_started(assignment.label(Some(tenure.token)), late, assignment.kind.as_str(), child.pid());
                if let (None, Some(url)) = (&tenure.pings, assignment.ping_url()) {
                    tenure.pings = Some(self.notices.pings.start(&assignment.job.name, url));
                }
                let pump = child.take_output().map(|output| Pump::start(output, assignment, tenure.token, file));
                let key = assignment.key(tenure.token);
                let running = Running::new(self, assignment, &key, child, tenure.lease.watch(), ticket);
                match running.run_out(pump, started_at).await {
                    Some(ending) => Attempted::Ended(ending),
                    None => Attempted::Vanished,
                }
            }
            Err(error) => self.not_started(&error),
        }
    }

    fn request(&self, assignment: &Assignment, token: FencingToken, deadline: Deadline) -> SpawnRequest {
        let job = &assignment.job;
        SpawnRequest {
            program: Program::Execute(job.command.argv()),
            base_env: base_environment(),
            env: environment(assignment, &self.host, token),
            directory: job.directory.clone(),
            setup: job.process.clone(),
            deadline: match job.on_lease_lost {
                OnLeaseLost::Kill => deadline.kill_at,
                OnLeaseLost::Continue => BootInstant::NEVER,
            },
            kill_grace: job.timing.kill_grace(),
            start_within: START_WITHIN.min(deadline.term_at.remaining()),
        }
    }

    /// When a start is waited for no longer: nothing may run past `kill_at`, nor when the daemon
    /// doesn't let jobs go on any more.
    async fn start_given_up(&self, deadline: Deadline) {
        let mut stop = self.stop.clone();
        tokio::select! {
            () = deadline.kill_at.reached() => {}
            // An error means that the daemon's end of the channel is gone, and the daemon with it.
            _ = stop.wait_for(|stop| *stop >= Stop::Terminate) => {}
        }
    }

    /// What becomes of a run whose process is not there.
    fn not_started(&self, error: &SpawnError) -> Attempted {
        match error {
            SpawnError::TooLate => Attempted::NotStarted(TOO_LATE.to_owned()),
            SpawnError::Exhausted(_) => {
                self.exhaustion.failed();
                Attempted::NotStarted(error.to_string())
            }
            SpawnError::Job(_) | SpawnError::Hung(_) => {
                Attempted::Ended(without_process(RunState::Failed, error.to_string(), self.clock.now()))
            }
            SpawnError::Vanished => Attempted::Vanished,
        }
    }
}

/// The end of a run of which nothing was executed.
pub(super) fn without_process(state: RunState, reason: String, finished_at: DateTime<Utc>) -> Ending {
    Ending {
        state,
        exit_code: None,
        signal: None,
        reason: Some(reason),
        started_at: None,
        finished_at,
        output_tail: None,
        cpu: None,
        memory_peak_kib: None,
    }
}

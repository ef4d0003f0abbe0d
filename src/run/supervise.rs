use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use super::ending::announce;
use super::environment::{directory, environment};
use super::exhaustion::Exhaustion;
use super::pump::Pump;
use super::running::Running;
use super::stops::Stops;
use crate::clock::{BootInstant, DatabaseClock};
use crate::events::{self, RunLabel};
use crate::fleet::{HostName, InstanceId};
use crate::job::Job;
use crate::lease::{Deadline, KeeperHandle, Lease};
use crate::lock::{FencingToken, Owner, Resource};
use crate::shim::{SpawnError, SpawnRequest, Spawner, User};
use crate::store::{Ending, Follower, Grant, RunKey, SharedStore};
use crate::trigger::{RunId, RunState, Trigger, TriggerKind};

/// Why a claim is given back whose lease is too short for a start.
const TOO_LATE: &str = "too_little_time_left";

/// What floor 6 tells all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Go on.
    #[default]
    No,
    /// Start nothing new; what runs may go on.
    Draining,
    /// TERM, `kill_grace`, KILL.
    Terminate,
    /// KILL at once; one try to write the end.
    Kill,
}

/// What this host has done with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervised {
    /// It ended.
    Ended,
    /// Nothing was started; it waits for any host.
    GivenBack,
}

/// A run under its lease.
struct HeldRun<'a> {
    assignment: &'a Assignment,
    key: &'a RunKey,
    lease: Lease,
    held_since: BootInstant,
    /// When its process was asked for.
    started: BootInstant,
}

/// A run that this host has been granted.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Its name.
    pub run: RunId,
    /// Its job, as it was when the trigger came.
    pub job: Arc<Job>,
    /// Its trigger.
    pub trigger: Trigger,
    /// Which attempt.
    pub attempt: u32,
    /// What made it.
    pub kind: TriggerKind,
    /// The owner made for it.
    pub owner: Owner,
    /// Its lock.
    pub resource: Resource,
    /// How many attempts up to this one were retries.
    pub retries: u32,
    /// What is due after its success.
    pub followers: Vec<Follower>,
}

/// What all runs of a daemon share.
#[derive(Debug)]
pub struct Runner {
    /// This host's name.
    pub host: HostName,
    /// This start of the daemon.
    pub instance: InstanceId,
    /// Who jobs run as.
    pub user: User,
    /// The tables.
    pub store: SharedStore,
    /// The heartbeat.
    pub keeper: KeeperHandle,
    /// What starts processes.
    pub spawner: Spawner,
    /// Whether they could be started lately.
    pub exhaustion: Exhaustion,
    /// The runs under way, for whoever wants one of them stopped.
    pub stops: Stops,
    /// The database's clock.
    pub clock: Arc<DatabaseClock>,
    /// Written by the daemon, read by every run.
    pub stop: watch::Receiver<Stop>,
}

impl Assignment {
    /// How late a run of the schedule starts. A job that starts later than its instant is not late by
    /// that, and what follows another run has no time of its own.
    fn lateness(&self, started_at: DateTime<Utc>) -> Option<Duration> {
        let since = (started_at - self.trigger.scheduled_at).to_std().unwrap_or_default();
        (self.kind != TriggerKind::After).then(|| since.saturating_sub(self.job.start_delay))
    }

    pub(super) fn label(&self, token: Option<FencingToken>) -> RunLabel<'_> {
        RunLabel { trigger: &self.trigger, run: self.run, attempt: self.attempt, lock: &self.resource, token }
    }
}

impl Runner {
    /// Runs a job from its grant to its end, and writes the end. Returns when that is written or
    /// can't be.
    ///
    /// # Cancel safety
    /// Dropped, the job is killed and its lease runs out; recovery counts it as lost. It is not to
    /// be raced: stop it through [`Runner::stop`].
    pub async fn supervise(&self, assignment: &Arc<Assignment>, grant: &Grant) -> Supervised {
        let ticket = self.stops.register(assignment.run);
        let token = grant.token;
        let key = RunKey {
            run: assignment.run,
            owner: assignment.owner.clone(),
            resource: assignment.resource.clone(),
            token,
        };
        let timing = assignment.job.timing;
        let deadline = Deadline::of(grant.valid_until, &timing);
        if deadline.term_at.has_passed() {
            return self.give_back(assignment, &key, TOO_LATE).await;
        }
        if *self.stop.borrow() != Stop::No {
            return self.give_back(assignment, &key, "draining").await;
        }
        let held_since = BootInstant::now();
        let lease = self.keeper.hold(grant, assignment.resource.clone(), assignment.owner.clone(), timing).await;
        let held = HeldRun { assignment, key: &key, lease, held_since, started: BootInstant::now() };
        let started_at = self.clock.now();
        let request = SpawnRequest {
            argv: assignment.job.command.argv(),
            env: environment(assignment, &self.user, &self.host, token),
            directory: directory(assignment, &self.user),
            deadline: deadline.kill_at,
        };
        match self.spawner.spawn(request, self.start_given_up(deadline)).await {
            Ok(mut child) => {
                self.exhaustion.started();
                let late = assignment.lateness(started_at);
                events::run_started(assignment.label(Some(token)), late, assignment.kind.as_str());
                let pump = child.take_output().map(|output| Pump::start(output, assignment, token));
                let running = Running::new(self, assignment, &key, child, held.lease.watch(), ticket);
                let ending = running.run_out(pump, started_at).await;
                self.finish(held, &ending).await
            }
            Err(error) => self.not_started(held, error, started_at).await,
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

    /// What becomes of a run whose process is not there: it has failed, unless surely nothing of it
    /// was executed and another host, or a later try, may do better.
    async fn not_started(&self, held: HeldRun<'_>, error: SpawnError, started_at: DateTime<Utc>) -> Supervised {
        let too_late = held.lease.watch().borrow().deadline().kill_at.has_passed();
        let reason = match &error {
            SpawnError::TooLate => TOO_LATE.to_owned(),
            SpawnError::Program { .. } if too_late => TOO_LATE.to_owned(),
            SpawnError::Exhausted(_) => {
                self.exhaustion.failed();
                error.to_string()
            }
            SpawnError::Program { .. } => {
                return self.finish(held, &failed_to_start(&error, None, self.clock.now())).await;
            }
            SpawnError::Unwatched(_) | SpawnError::Hung { .. } => {
                return self.finish(held, &failed_to_start(&error, Some(started_at), self.clock.now())).await;
            }
        };
        held.lease.stop().await;
        self.give_back(held.assignment, held.key, &reason).await
    }

    /// Stops the heartbeat, writes the end and frees the lock, in this order.
    async fn finish(&self, held: HeldRun<'_>, ending: &Ending) -> Supervised {
        let duration = BootInstant::now().since(held.started);
        held.lease.stop().await;
        let label = held.assignment.label(Some(held.key.token));
        announce(label, self.host.as_str(), ending, duration);
        self.record_end(held.assignment, held.key, ending, held.held_since).await;
        Supervised::Ended
    }
}

/// The end of a run whose process could not be started, or not be watched.
fn failed_to_start(error: &SpawnError, started_at: Option<DateTime<Utc>>, finished_at: DateTime<Utc>) -> Ending {
    Ending {
        state: RunState::Failed,
        exit_code: None,
        signal: None,
        reason: Some(error.to_string()),
        started_at,
        finished_at,
        output_tail: None,
        cpu: None,
        memory_peak_kib: None,
    }
}

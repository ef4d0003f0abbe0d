use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use super::ending::announce;
use super::environment::{directory, environment};
use super::pump::Pump;
use super::running::Running;
use crate::clock::{BootInstant, DatabaseClock};
use crate::events::{self, RunLabel};
use crate::fleet::{HostName, InstanceId};
use crate::job::Job;
use crate::lease::{Deadline, KeeperHandle, Lease};
use crate::lock::{FencingToken, Owner, Resource};
use crate::shim::{SpawnError, SpawnRequest, Spawner, User};
use crate::store::{Ending, Grant, LockAtEnd, RunKey, SharedStore, StoreError};
use crate::trigger::{RunId, RunState, Trigger, TriggerKind};

/// The pauses between attempts to write a run's end.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often a run's end is tried to be written while the daemon waits for nothing else.
const TRIES_WHEN_STOPPING: u32 = 5;

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
    /// The database's clock.
    pub clock: Arc<DatabaseClock>,
    /// Written by the daemon, read by every run.
    pub stop: watch::Receiver<Stop>,
}

/// What is written of a run when this host is done with it.
#[derive(Clone, Copy)]
enum Write<'a> {
    Finish(&'a Ending),
    GiveBack(&'a str),
}

impl Assignment {
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
    pub async fn supervise(&self, assignment: &Arc<Assignment>, grant: &Grant) {
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
            return self.give_back(assignment, &key, "too_little_time_left").await;
        }
        if *self.stop.borrow() != Stop::No {
            return self.give_back(assignment, &key, "draining").await;
        }
        let held_since = BootInstant::now();
        let lease = self.keeper.hold(grant, assignment.resource.clone(), assignment.owner.clone(), timing).await;
        let request = SpawnRequest {
            argv: assignment.job.command.argv(),
            env: environment(assignment, &self.user, &self.host, token),
            directory: directory(assignment, &self.user),
            deadline: deadline.kill_at,
        };
        let started_at = self.clock.now();
        let started = BootInstant::now();
        match self.spawner.spawn(request).await {
            Ok(mut child) => {
                let late = (started_at - assignment.trigger.scheduled_at).to_std().unwrap_or_default();
                events::run_started(assignment.label(Some(token)), late, assignment.kind.as_str());
                let pump = child.take_output().map(|output| Pump::start(output, assignment, token));
                let running = Running::new(self, assignment, &key, child, lease.watch());
                let ending = running.run_out(pump, started_at).await;
                self.finish(assignment, &key, lease, &ending, started, held_since).await;
            }
            Err(SpawnError::Program { .. } | SpawnError::TooLate) if deadline.kill_at.has_passed() => {
                lease.stop().await;
                self.give_back(assignment, &key, "too_little_time_left").await;
            }
            Err(error @ (SpawnError::Program { .. } | SpawnError::TooLate)) => {
                let ending = never_started(&error, self.clock.now());
                self.finish(assignment, &key, lease, &ending, started, held_since).await;
            }
            Err(error @ SpawnError::Exhausted(_)) => {
                lease.stop().await;
                self.give_back(assignment, &key, &error.to_string()).await;
            }
        }
    }

    /// Gives a claim back that nothing was started for.
    async fn give_back(&self, assignment: &Assignment, key: &RunKey, reason: &str) {
        events::run_given_back(assignment.label(Some(key.token)), reason);
        let given = self.persist(key, Write::GiveBack(reason)).await;
        if let Err(error) = given {
            events::run_unrecorded(assignment.label(Some(key.token)), &error);
        }
    }

    /// Stops the heartbeat, writes the end and frees the lock, in this order.
    async fn finish(
        &self,
        assignment: &Assignment,
        key: &RunKey,
        lease: Lease,
        ending: &Ending,
        started: BootInstant,
        held_since: BootInstant,
    ) {
        let duration = BootInstant::now().since(started);
        lease.stop().await;
        let label = assignment.label(Some(key.token));
        announce(label, self.host.as_str(), ending, duration);
        match self.persist(key, Write::Finish(ending)).await {
            Ok(Some(LockAtEnd::Released)) => {
                events::lock_released(label, BootInstant::now().since(held_since));
            }
            Ok(_) => {}
            Err(error) => events::run_unrecorded(label, &error),
        }
    }

    /// Tries to write something until it is written. A database that is away is waited for, unless
    /// the daemon stops: then there are few tries, and one if it is to be gone at once.
    async fn persist(&self, key: &RunKey, write: Write<'_>) -> Result<Option<LockAtEnd>, String> {
        let mut stop = self.stop.clone();
        let mut pause = FIRST_PAUSE;
        let mut tries_when_stopping = TRIES_WHEN_STOPPING;
        loop {
            let error = match self.write(key, write).await {
                Ok(lock) => return Ok(lock),
                Err(error) => error,
            };
            let asked = *stop.borrow_and_update();
            tries_when_stopping -= u32::from(asked >= Stop::Terminate);
            if !error.is_transient() || asked == Stop::Kill || tries_when_stopping == 0 {
                return Err(error.to_string());
            }
            tokio::select! {
                () = tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)) => {}
                _ = stop.wait_for(|stop| *stop == Stop::Kill) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Runner {
    async fn write(&self, key: &RunKey, write: Write<'_>) -> Result<Option<LockAtEnd>, StoreError> {
        match write {
            Write::Finish(ending) => Ok(Some(self.store.finish(key, ending).await?.lock)),
            Write::GiveBack(reason) => self.store.give_back(key, reason).await.map(|_| None),
        }
    }
}

/// The end of a run whose process could not be started.
fn never_started(error: &SpawnError, finished_at: DateTime<Utc>) -> Ending {
    let state = RunState::Failed;
    Ending {
        state,
        exit_code: None,
        signal: None,
        reason: Some(error.to_string()),
        started_at: None,
        finished_at,
        output_tail: None,
    }
}

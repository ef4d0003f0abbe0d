use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use super::ending::announce;
use super::environment::{base_environment, environment};
use super::exhaustion::Exhaustion;
use super::notices::{Notifier, Occasion, RunPings, Signal};
use super::pump::Pump;
use super::running::Running;
use crate::clock::{BootInstant, DatabaseClock};
use crate::events::{self, RunLabel};
use crate::fleet::{HostName, InstanceId};
use crate::job::{Job, OnLeaseLost, OutputNames, OutputTo, PingUrl};
use crate::lease::{Deadline, KeeperHandle, Lease};
use crate::lock::{FencingToken, Owner, Resource};
use crate::shim::{Program, SpawnError, SpawnRequest, Spawner};
use crate::store::{Ending, Follower, Grant, RunKey, SharedStore};
use crate::trigger::{RunId, RunState, Trigger, TriggerKind};

/// Why a claim is given back whose lease is too short for a start.
const TOO_LATE: &str = "too_little_time_left";

/// How long a process may take to prepare itself: a name service that is away answers within this or not
/// at all.
const START_WITHIN: Duration = Duration::from_secs(30);

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
    /// Its shim is gone without a word; its lock runs out by itself.
    Abandoned,
}

/// A run under its lease.
struct HeldRun<'a> {
    assignment: &'a Assignment,
    key: &'a RunKey,
    lease: Lease,
    held_since: BootInstant,
    /// When its process was asked for.
    started: BootInstant,
    /// What monitoring services were told of it.
    pings: Option<RunPings>,
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
    /// The tables.
    pub store: SharedStore,
    /// The heartbeat.
    pub keeper: KeeperHandle,
    /// What starts processes.
    pub spawner: Arc<Spawner>,
    /// Who is told how jobs fare.
    pub notices: Notifier,
    /// Whether they could be started lately.
    pub exhaustion: Exhaustion,
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

    /// The file that its output goes to, if its job names one.
    pub fn output_path(&self, host: &HostName) -> Option<PathBuf> {
        let OutputTo::File(file) = &self.job.output else { return None };
        let names = OutputNames {
            job: &self.job.name,
            host,
            run: &self.run.to_string(),
            scheduled_at: self.trigger.scheduled_at,
            zone: self.job.schedule.zone(),
        };
        Some(file.path(&names))
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
        let mut held = HeldRun { assignment, key: &key, lease, held_since, started: BootInstant::now(), pings: None };
        let started_at = self.clock.now();
        let (file, writer) = self.start_writer(assignment).await.unzip();
        let request = self.request(assignment, token, deadline);
        let supervised = match self.spawner.spawn(&request, self.start_given_up(deadline)).await {
            Ok(mut child) => {
                self.exhaustion.started();
                let late = assignment.lateness(started_at);
                events::run_started(assignment.label(Some(token)), late, assignment.kind.as_str(), child.pid());
                held.pings = self.ping_url(assignment).map(|url| self.notices.pings.start(&assignment.job.name, url));
                let pump = child.take_output().map(|output| Pump::start(output, assignment, token, file));
                let running = Running::new(self, assignment, &key, child, held.lease.watch());
                match running.run_out(pump, started_at).await {
                    Some(ending) => self.finish(held, &ending).await,
                    None => self.abandon(held).await,
                }
            }
            Err(error) => {
                drop(file);
                self.not_started(held, error).await
            }
        };
        if let Some(writer) = writer {
            writer.finish(assignment, token).await;
        }
        supervised
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

    /// What becomes of a run whose process is not there: it has failed, unless surely nothing of it
    /// was executed and another host, or a later try, may do better.
    async fn not_started(&self, held: HeldRun<'_>, error: SpawnError) -> Supervised {
        let reason = match &error {
            SpawnError::TooLate => TOO_LATE.to_owned(),
            SpawnError::Exhausted(_) => {
                self.exhaustion.failed();
                error.to_string()
            }
            SpawnError::Job(_) | SpawnError::Hung(_) => {
                return self.finish(held, &failed_to_start(&error, self.clock.now())).await;
            }
            SpawnError::Vanished => return self.abandon(held).await,
        };
        held.lease.stop().await;
        self.give_back(held.assignment, held.key, &reason).await
    }

    /// Nobody knows whether processes of the run are left: its lock is not freed but runs out, after which
    /// recovery counts the run as lost.
    async fn abandon(&self, held: HeldRun<'_>) -> Supervised {
        held.lease.stop().await;
        events::run_abandoned(held.assignment.label(Some(held.key.token)));
        Supervised::Abandoned
    }

    /// Stops the heartbeat, writes the end and frees the lock, in this order.
    async fn finish(&self, mut held: HeldRun<'_>, ending: &Ending) -> Supervised {
        let duration = BootInstant::now().since(held.started);
        held.lease.stop().await;
        let label = held.assignment.label(Some(held.key.token));
        announce(label, self.host.as_str(), ending, duration);
        self.record_end(held.assignment, held.key, ending, held.held_since).await;
        self.ping_end(held.assignment, held.pings.take(), ending);
        self.notices.take(&held.assignment.job, &held.assignment.trigger.target, Occasion::Ended(held.key.run));
        Supervised::Ended
    }

    fn ping_url<'a>(&self, assignment: &'a Assignment) -> Option<&'a PingUrl> {
        assignment.job.notices.as_ref()?.ping_url.as_ref()
    }

    /// A run that was cancelled has not done its work either.
    fn ping_end(&self, assignment: &Assignment, pings: Option<RunPings>, ending: &Ending) {
        let Some(url) = self.ping_url(assignment) else { return };
        let signal = if ending.state == RunState::Succeeded { Signal::Success } else { Signal::Failure };
        let output = ending.output_tail.as_deref().unwrap_or_default();
        self.notices.pings.end(pings, &assignment.job.name, url, signal, output);
    }
}

/// The end of a run whose process could not be started.
fn failed_to_start(error: &SpawnError, finished_at: DateTime<Utc>) -> Ending {
    Ending {
        state: RunState::Failed,
        exit_code: None,
        signal: None,
        reason: Some(error.to_string()),
        started_at: None,
        finished_at,
        output_tail: None,
    }
}

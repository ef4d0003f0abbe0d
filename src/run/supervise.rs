use std::sync::Arc;

use tokio::sync::watch;

use super::assignment::Assignment;
use super::attempt::Attempted;
use super::ending::announce;
use super::exhaustion::Exhaustion;
use super::notices::{Notifier, Occasion, RunPings, Signal};
use super::retrying::Next;
use super::stops::{StopTicket, Stops};
use super::writer::FileWriter;
use crate::clock::{BootInstant, DatabaseClock};
use crate::events;
use crate::fleet::{HostName, InstanceId};
use crate::lease::{Deadline, KeeperHandle, Lease};
use crate::lock::FencingToken;
use crate::shim::Spawner;
use crate::store::{Ending, Grant, RunKey, SharedStore};
use crate::trigger::RunState;

/// Why a claim is given back whose lease is too short for a start.
pub(super) const TOO_LATE: &str = "too_little_time_left";

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
    /// The runs under way, for whoever wants one of them stopped.
    pub stops: Stops,
    /// The database's clock.
    pub clock: Arc<DatabaseClock>,
    /// Written by the daemon, read by every run.
    pub stop: watch::Receiver<Stop>,
}

/// One run after the other under one lease: an attempt, and its retries.
pub(super) struct Tenure {
    pub(super) lease: Lease,
    pub(super) token: FencingToken,
    held_since: BootInstant,
    /// What monitoring services were told.
    pub(super) pings: Option<RunPings>,
    /// The process that writes the files of the attempt.
    pub(super) writer: Option<FileWriter>,
}

impl Tenure {
    /// Waits, not for long, until the files of an attempt that is over are written.
    pub(super) async fn finish_writing(&mut self, assignment: &Assignment) {
        if let Some(writer) = self.writer.take() {
            writer.finish(assignment, self.token).await;
        }
    }
}

impl Runner {
    /// Runs a job from its grant to its end, retries included, and writes the end. Returns when that is
    /// written or can't be.
    ///
    /// # Cancel safety
    /// Dropped, the job is killed and its lease runs out; recovery counts it as lost. It is not to
    /// be raced: stop it through [`Runner::stop`] or [`Runner::stops`].
    pub async fn supervise(&self, assignment: &Arc<Assignment>, grant: &Grant) -> Supervised {
        let timing = assignment.job.timing;
        let key = assignment.key(grant.token);
        if Deadline::of(grant.valid_until, &timing).term_at.has_passed() {
            return self.give_back(assignment, &key, TOO_LATE).await;
        }
        if *self.stop.borrow() != Stop::No {
            return self.give_back(assignment, &key, "draining").await;
        }
        let ticket = self.stops.register(assignment.run);
        let held_since = BootInstant::now();
        let lease = self.keeper.hold(grant, assignment.resource.clone(), assignment.owner.clone(), timing).await;
        let tenure = Tenure { lease, token: grant.token, held_since, pings: None, writer: None };
        self.attempts(assignment.clone(), tenure, ticket).await
    }

    /// Attempts until one doesn't fail, or there is none left.
    async fn attempts(&self, first: Arc<Assignment>, mut tenure: Tenure, mut ticket: StopTicket) -> Supervised {
        let mut current = first;
        loop {
            let began = BootInstant::now();
            let ending = match self.attempt(&current, &mut tenure, &mut ticket).await {
                Attempted::Ended(ending) => ending,
                Attempted::NotStarted(reason) => {
                    tenure.lease.stop().await;
                    return self.give_back(&current, &current.key(tenure.token), &reason).await;
                }
                Attempted::Vanished => return self.abandon(&current, tenure).await,
            };
            let took = BootInstant::now().since(began);
            match self.next(&current, &ending, &tenure).await {
                Next::Attempt(next) => {
                    announce(current.label(Some(tenure.token)), self.host.as_str(), &ending, took);
                    ticket = self.stops.register(next.run);
                    current = next;
                    match self.pause(&current, &tenure, &mut ticket).await {
                        None => {}
                        Some(Attempted::NotStarted(reason)) => {
                            tenure.lease.stop().await;
                            return self.give_back(&current, &current.key(tenure.token), &reason).await;
                        }
                        Some(Attempted::Ended(ending)) => {
                            return self.finish(&current, tenure, &ending, began).await;
                        }
                        Some(Attempted::Vanished) => return self.abandon(&current, tenure).await,
                    }
                }
                Next::End => return self.finish(&current, tenure, &ending, began).await,
                Next::Unknown => return self.abandon(&current, tenure).await,
            }
        }
    }

    /// Nobody knows whether processes of the run are left, or which run is to be ended: its lock is not freed but
    /// runs out, after which recovery counts the run as lost.
    async fn abandon(&self, assignment: &Assignment, tenure: Tenure) -> Supervised {
        tenure.lease.stop().await;
        events::run_abandoned(assignment.label(Some(tenure.token)));
        Supervised::Abandoned
    }

    /// Stops the heartbeat, writes the end and frees the lock, in this order; then tells whom the job tells.
    async fn finish(
        &self,
        assignment: &Arc<Assignment>,
        tenure: Tenure,
        ending: &Ending,
        began: BootInstant,
    ) -> Supervised {
        let took = BootInstant::now().since(began);
        let Tenure { lease, token, held_since, pings, writer } = tenure;
        lease.stop().await;
        announce(assignment.label(Some(token)), self.host.as_str(), ending, took);
        let key: RunKey = assignment.key(token);
        self.record_end(assignment, &key, ending, held_since).await;
        self.ping_end(assignment, pings, ending);
        let ended = assignment.ended(ending, &self.host, token);
        self.notices.take(&assignment.job, &assignment.trigger.target, Occasion::Ended(Box::new(ended)));
        if let Some(writer) = writer {
            writer.finish(assignment, token).await;
        }
        Supervised::Ended
    }

    /// A run that was cancelled has not done its work either.
    fn ping_end(&self, assignment: &Assignment, pings: Option<RunPings>, ending: &Ending) {
        let Some(url) = assignment.ping_url() else { return };
        let signal = if ending.state == RunState::Succeeded { Signal::Success } else { Signal::Failure };
        let output = ending.output_tail.as_deref().unwrap_or_default();
        let text = format!("{output}{}", ending.reason.as_deref().unwrap_or_default());
        self.notices.pings.end(pings, &assignment.job.name, url, signal, &text);
    }
}

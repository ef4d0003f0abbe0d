use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::notices::EndedRun;
use crate::events::RunLabel;
use crate::fleet::HostName;
use crate::job::{Job, OutputNames, OutputTo, PingUrl};
use crate::lock::{FencingToken, Owner, Resource};
use crate::store::{Ending, Follower, RunKey};
use crate::trigger::{RunId, Trigger, TriggerKind};

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

impl Assignment {
    /// The next attempt at the same trigger, under the same lease.
    pub(super) fn again(&self, run: RunId, attempt: u32) -> Self {
        Self { run, attempt, kind: TriggerKind::Retry, retries: self.retries + 1, ..self.clone() }
    }

    /// Where monitoring services are told of it.
    pub(super) fn ping_url(&self) -> Option<&PingUrl> {
        self.job.notices.as_ref()?.ping_url.as_ref()
    }

    /// What is told of its end.
    pub(super) fn ended(&self, ending: &Ending, host: &HostName, token: FencingToken) -> EndedRun {
        EndedRun {
            run: self.run,
            trigger: self.trigger.clone(),
            attempt: self.attempt,
            kind: Some(self.kind),
            state: ending.state,
            reason: ending.reason.clone(),
            exit_code: ending.exit_code,
            signal: ending.signal,
            host: Some(host.to_string()),
            resource: self.resource.clone(),
            token: Some(token),
            started_at: ending.started_at,
            finished_at: Some(ending.finished_at),
            output_tail: ending.output_tail.clone(),
        }
    }

    /// What proves that the run is this host's.
    pub(super) fn key(&self, token: FencingToken) -> RunKey {
        RunKey { run: self.run, owner: self.owner.clone(), resource: self.resource.clone(), token }
    }

    /// How late a run of the schedule starts. A job that starts later than its instant is not late by
    /// that, and what follows another run has no time of its own.
    pub(super) fn lateness(&self, started_at: DateTime<Utc>) -> Option<Duration> {
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

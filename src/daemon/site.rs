use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::fleet::{HostName, InstanceId, Label};
use crate::job::{Job, RunOn};
use crate::lock::Resource;
use crate::trigger::{Origin, Target, Trigger};

/// A host as the jobs see it.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) host: HostName,
    pub(super) labels: BTreeSet<Label>,
}

/// A live daemon.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) instance: InstanceId,
    pub(super) site: Site,
}

impl Site {
    /// Whether it may run a job.
    pub(super) fn may_run(&self, job: &Job) -> bool {
        job.placement.admits(&self.host, &self.labels)
    }

    /// Whether it accounts for a job's triggers that nobody took: those of each host are that host's.
    pub(super) fn settles(&self, job: &Job) -> bool {
        job.placement.run_on == RunOn::One || self.may_run(job)
    }

    /// For whom the triggers of a job are that it takes.
    pub(super) fn target(&self, job: &Job) -> Target {
        match job.placement.run_on {
            RunOn::One => Target::fleet(),
            RunOn::Every => Target::of_host(&self.host),
        }
    }

    /// What a run of a job locks here.
    pub(super) fn resource(&self, job: &Job) -> Resource {
        match job.placement.run_on {
            RunOn::One => job.resource.clone(),
            RunOn::Every => job.resource.on_host(&self.host),
        }
    }

    /// A job's trigger of the schedule.
    pub(super) fn trigger(&self, job: &Job, scheduled_at: DateTime<Utc>) -> Trigger {
        Trigger { job: job.name.clone(), scheduled_at, target: self.target(job), origin: Origin::schedule() }
    }
}

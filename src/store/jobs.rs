//! The port for jobs: what the hosts' files say of them, whether they are paused, and how far their
//! triggers are accounted for.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use super::catch_up::{CatchUpPlan, JobProgress, ProgressQuery};
use crate::fleet::{HostName, InstanceId};
use crate::job::JobName;
use crate::trigger::Target;

/// A job as a host's file has it.
#[derive(Clone, Debug)]
pub struct JobSeen {
    /// Its name.
    pub job: JobName,
    /// What its definition hashes to.
    pub digest: String,
    /// For whom the triggers are that this host accounts for.
    pub target: Target,
    /// Whether this host may run it. If not, the triggers of its own are nobody's: it has no watermark,
    /// and counts as edited once it may. Without a meaning for a job of one host of the fleet.
    pub serves: bool,
    /// How long after its instant a trigger is claimed.
    pub start_delay: Duration,
}

impl JobSeen {
    /// Whether its triggers are accounted for by this host.
    pub(super) fn has_watermark(&self) -> bool {
        self.serves || self.target == Target::fleet()
    }
}

/// A job that live hosts don't have in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Which job; text, for another version may take names that this one refuses.
    pub job: String,
    /// What its definition hashes to, and on which hosts.
    pub versions: Vec<(String, Vec<HostName>)>,
    /// The hosts whose files don't have it.
    pub missing_on: Vec<HostName>,
}

/// A pause that somebody asks for.
#[derive(Clone, Debug)]
pub struct Pausing {
    /// Who, for people.
    pub by: String,
    /// Why, for people.
    pub reason: String,
    /// Until when, by the database's clock; `None` until somebody resumes the job.
    pub until: Option<DateTime<Utc>>,
}

/// The answer to a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// Nothing of the job is claimed any more.
    Paused {
        /// Since when. Earlier than now if it was paused before, and what that pause took is not
        /// accounted for yet.
        from: DateTime<Utc>,
        /// How many waiting runs were closed as missed.
        closed: u64,
    },
    /// Its end is not later than the database's now: nothing was done.
    Over,
    /// No host has ever registered such a job.
    Unknown,
}

/// The answer to the end of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// Triggers from now on are claimed again.
    Resumed {
        /// Since when it was paused.
        from: DateTime<Utc>,
        /// How many runs that had come to wait in the pause were closed as missed.
        closed: u64,
    },
    /// It was not paused.
    NotPaused,
    /// No host has ever registered such a job.
    Unknown,
}

/// Jobs in the shared tables.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Makes jobs known, and forgets what this daemon had before. A job that is new doesn't catch up on
    /// what lay before: its watermark stands at the database's now. Nor does an edited one, but for
    /// triggers whose claims may be on their way: the last 10 s, and `start_delay`. Each target has its
    /// own watermark.
    ///
    /// # Errors
    /// [`StoreError`]; registering again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn register(&self, instance: InstanceId, jobs: &[JobSeen]) -> Result<(), StoreError>;

    /// Jobs that the live daemons have in different versions, or that some of them lack, by name; at
    /// most 100. Looks at the jobs only if the daemons' schedules differ at all.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn disagreements(&self) -> Result<Vec<Disagreement>, StoreError>;

    /// Pauses a job, or changes until when it is paused, and closes its waiting runs as missed. What
    /// runs goes on.
    ///
    /// # Errors
    /// [`StoreError`]; pausing again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn pause(&self, job: &JobName, pausing: &Pausing) -> Result<Paused, StoreError>;

    /// Ends a pause. What came in it never runs: runs that came to wait in it are closed, and catch-up
    /// accounts for the triggers.
    ///
    /// # Errors
    /// [`StoreError`]; resuming again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn resume(&self, job: &JobName) -> Result<Resumed, StoreError>;

    /// What is accounted for, of each of these jobs and targets that is registered, by both.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError>;

    /// Carries a catch-up plan out, if the watermark still stands where the plan began, no trigger was
    /// claimed since, and a job that is to run late is not paused, nor has a newer trigger that forbids
    /// it. `Ok(false)`: something moved; nothing
    /// was written, and the plan is to be made anew.
    ///
    /// # Errors
    /// [`StoreError`]; sent again, it answers false.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn catch_up(&self, plan: &CatchUpPlan) -> Result<bool, StoreError>;
}

/// Gathers what was found of odd jobs: their names, each daemon's version if it has one, and its host;
/// in that order.
pub(super) fn gather(found: impl IntoIterator<Item = (String, Option<String>, HostName)>) -> Vec<Disagreement> {
    let mut gathered: Vec<Disagreement> = Vec::new();
    for (job, digest, host) in found {
        if gathered.last().is_none_or(|last| last.job != job) {
            gathered.push(Disagreement { job, versions: Vec::new(), missing_on: Vec::new() });
        }
        let Some(last) = gathered.last_mut() else { continue };
        let hosts = match digest {
            None => &mut last.missing_on,
            Some(digest) => {
                if last.versions.last().is_none_or(|(known, _)| *known != digest) {
                    last.versions.push((digest, Vec::new()));
                }
                let Some((_, hosts)) = last.versions.last_mut() else { continue };
                hosts
            }
        };
        // Several daemons of one host are one host.
        if hosts.last() != Some(&host) {
            hosts.push(host);
        }
    }
    gathered
}

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::job::{Job, JobName};
use crate::store::JobSeen;
use crate::trigger::Target;

/// The jobs of one reading of the schedule.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    jobs: BTreeMap<JobName, Planned>,
    /// What the whole schedule hashes to.
    pub digest: String,
}

#[derive(Clone, Debug)]
struct Planned {
    job: Arc<Job>,
    digest: String,
}

impl Plan {
    /// A plan of jobs, each with what its definition hashes to.
    pub fn new(jobs: impl IntoIterator<Item = (Job, String)>, digest: String) -> Self {
        let planned = |(job, digest): (Job, String)| (job.name.clone(), Planned { job: Arc::new(job), digest });
        Self { jobs: jobs.into_iter().map(planned).collect(), digest }
    }

    /// How many jobs there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is no job.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// A job that ticks; `None` if it is not in the schedule, or switched off.
    pub(super) fn get(&self, name: &JobName) -> Option<&Arc<Job>> {
        self.jobs.get(name).map(|planned| &planned.job).filter(|job| job.enabled)
    }

    /// All jobs that tick.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values().map(|planned| &planned.job).filter(|job| job.enabled)
    }

    /// What the tables are told of the jobs.
    pub(super) fn seen(&self) -> Vec<JobSeen> {
        let seen = |(name, planned): (&JobName, &Planned)| JobSeen {
            job: name.clone(),
            digest: planned.digest.clone(),
            target: Target::fleet(),
            start_delay: planned.job.start_delay,
        };
        self.jobs.iter().map(seen).collect()
    }

    /// How old a trigger may be at most and still be claimed.
    pub(super) fn horizon(&self) -> Duration {
        let of = |planned: &Planned| planned.job.catch_up_max_age.max(planned.job.start_deadline);
        self.jobs.values().map(of).max().unwrap_or_default() + Duration::from_secs(60)
    }

    /// The longest time that any lock of this schedule may live without its holder.
    pub(super) fn longest_ttl(&self, at_least: Duration) -> Duration {
        self.jobs.values().map(|planned| planned.job.timing.ttl().get()).fold(at_least, Duration::max)
    }
}

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::catch_up::{LONGEST_SWEEP_PAUSE, reruns};
use super::site::Site;
use crate::job::{Job, JobName};
use crate::store::{Follower, JobSeen};
use crate::trigger::RunId;

/// The jobs of one reading of the schedule.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    jobs: BTreeMap<JobName, Planned>,
    /// Which jobs run after the success of one.
    followers: BTreeMap<JobName, Vec<Arc<Job>>>,
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
        let jobs: BTreeMap<_, _> = jobs.into_iter().map(planned).collect();
        let mut followers: BTreeMap<JobName, Vec<Arc<Job>>> = BTreeMap::new();
        for job in jobs.values().map(|planned| &planned.job).filter(|job| job.enabled) {
            for upstream in &job.after {
                followers.entry(upstream.clone()).or_default().push(job.clone());
            }
        }
        Self { jobs, followers, digest }
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

    /// Those that a host may run.
    pub(super) fn jobs_on(&self, site: &Site) -> Vec<Arc<Job>> {
        self.jobs().filter(|job| site.may_run(job)).cloned().collect()
    }

    /// What is made to wait when a job succeeds on a host.
    pub(super) fn followers(&self, job: &Job, site: &Site) -> Vec<Follower> {
        let follower = |follower: &Arc<Job>| Follower {
            run: RunId::generate(),
            job: follower.name.clone(),
            upstreams: follower.after.clone(),
            resource: site.resource(follower),
            start_deadline: follower.start_deadline,
            reruns_left: reruns(follower),
        };
        self.followers.get(&job.name).into_iter().flatten().map(follower).collect()
    }

    /// What the tables are told of the jobs. What was due later by the plan `before` may still be on its
    /// way when a job is edited.
    pub(super) fn seen(&self, site: &Site, before: &Self) -> Vec<JobSeen> {
        let seen = |planned: &Planned| JobSeen {
            job: planned.job.name.clone(),
            digest: planned.digest.clone(),
            target: site.target(&planned.job),
            serves: site.settles(&planned.job),
            start_delay: planned.job.start_delay.max(before.start_delay(&planned.job.name)),
        };
        self.jobs.values().map(seen).collect()
    }

    /// The jobs that are not the same in the plan `before`.
    pub(super) fn edited(&self, before: &Self) -> Vec<JobName> {
        let is_same =
            |planned: &&Planned| before.jobs.get(&planned.job.name).is_some_and(|known| known.digest == planned.digest);
        self.jobs.values().filter(|planned| !is_same(planned)).map(|planned| planned.job.name.clone()).collect()
    }

    fn start_delay(&self, job: &JobName) -> Duration {
        self.jobs.get(job).map_or(Duration::ZERO, |planned| planned.job.start_delay)
    }

    /// How old a trigger may be at most and still be claimed.
    pub(super) fn horizon(&self) -> Duration {
        let of =
            |planned: &Planned| planned.job.catch_up_max_age.max(planned.job.start_deadline) + planned.job.start_delay;
        let oldest = self.jobs.values().map(of).max().unwrap_or_default();
        // What a pause or an outage took is accounted for by the next sweep of all jobs, which waits
        // while the clock is not believed.
        oldest + LONGEST_SWEEP_PAUSE + self.longest_ttl(Duration::from_secs(60))
    }

    /// The longest time that any lock of this schedule may live without its holder.
    pub(super) fn longest_ttl(&self, at_least: Duration) -> Duration {
        self.jobs.values().map(|planned| planned.job.timing.ttl().get()).fold(at_least, Duration::max)
    }
}

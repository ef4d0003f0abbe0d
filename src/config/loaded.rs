use std::collections::BTreeMap;

use super::digest::{Canon, Digest};
use super::problem::{Problem, Scope};
use super::settings::Settings;
use super::ticking::InWords;
use crate::job::{Job, JobName};
use crate::lock::Ttl;

/// What a loading brought.
#[derive(Debug)]
pub struct Loaded {
    /// The settings; `None` if something is wrong with them. Jobs that are wrong don't take them away,
    /// so that commands which need the database alone go on working.
    pub settings: Option<Settings>,
    /// The jobs, in the order of their names. Those of a file with a problem are left out, all of them:
    /// half of a file may not be what its author meant.
    pub jobs: Vec<Job>,
    /// All that is wrong, in the order of the files and of their lines.
    pub problems: Vec<Problem>,
    /// What may be wrong on this host; only a check-up looks for it.
    pub warnings: Vec<Problem>,
    /// What the jobs' keys say about when and where they run; only a check-up puts it in words. In the
    /// order of the files, and of the names in each.
    pub words: Vec<InWords>,
    digests: BTreeMap<JobName, Digest>,
}

impl Loaded {
    pub(super) fn new(settings: Option<Settings>, jobs: Vec<(Job, Digest)>, problems: Vec<Problem>) -> Self {
        let digests = jobs.iter().map(|(job, digest)| (job.name.clone(), *digest)).collect();
        let mut jobs: Vec<Job> = jobs.into_iter().map(|(job, _)| job).collect();
        jobs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Self { settings, jobs, problems, warnings: Vec::new(), words: Vec::new(), digests }
    }

    /// The same, with what a check-up found.
    pub(super) fn checked(self, warnings: Vec<Problem>, words: Vec<InWords>) -> Self {
        Self { warnings, words, ..self }
    }

    /// Whether a daemon can run with it: nothing is wrong with the main file, and there is a job.
    ///
    /// Problems of job files may remain; a check-up and a reload refuse those too.
    pub fn is_usable(&self) -> bool {
        let fatal = self.problems.iter().any(|problem| problem.scope == Scope::Settings);
        !fatal && self.settings.is_some() && !self.jobs.is_empty()
    }

    /// The longest TTL of any job: after that long, every lease of a daemon that is gone has ended.
    /// `None` without a job.
    pub fn longest_ttl(&self) -> Option<Ttl> {
        self.jobs.iter().map(|job| job.timing.ttl()).max()
    }

    /// What all jobs together say: hosts that differ here run different schedules.
    pub fn schedule_digest(&self) -> Digest {
        let mut canon = Canon::default();
        self.digests.values().for_each(|digest| canon.add("job", digest));
        canon.digest()
    }

    /// What one job says, its description apart; `None` for a job that is not there.
    pub fn digest_of(&self, job: &JobName) -> Option<Digest> {
        self.digests.get(job).copied()
    }
}

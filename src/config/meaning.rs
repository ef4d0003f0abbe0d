use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::catch_up;
use super::digest::Digest;
use super::document::Field;
use super::problem::Problem;
use super::ticking::Ticking;
use super::timing::TypedTiming;
use super::typed_job::{NamedJob, OnCrashWord, OverlapWord, TypedJob};
use crate::job::schedule::Schedule;
use crate::job::{CatchUp, Command, Job, JobName, OnCrash, OnLeaseLost, Overlap, SuccessCodes, start_delay};
use crate::lock::{LeaseTiming, Resource};

const START_DEADLINE: Duration = Duration::from_secs(5 * 60);
const MAX_RERUNS: u32 = 2;

/// What a job's own keys are laid over.
#[derive(Debug, Default)]
pub struct Base {
    /// `[defaults]`.
    pub defaults: TypedJob,
    /// `[lock]` with the timing keys of `[defaults]` laid over it.
    pub timing: TypedTiming,
    /// `timezone` of `[daemon]`.
    pub zone: Field<Tz>,
}

/// Makes a job of its table, or tells why there is none. No problem means that it was told before.
/// `keys` are the job's laid over the defaults.
pub fn of(job: &NamedJob, keys: &TypedJob, base: &Base, now: DateTime<Utc>) -> Result<(Job, Digest), Vec<Problem>> {
    Making { job, base, now, keys, problems: Vec::new() }.finish()
}

/// One job in the making.
struct Making<'a> {
    job: &'a NamedJob,
    base: &'a Base,
    now: DateTime<Utc>,
    /// The job's keys laid over the defaults.
    keys: &'a TypedJob,
    problems: Vec<Problem>,
}

impl Making<'_> {
    fn finish(mut self) -> Result<(Job, Digest), Vec<Problem>> {
        let parts = (self.schedule(), self.command(), self.timing());
        let (overlap, on_crash) = (self.overlap(), self.on_crash());
        let (catch_up, resource) = (self.catch_up(), self.resource());
        self.judge_the_rest();
        let ((Some(schedule), Some(command), Some(timing)), true) = (parts, self.problems.is_empty()) else {
            return Err(self.problems);
        };
        let Self { job, keys, now, .. } = self;
        let default_max_age = || catch_up::default_max_age(catch_up, &schedule, now);
        let upstream = keys.ticking.ticks.typed().map(|ticks| ticks.value.upstream()).unwrap_or_default();
        let made = Job {
            name: job.name.clone(),
            description: keys.description.value(),
            enabled: keys.enabled.value_or(true),
            command,
            resource,
            timing,
            overlap,
            timeout: keys.timeout.value(),
            env: keys.env.value_or(BTreeMap::new()),
            directory: keys.directory.value(),
            process: keys.process.meaning(),
            success_codes: keys.outcome.success_codes.value_or(SuccessCodes::default()),
            retries: keys.outcome.retries(),
            on_lease_lost: keys.outcome.on_lease_lost.value_or(OnLeaseLost::default()),
            output: keys.output.meaning(),
            notices: keys.notices.meaning(),
            on_crash,
            start_deadline: keys.start_deadline.value_or(START_DEADLINE),
            catch_up,
            catch_up_max_age: keys.catch_up.max_age.value().unwrap_or_else(default_max_age),
            start_delay: delay_of(job, keys, &schedule),
            schedule,
            after: upstream.iter().map(|name| name.value.clone()).collect(),
            placement: keys.placement.meaning(),
        };
        let digest = Digest::of_job(&made, keys.catch_up.max_age.value());
        Ok((made, digest))
    }

    fn schedule(&mut self) -> Option<Schedule> {
        let ticking = Ticking {
            job: &self.job.name,
            own: &self.job.keys.ticking,
            keys: &self.keys.ticking,
            zone: self.keys.ticking.timezone.or(&self.base.zone).value_or(Tz::UTC),
        };
        ticking.schedule().map_err(|refused| self.problems.extend(refused)).ok()
    }

    fn command(&mut self) -> Option<Command> {
        if self.keys.command.is_absent() {
            self.miss("command", "write command = [\"/PATH/TO/PROGRAM\", \"ARGUMENT\"] or shell = \"...\"");
        }
        self.keys.command.value()
    }

    /// A job without timing keys of its own has the base's, and what is wrong with that was told there.
    fn timing(&mut self) -> Option<LeaseTiming> {
        let own = &self.job.keys.timing;
        if own.over(&self.base.timing).is_refused() {
            return None;
        }
        let judged = own.judge_over(&self.base.timing);
        if own.is_absent() {
            return judged.ok();
        }
        judged.map_err(|problem| self.problems.push(*problem)).ok()
    }

    /// `wait_for` in `[defaults]` is for those jobs that wait; in a job that doesn't it is a mistake.
    fn overlap(&mut self) -> Overlap {
        let start_deadline = self.keys.start_deadline.value_or(START_DEADLINE);
        let wait_for = self.keys.wait_for.value_or(start_deadline);
        match self.keys.overlap.value_or(OverlapWord::Skip) {
            OverlapWord::Wait => return Overlap::Wait(wait_for),
            OverlapWord::Replace => return Overlap::Replace(wait_for),
            OverlapWord::Skip => {}
        }
        if !self.keys.overlap.is_refused() {
            self.problems.extend(self.job.keys.wait_for.needs("wait_for", "overlap = \"wait\" or \"replace\""));
        }
        Overlap::Skip
    }

    /// `max_reruns` is judged as `wait_for`.
    fn on_crash(&mut self) -> OnCrash {
        if self.keys.on_crash.value() == Some(OnCrashWord::Rerun) {
            return OnCrash::Rerun { max: self.keys.max_reruns.value_or(MAX_RERUNS) };
        }
        if !self.keys.on_crash.is_refused() {
            self.problems.extend(self.job.keys.max_reruns.needs("max_reruns", "on_crash = \"rerun\""));
        }
        OnCrash::Record
    }

    fn catch_up(&mut self) -> CatchUp {
        let (own, keys) = (&self.job.keys.catch_up, &self.keys.catch_up);
        self.problems.extend(own.meaningless(keys, self.keys.ticking.has_instants()));
        keys.meaning()
    }

    /// Keys that hang on others of their own kind.
    fn judge_the_rest(&mut self) {
        let (own, keys) = (&self.job.keys, self.keys);
        self.problems.extend(own.outcome.problems(&keys.outcome));
        self.problems.extend(own.output.meaningless(&keys.output));
        self.problems.extend(own.notices.meaningless(&keys.notices));
    }

    fn resource(&mut self) -> Resource {
        let typed = self.keys.lock.typed();
        let resource = typed.map_or_else(|| own_lock(&self.job.name), |typed| typed.value.clone());
        let place = || typed.map_or_else(|| self.job.place.absent("lock"), |typed| typed.place.clone());
        if !self.keys.lock.is_refused() {
            self.problems.extend(self.keys.placement.judge_lock(&resource, &place()));
        }
        resource
    }

    fn miss(&mut self, key: &str, remedy: &str) {
        self.problems.push(self.job.place.absent(key).problem("missing", remedy).resting_on_others());
    }
}

/// A job that doesn't tick by itself has none, whatever `[defaults]` say.
fn delay_of(job: &NamedJob, keys: &TypedJob, schedule: &Schedule) -> Duration {
    let splay = keys.ticking.splay.value().filter(|_| !schedule.is_by_hand());
    splay.map_or(Duration::ZERO, |splay| start_delay(&job.name, splay))
}

/// The lock of a job that names none.
fn own_lock(name: &JobName) -> Resource {
    Resource::new(format!("job:{name}")).expect("a job's name is short enough and not blank")
}

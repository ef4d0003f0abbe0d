use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::catch_up;
use super::digest::{Canon, Digest};
use super::document::{Field, Typed};
use super::problem::Problem;
use super::ticking;
use super::timing::TypedTiming;
use super::typed_job::{NamedJob, OnCrashWord, OverlapWord, TypedJob};
use crate::job::schedule::Schedule;
use crate::job::{CatchUp, Command, Job, JobName, OnCrash, Overlap, Placement};
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
pub fn of(job: &NamedJob, base: &Base, now: DateTime<Utc>) -> Result<(Job, Digest), Vec<Problem>> {
    let keys = job.keys.over(&base.defaults);
    Making { job, base, now, keys, problems: Vec::new() }.finish()
}

/// One job in the making.
struct Making<'a> {
    job: &'a NamedJob,
    base: &'a Base,
    now: DateTime<Utc>,
    /// The job's keys laid over the defaults.
    keys: TypedJob,
    problems: Vec<Problem>,
}

impl Making<'_> {
    fn finish(mut self) -> Result<(Job, Digest), Vec<Problem>> {
        let parts = (self.schedule(), self.command(), self.timing());
        let (overlap, on_crash) = (self.overlap(), self.on_crash());
        let ((Some(schedule), Some(command), Some(timing)), true) = (parts, self.problems.is_empty()) else {
            return Err(self.problems);
        };
        let Self { job, keys, now, .. } = self;
        let default_max_age = || catch_up::default_max_age(&schedule, now);
        let made = Job {
            name: job.name.clone(),
            description: keys.description.value(),
            enabled: keys.enabled.value_or(true),
            command,
            resource: keys.lock.value().unwrap_or_else(|| own_lock(&job.name)),
            timing,
            overlap,
            timeout: keys.timeout.value(),
            env: keys.env.value_or(BTreeMap::new()),
            directory: keys.directory.value(),
            on_crash,
            start_deadline: keys.start_deadline.value_or(START_DEADLINE),
            catch_up: keys.catch_up.value_or(CatchUp::Latest),
            catch_up_max_age: keys.catch_up_max_age.value().unwrap_or_else(default_max_age),
            schedule,
            start_delay: Duration::ZERO,
            after: Vec::new(),
            placement: Placement::default(),
        };
        let digest = digest(&made, &keys);
        Ok((made, digest))
    }

    fn schedule(&mut self) -> Option<Schedule> {
        if self.keys.schedule.is_absent() {
            self.miss("schedule", "write schedule = \"15 2 * * *\" (minute, hour, day, month, weekday)");
        }
        let expressions = self.keys.schedule.typed()?;
        let zone = self.keys.timezone.or(&self.base.zone).value_or(Tz::UTC);
        ticking::schedule(&expressions.value, zone, self.now).map_err(|refused| self.problems.extend(refused)).ok()
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
        if self.keys.overlap.value() == Some(OverlapWord::Wait) {
            let start_deadline = self.keys.start_deadline.value_or(START_DEADLINE);
            return Overlap::Wait(self.keys.wait_for.value_or(start_deadline));
        }
        if let (Some(wait_for), false) = (self.job.keys.wait_for.typed(), self.keys.overlap.is_refused()) {
            self.problems.push(needs(wait_for, "wait_for", "overlap = \"wait\""));
        }
        Overlap::Skip
    }

    /// `max_reruns` is judged as `wait_for`.
    fn on_crash(&mut self) -> OnCrash {
        if self.keys.on_crash.value() == Some(OnCrashWord::Rerun) {
            return OnCrash::Rerun { max: self.keys.max_reruns.value_or(MAX_RERUNS) };
        }
        if let (Some(max_reruns), false) = (self.job.keys.max_reruns.typed(), self.keys.on_crash.is_refused()) {
            self.problems.push(needs(max_reruns, "max_reruns", "on_crash = \"rerun\""));
        }
        OnCrash::Record
    }

    fn miss(&mut self, key: &str, remedy: &str) {
        self.problems.push(self.job.place.absent(key).problem("missing", remedy).resting_on_others());
    }
}

/// The lock of a job that names none.
fn own_lock(name: &JobName) -> Resource {
    Resource::new(format!("job:{name}")).expect("a job's name is short enough and not blank")
}

fn needs<T>(typed: &Typed<T>, key: &str, other: &str) -> Problem {
    let (wrong, remedy) = (format!("means nothing without {other}"), format!("write {other}, or remove {key}"));
    typed.place.problem(wrong, remedy).resting_on_others()
}

/// The digest of everything that changes what a job does or when: not its description, and not the
/// default of `catch_up_max_age`, which depends on the moment of reading.
fn digest(job: &Job, keys: &TypedJob) -> Digest {
    let mut canon = Canon::default();
    canon.add("name", &job.name);
    canon.add("enabled", job.enabled);
    canon.add("timezone", job.schedule.zone());
    for expression in job.schedule.expressions() {
        canon.add("schedule", expression.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    job.command.argv().iter().for_each(|argument| canon.add("argument", argument));
    canon.add("lock", &job.resource);
    canon.add("ttl_ms", job.timing.ttl().as_millis());
    canon.add("heartbeat_ms", job.timing.heartbeat().as_millis());
    canon.add("kill_grace_ms", job.timing.kill_grace().as_millis());
    match job.overlap {
        Overlap::Skip => canon.add("overlap", "skip"),
        Overlap::Wait(wait_for) => canon.add("wait_for_ms", wait_for.as_millis()),
    }
    job.timeout.iter().for_each(|timeout| canon.add("timeout_ms", timeout.as_millis()));
    for (name, value) in &job.env {
        canon.add("variable", name);
        canon.add("value", value);
    }
    job.directory.iter().for_each(|directory| canon.add("directory", directory.display()));
    match job.on_crash {
        OnCrash::Record => canon.add("on_crash", "record"),
        OnCrash::Rerun { max } => canon.add("max_reruns", max),
    }
    canon.add("start_deadline_ms", job.start_deadline.as_millis());
    match job.catch_up {
        CatchUp::Latest => canon.add("catch_up", "latest"),
        CatchUp::None => canon.add("catch_up", "none"),
        CatchUp::All { max_runs, spacing } => {
            canon.add("catch_up_max_runs", max_runs);
            canon.add("catch_up_spacing_ms", spacing.as_millis());
        }
    }
    keys.catch_up_max_age.value().iter().for_each(|age| canon.add("catch_up_max_age_ms", age.as_millis()));
    canon.digest()
}

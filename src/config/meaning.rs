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
use crate::job::{CatchUp, Command, Job, JobName, OnCrash, Overlap};
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
    let mut problems = Vec::new();
    let zone = keys.timezone.or(&base.zone).value_or(Tz::UTC);
    let schedule = schedule(job, &keys, (zone, now), &mut problems);
    let command = command(job, &keys, &mut problems);
    let timing = timing(job, base, &mut problems);
    let start_deadline = keys.start_deadline.value_or(START_DEADLINE);
    let overlap = overlap(job, &keys, start_deadline, &mut problems);
    let on_crash = on_crash(job, &keys, &mut problems);
    let (Some(schedule), Some(command), Some(timing), true) = (schedule, command, timing, problems.is_empty()) else {
        return Err(problems);
    };
    let catch_up_max_age = keys.catch_up_max_age.value().unwrap_or_else(|| catch_up::default_max_age(&schedule, now));
    let made = Job {
        name: job.name.clone(),
        description: keys.description.value(),
        enabled: keys.enabled.value_or(true),
        schedule,
        command,
        resource: keys.lock.value().unwrap_or_else(|| own_lock(&job.name)),
        timing,
        overlap,
        timeout: keys.timeout.value(),
        env: keys.env.value_or(BTreeMap::new()),
        directory: keys.directory.value(),
        on_crash,
        start_deadline,
        catch_up: keys.catch_up.value_or(CatchUp::Latest),
        catch_up_max_age,
    };
    let digest = digest(&made, &keys);
    Ok((made, digest))
}

/// The lock of a job that names none.
fn own_lock(name: &JobName) -> Resource {
    Resource::new(format!("job:{name}")).expect("a job's name is short enough and not blank")
}

fn schedule(
    job: &NamedJob,
    keys: &TypedJob,
    (zone, now): (Tz, DateTime<Utc>),
    problems: &mut Vec<Problem>,
) -> Option<Schedule> {
    if keys.schedule.is_absent() {
        let remedy = "write schedule = \"15 2 * * *\" (minute, hour, day, month, weekday)";
        problems.push(job.place.absent("schedule").problem("missing", remedy).resting_on_others());
    }
    let expressions = keys.schedule.typed()?;
    ticking::schedule(&expressions.value, zone, now).map_err(|refused| problems.extend(refused)).ok()
}

fn command(job: &NamedJob, keys: &TypedJob, problems: &mut Vec<Problem>) -> Option<Command> {
    if keys.command.is_absent() {
        let remedy = "write command = [\"/PATH/TO/PROGRAM\", \"ARGUMENT\"] or shell = \"...\"";
        problems.push(job.place.absent("command").problem("missing", remedy).resting_on_others());
    }
    keys.command.value()
}

/// A job without timing keys of its own has the base's, and what is wrong with that was told there.
fn timing(job: &NamedJob, base: &Base, problems: &mut Vec<Problem>) -> Option<LeaseTiming> {
    let own = &job.keys.timing;
    if own.over(&base.timing).is_refused() {
        return None;
    }
    let judged = own.judge_over(&base.timing);
    if own.is_absent() {
        return judged.ok();
    }
    judged.map_err(|problem| problems.push(*problem)).ok()
}

/// `wait_for` in `[defaults]` is for those jobs that wait; in a job that doesn't it is a mistake.
fn overlap(job: &NamedJob, keys: &TypedJob, start_deadline: Duration, problems: &mut Vec<Problem>) -> Overlap {
    match (keys.overlap.value_or(OverlapWord::Skip), job.keys.wait_for.typed()) {
        (OverlapWord::Wait, _) => return Overlap::Wait(keys.wait_for.value_or(start_deadline)),
        (OverlapWord::Skip, Some(wait_for)) if !keys.overlap.is_refused() => {
            let remedy = "write overlap = \"wait\", or remove wait_for";
            problems.push(needs(wait_for, "overlap = \"wait\"", remedy));
        }
        (OverlapWord::Skip, _) => {}
    }
    Overlap::Skip
}

fn on_crash(job: &NamedJob, keys: &TypedJob, problems: &mut Vec<Problem>) -> OnCrash {
    match (keys.on_crash.value_or(OnCrashWord::Record), job.keys.max_reruns.typed()) {
        (OnCrashWord::Rerun, _) => return OnCrash::Rerun { max: keys.max_reruns.value_or(MAX_RERUNS) },
        (OnCrashWord::Record, Some(max_reruns)) if !keys.on_crash.is_refused() => {
            let remedy = "write on_crash = \"rerun\", or remove max_reruns";
            problems.push(needs(max_reruns, "on_crash = \"rerun\"", remedy));
        }
        (OnCrashWord::Record, _) => {}
    }
    OnCrash::Record
}

fn needs<T>(key: &Typed<T>, other: &str, remedy: &str) -> Problem {
    key.place.problem(format!("means nothing without {other}"), remedy).resting_on_others()
}

/// The digest of everything that changes what a job does or when: not its description, and not the
/// default of `catch_up_max_age`, which depends on the moment of reading.
fn digest(job: &Job, keys: &TypedJob) -> Digest {
    let mut canon = Canon::default();
    canon.add("name", &job.name);
    canon.add("enabled", job.enabled);
    canon.add("timezone", job.schedule.zone());
    for expression in keys.schedule.typed().into_iter().flat_map(|typed| &typed.value) {
        canon.add("schedule", expression.value.split_whitespace().collect::<Vec<_>>().join(" "));
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
    }
    keys.catch_up_max_age.value().iter().for_each(|age| canon.add("catch_up_max_age_ms", age.as_millis()));
    canon.digest()
}

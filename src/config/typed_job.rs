use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::catch_up::TypedCatchUp;
use super::command::{read_command, read_env};
use super::document::{Field, Place, Section, Typed, Value};
use super::placement::TypedPlacement;
use super::ticking::TypedTicking;
use super::timing::TypedTiming;
use crate::job::{Command, JobName};
use crate::lock::Resource;

/// A job as it was typed, or `[defaults]`, which takes the same keys.
#[derive(Clone, Debug, Default)]
pub struct TypedJob {
    pub description: Field<String>,
    pub enabled: Field<bool>,
    pub ticking: TypedTicking,
    pub command: Field<Command>,
    pub lock: Field<Resource>,
    pub timing: TypedTiming,
    pub overlap: Field<OverlapWord>,
    pub wait_for: Field<Duration>,
    pub timeout: Field<Duration>,
    pub env: Field<BTreeMap<String, String>>,
    pub directory: Field<PathBuf>,
    pub placement: TypedPlacement,
    pub on_crash: Field<OnCrashWord>,
    pub max_reruns: Field<u32>,
    pub start_deadline: Field<Duration>,
    pub catch_up: TypedCatchUp,
}

/// A job's table with its name.
#[derive(Clone, Debug)]
pub struct NamedJob {
    /// The name.
    pub name: JobName,
    /// Where the table stands.
    pub place: Place,
    /// What it says.
    pub keys: TypedJob,
}

/// `overlap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlapWord {
    Skip,
    Wait,
    Replace,
}

/// `on_crash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCrashWord {
    Record,
    Rerun,
}

/// Below this a bound on waiting or running would only ever be a mistake.
const MOMENT: Duration = Duration::from_secs(1);
/// Enough for any cluster; a job that was lost more often is the cause.
const MOST_RERUNS: u32 = 100;

impl NamedJob {
    /// Reads a job's table; `None`, with a problem told, if its name can't name a job.
    pub fn read(name: &str, section: &mut Section<'_>) -> Option<Self> {
        let keys = TypedJob::read(section);
        let place = section.place().clone();
        match JobName::new(name) {
            Ok(name) => Some(Self { name, place, keys }),
            Err(error) => {
                section.push(place.problem(error.to_string(), "rename it"));
                None
            }
        }
    }
}

impl TypedJob {
    /// Reads the keys of a job.
    pub fn read(section: &mut Section<'_>) -> Self {
        Self {
            description: section.field("description", Value::string),
            enabled: section.field("enabled", Value::boolean),
            ticking: TypedTicking::read(section),
            command: read_command(section),
            lock: section.field("lock", |value| value.checked(Resource::new)),
            timing: TypedTiming::read(section),
            overlap: section.field("overlap", |value| {
                value.word(
                    &[("skip", OverlapWord::Skip), ("wait", OverlapWord::Wait), ("replace", OverlapWord::Replace)],
                    &[],
                )
            }),
            wait_for: section.field("wait_for", |value| value.duration(MOMENT)),
            timeout: section.field("timeout", |value| value.duration(MOMENT)),
            env: section.field("env", read_env),
            directory: section.field("directory", Value::absolute_path),
            placement: TypedPlacement::read(section),
            on_crash: section.field("on_crash", |value| {
                value.word(&[("record", OnCrashWord::Record), ("rerun", OnCrashWord::Rerun)], &[])
            }),
            max_reruns: section.field("max_reruns", |value| value.whole_number(1..=MOST_RERUNS)),
            start_deadline: section.field("start_deadline", |value| value.duration(MOMENT)),
            catch_up: TypedCatchUp::read(section),
        }
    }

    /// These keys, and the defaults' where these are absent. Variables are merged one by one.
    pub fn over(&self, defaults: &Self) -> Self {
        let mut env = defaults.env.value_or(BTreeMap::new());
        env.extend(self.env.value_or(BTreeMap::new()));
        let merged_env = match self.env.or(&defaults.env) {
            Field::Typed(typed) => Field::Typed(Typed { value: env, ..typed }),
            other => other,
        };
        Self {
            description: self.description.or(&defaults.description),
            enabled: self.enabled.or(&defaults.enabled),
            ticking: self.ticking.over(&defaults.ticking),
            command: self.command.or(&defaults.command),
            lock: self.lock.or(&defaults.lock),
            timing: self.timing.over(&defaults.timing),
            overlap: self.overlap.or(&defaults.overlap),
            wait_for: self.wait_for.or(&defaults.wait_for),
            timeout: self.timeout.or(&defaults.timeout),
            env: merged_env,
            directory: self.directory.or(&defaults.directory),
            placement: self.placement.over(&defaults.placement),
            on_crash: self.on_crash.or(&defaults.on_crash),
            max_reruns: self.max_reruns.or(&defaults.max_reruns),
            start_deadline: self.start_deadline.or(&defaults.start_deadline),
            catch_up: self.catch_up.over(&defaults.catch_up),
        }
    }
}

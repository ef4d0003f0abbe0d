use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use chrono_tz::Tz;

use super::document::{Field, Place, Refused, Section, Typed, Value};
use super::ticking;
use super::timing::TypedTiming;
use crate::job::{CatchUp, Command, JobName};
use crate::lock::Resource;

/// A job as it was typed, or `[defaults]`, which takes the same keys.
#[derive(Clone, Debug, Default)]
pub struct TypedJob {
    pub description: Field<String>,
    pub enabled: Field<bool>,
    pub schedule: Field<Vec<Typed<String>>>,
    pub timezone: Field<Tz>,
    pub command: Field<Command>,
    pub lock: Field<Resource>,
    pub timing: TypedTiming,
    pub overlap: Field<OverlapWord>,
    pub wait_for: Field<Duration>,
    pub timeout: Field<Duration>,
    pub env: Field<BTreeMap<String, String>>,
    pub directory: Field<PathBuf>,
    pub on_crash: Field<OnCrashWord>,
    pub max_reruns: Field<u32>,
    pub start_deadline: Field<Duration>,
    pub catch_up: Field<CatchUp>,
    pub catch_up_max_age: Field<Duration>,
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
            schedule: read_schedule(section),
            timezone: section.field("timezone", read_zone),
            command: read_command(section),
            lock: section.field("lock", |value| value.checked(Resource::new)),
            timing: TypedTiming::read(section),
            overlap: section.field("overlap", |value| {
                value.word(&[("skip", OverlapWord::Skip), ("wait", OverlapWord::Wait)], &["replace"])
            }),
            wait_for: section.field("wait_for", |value| value.duration(MOMENT)),
            timeout: section.field("timeout", |value| value.duration(MOMENT)),
            env: section.field("env", read_env),
            directory: section.field("directory", Value::absolute_path),
            on_crash: section.field("on_crash", |value| {
                value.word(&[("record", OnCrashWord::Record), ("rerun", OnCrashWord::Rerun)], &[])
            }),
            max_reruns: section.field("max_reruns", |value| value.whole_number(1..=MOST_RERUNS)),
            start_deadline: section.field("start_deadline", |value| value.duration(MOMENT)),
            catch_up: section.field("catch_up", |value| {
                value.word(&[("latest", CatchUp::Latest), ("none", CatchUp::None)], &["all"])
            }),
            catch_up_max_age: section.field("catch_up_max_age", |value| value.duration(MOMENT)),
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
            schedule: self.schedule.or(&defaults.schedule),
            timezone: self.timezone.or(&defaults.timezone),
            command: self.command.or(&defaults.command),
            lock: self.lock.or(&defaults.lock),
            timing: self.timing.over(&defaults.timing),
            overlap: self.overlap.or(&defaults.overlap),
            wait_for: self.wait_for.or(&defaults.wait_for),
            timeout: self.timeout.or(&defaults.timeout),
            env: merged_env,
            directory: self.directory.or(&defaults.directory),
            on_crash: self.on_crash.or(&defaults.on_crash),
            max_reruns: self.max_reruns.or(&defaults.max_reruns),
            start_deadline: self.start_deadline.or(&defaults.start_deadline),
            catch_up: self.catch_up.or(&defaults.catch_up),
            catch_up_max_age: self.catch_up_max_age.or(&defaults.catch_up_max_age),
        }
    }
}

/// Reads the name of a zone.
pub fn read_zone(value: &Value<'_>) -> Result<Tz, Refused> {
    ticking::zone(&value.string()?).map_err(|error| value.place.problem_with_remedy_inside(error).into())
}

/// A job that says with a key of a later version when it ticks does not lack a schedule.
fn read_schedule(section: &mut Section<'_>) -> Field<Vec<Typed<String>>> {
    let schedule = section.field("schedule", |value| {
        let expressions = value.one_or_more()?;
        if expressions.is_empty() {
            return Err(value.refuse("an empty list", "write schedule = \"15 2 * * *\""));
        }
        Ok(expressions)
    });
    let said_otherwise = schedule.is_absent() && section.has_any(&["every", "at", "after"]);
    if said_otherwise { Field::Refused } else { schedule }
}

/// `command` or `shell`, not both.
fn read_command(section: &mut Section<'_>) -> Field<Command> {
    let command = section.field("command", read_argv);
    let shell = section.field("shell", |value| {
        let line = value.c_string()?;
        if line.trim().is_empty() {
            return Err(value.refuse("an empty line", "write shell = \"PROGRAM | PROGRAM\""));
        }
        Ok(Command::Shell(line))
    });
    match (command, shell) {
        (command, Field::Absent) => command,
        (Field::Absent, shell) => shell,
        (Field::Typed(_), Field::Typed(shell)) => {
            section.push(shell.place.problem("command is there too", "keep one of the two"));
            Field::Refused
        }
        _ => Field::Refused,
    }
}

fn read_argv(value: &Value<'_>) -> Result<Command, Refused> {
    if value.is_string() {
        let remedy = "write command = [\"PROGRAM\", \"ARGUMENT\"], or shell = \"...\" for a line of /bin/sh";
        return Err(value.refuse("expected a list of strings, not a string", remedy));
    }
    let argv: Vec<String> = value.list_of(Value::c_string)?.into_iter().map(|argument| argument.value).collect();
    if argv.first().is_none_or(String::is_empty) {
        return Err(value.refuse("names no program", "write command = [\"/PATH/TO/PROGRAM\", \"ARGUMENT\"]"));
    }
    Ok(Command::Argv(argv))
}

/// Values are hidden in messages: they often are passwords.
fn read_env(value: &Value<'_>) -> Result<BTreeMap<String, String>, Refused> {
    let variables = value.secret().table()?.into_iter().map(|(name, value)| {
        judge_variable(&name).map_err(|(wrong, remedy)| value.refuse(wrong, remedy))?;
        Ok((name, value.c_string()?))
    });
    Ok(super::document::all(variables)?.into_iter().collect())
}

fn judge_variable(name: &str) -> Result<(), (&'static str, &'static str)> {
    match name {
        "" => Err(("a variable without a name", "name it")),
        name if name.contains(['=', '\0']) => Err(("a variable's name can't hold '=' or NUL", "rename it")),
        name if name.starts_with("CRONLATCH_") => {
            Err(("names that start with CRONLATCH_ are set by cronlatch", "rename it"))
        }
        _ => Ok(()),
    }
}

use std::path::PathBuf;
use std::time::Duration;

use super::document::{Field, LIMITS, Refused, STDIN, Section, Value};
use super::ticking::whole_seconds;
use crate::job::{Limits, ProcessSetup, Stdin, Umask};

/// Less address space, and no program can be loaded.
const LEAST_MEMORY: u64 = 1024 * 1024;
/// Three are its input and outputs; loading a program takes a few more.
const LEAST_FILES: u32 = 8;
const SECOND: Duration = Duration::from_secs(1);

/// The keys about how a job's process is set up, as they were typed.
#[derive(Clone, Debug, Default)]
pub struct TypedProcess {
    pub user: Field<User>,
    pub group: Field<String>,
    pub umask: Field<Umask>,
    pub env_file: Field<PathBuf>,
    pub stdin: Field<Stdin>,
    pub nice: Field<i8>,
    /// Boxed, for few jobs have any.
    pub limits: Field<Box<TypedLimits>>,
}

/// `user`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// The daemon's own, whoever that is: `"@daemon"`.
    Daemons,
    /// A login name.
    Named(String),
}

/// `limits`.
#[derive(Clone, Debug, Default)]
pub struct TypedLimits {
    memory: Field<u64>,
    cpu_time: Field<Duration>,
    open_files: Field<u32>,
    processes: Field<u32>,
}

impl TypedProcess {
    /// Reads the keys.
    pub fn read(section: &mut Section<'_>) -> Self {
        const NICE: std::ops::RangeInclusive<i8> = -20..=19;
        Self {
            user: section.field("user", read_user),
            group: section.field("group", |value| read_name(value, "group", "www-data")),
            umask: section.field("umask", read_umask),
            env_file: section.field("env_file", Value::absolute_path),
            stdin: section.secret_field("stdin", read_stdin),
            nice: section.field("nice", |value| value.whole_number(NICE)),
            limits: section.field("limits", |value| {
                value.record(&LIMITS, "write limits = { memory = \"512M\" }", TypedLimits::read).map(Box::new)
            }),
        }
    }

    /// These keys, and the defaults' where these are absent. Limits are merged one by one.
    pub fn over(&self, defaults: &Self) -> Self {
        Self {
            user: self.user.or(&defaults.user),
            group: self.group.or(&defaults.group),
            umask: self.umask.or(&defaults.umask),
            env_file: self.env_file.or(&defaults.env_file),
            stdin: self.stdin.or(&defaults.stdin),
            nice: self.nice.or(&defaults.nice),
            limits: self.limits.merged(&defaults.limits, |own, others| Box::new(own.over(others))),
        }
    }

    /// What the merged keys mean.
    pub fn meaning(&self) -> ProcessSetup {
        ProcessSetup {
            user: self.user.typed().and_then(|user| match &user.value {
                User::Daemons => None,
                User::Named(name) => Some(name.clone()),
            }),
            group: self.group.value(),
            umask: self.umask.value_or(Umask::default()),
            env_file: self.env_file.value(),
            stdin: self.stdin.value_or(Stdin::Empty),
            nice: self.nice.value_or(0),
            limits: self.limits.typed().map(|limits| limits.value.meaning()).unwrap_or_default(),
        }
    }
}

impl TypedLimits {
    fn read(section: &mut Section<'_>) -> Self {
        Self {
            memory: section.field("memory", |value| value.size(LEAST_MEMORY)),
            cpu_time: section.field("cpu_time", |value| whole_seconds(value, SECOND)),
            open_files: section.field("open_files", |value| value.whole_number(LEAST_FILES..=u32::MAX)),
            processes: section.field("processes", |value| value.whole_number(1..=u32::MAX)),
        }
    }

    fn over(&self, defaults: &Self) -> Self {
        Self {
            memory: self.memory.or(&defaults.memory),
            cpu_time: self.cpu_time.or(&defaults.cpu_time),
            open_files: self.open_files.or(&defaults.open_files),
            processes: self.processes.or(&defaults.processes),
        }
    }

    fn meaning(&self) -> Limits {
        Limits {
            memory: self.memory.value(),
            cpu_time: self.cpu_time.value(),
            open_files: self.open_files.value().map(u64::from),
            processes: self.processes.value().map(u64::from),
        }
    }
}

fn read_user(value: &Value<'_>) -> Result<User, Refused> {
    if value.is_string() && value.string()? == "@daemon" {
        return Ok(User::Daemons);
    }
    read_name(value, "user", "backup").map(User::Named)
}

/// The name of a user or a group. Whether there is one is the host's affair, here is told what can't be one.
fn read_name(value: &Value<'_>, key: &str, example: &str) -> Result<String, Refused> {
    let remedy = || format!("write its name, as in {key} = \"{example}\"");
    // Home, login name and groups hang on the name; a number may be another one's on the next host.
    let numeric = || value.refuse("a numeric id, which may be another's on the next host", remedy());
    if value.is_number() {
        return Err(numeric());
    }
    let name = value.c_string()?;
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | '/' | ',');
    match name.as_str() {
        "" => Err(value.refuse("names nobody", remedy())),
        name if name.bytes().all(|byte| byte.is_ascii_digit()) => Err(numeric()),
        name if name.starts_with(['-', '+', '~', '@']) || name.contains(is_odd) => {
            Err(value.refuse(format!("can't be the name of a {key}"), remedy()))
        }
        _ => Ok(name),
    }
}

fn read_umask(value: &Value<'_>) -> Result<Umask, Refused> {
    const REMEDY: &str = "write its octal digits in quotes, as in umask = \"027\"";
    if value.is_number() {
        return Err(value.refuse("a number, which TOML takes for a decimal one", REMEDY));
    }
    let text = value.string()?;
    let digits = if text.len() == 4 { text.strip_prefix('0') } else { Some(text.as_str()) };
    let digits = digits.filter(|digits| digits.len() == 3 && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte)));
    let mask = digits.and_then(|digits| u16::from_str_radix(digits, 8).ok());
    mask.map(Umask).ok_or_else(|| value.refuse("not three octal digits", REMEDY))
}

/// A text may hold a password, so it is read as a secret.
fn read_stdin(value: &Value<'_>) -> Result<Stdin, Refused> {
    const REMEDY: &str = "write stdin = \"TEXT\", or stdin = { file = \"/...\" }";
    if value.is_string() {
        let text = value.string()?;
        return Ok(if text.is_empty() { Stdin::Empty } else { Stdin::Text(text) });
    }
    if !value.is_table() {
        return Err(value.refuse("neither a text nor a table", REMEDY));
    }
    let file = value.record(&STDIN, REMEDY, |section| section.field("file", Value::absolute_path))?;
    file.value().map(Stdin::File).ok_or_else(|| value.refuse("names no file", REMEDY))
}

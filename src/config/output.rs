use std::time::Duration;

use super::document::{Field, OUTPUT_KEEP, Refused, Section, Value};
use super::problem::Problem;
use crate::job::{OutputFile, OutputKeep, OutputTo};

/// What a file pattern may hold in braces.
const PLACEHOLDERS: [&str; 5] = ["job", "host", "run", "date", "time"];
/// A smaller file would be rotated by nearly each line.
const LEAST_SIZE: u64 = 1024;
const MOST_FILES: u32 = 10_000;
const SECOND: Duration = Duration::from_secs(1);

/// The keys about a job's output, as they were typed.
#[derive(Clone, Debug, Default)]
pub struct TypedOutput {
    pub to: Field<To>,
    /// Boxed, for few jobs have it.
    pub keep: Field<Box<TypedKeep>>,
}

/// `output`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    Log,
    Discard,
    Files(String),
}

/// `output_keep`.
#[derive(Clone, Debug, Default)]
pub struct TypedKeep {
    size: Field<u64>,
    files: Field<u32>,
    age: Field<Duration>,
}

impl TypedOutput {
    /// Reads the two keys.
    pub fn read(section: &mut Section<'_>) -> Self {
        Self {
            to: section.field("output", read_to),
            keep: section.field("output_keep", |value| {
                value
                    .record(&OUTPUT_KEEP, "write output_keep = { size = \"10M\", files = 5 }", TypedKeep::read)
                    .map(Box::new)
            }),
        }
    }

    /// These keys, and the defaults' where these are absent. What is kept is merged one by one.
    pub fn over(&self, defaults: &Self) -> Self {
        Self {
            to: self.to.or(&defaults.to),
            keep: self.keep.merged(&defaults.keep, |own, others| Box::new(own.over(others))),
        }
    }

    /// What the merged keys mean.
    pub fn meaning(&self) -> OutputTo {
        match self.to.value_or(To::Log) {
            To::Log => OutputTo::Log,
            To::Discard => OutputTo::Discard,
            To::Files(pattern) => {
                let keep = self.keep.typed().map(|keep| keep.value.meaning()).unwrap_or_default();
                OutputTo::File(Box::new(OutputFile { pattern, keep }))
            }
        }
    }

    /// `output_keep` among a job's own keys, if the merged `keys` have no files that it could be about.
    pub fn meaningless(&self, keys: &Self) -> Option<Problem> {
        let has_files = matches!(keys.to.typed().map(|to| &to.value), Some(To::Files(_)));
        if has_files || keys.to.is_refused() {
            return None;
        }
        self.keep.needs("output_keep", "output = \"/PATH/TO/{job}.log\"")
    }
}

impl TypedKeep {
    fn read(section: &mut Section<'_>) -> Self {
        Self {
            size: section.field("size", |value| value.size(LEAST_SIZE)),
            files: section.field("files", |value| value.whole_number(0..=MOST_FILES)),
            age: section.field("age", |value| value.duration(SECOND)),
        }
    }

    fn over(&self, defaults: &Self) -> Self {
        Self {
            size: self.size.or(&defaults.size),
            files: self.files.or(&defaults.files),
            age: self.age.or(&defaults.age),
        }
    }

    fn meaning(&self) -> OutputKeep {
        let usual = OutputKeep::default();
        OutputKeep {
            size: self.size.value_or(usual.size),
            files: self.files.value_or(usual.files),
            age: self.age.value().or(usual.age),
        }
    }
}

fn read_to(value: &Value<'_>) -> Result<To, Refused> {
    const REMEDY: &str = "write output = \"log\", \"discard\" or \"/PATH/TO/{job}.log\"";
    match value.c_string()?.as_str() {
        "log" => Ok(To::Log),
        "discard" => Ok(To::Discard),
        pattern if !pattern.starts_with('/') => {
            Err(value.refuse("neither \"log\" nor \"discard\" nor an absolute path", REMEDY))
        }
        pattern => {
            judge_pattern(pattern).map_err(|(wrong, remedy)| value.refuse(wrong, remedy))?;
            Ok(To::Files(pattern.to_owned()))
        }
    }
}

/// What is wrong with the pattern of an absolute path, and the remedy.
fn judge_pattern(pattern: &str) -> Result<(), (String, String)> {
    let known = || format!("write {}", PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", "));
    if pattern.split('/').any(|part| part == "..") {
        return Err(("a way up, \"..\", is in it".to_owned(), "write the path without it".to_owned()));
    }
    if pattern.ends_with('/') || pattern.ends_with("/.") {
        return Err(("names a folder, not a file".to_owned(), "write the name of a file behind it".to_owned()));
    }
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '}']) {
        let Some((name, behind)) = rest[at..].strip_prefix('{').and_then(|opened| opened.split_once('}')) else {
            return Err(("a brace without its other half".to_owned(), known()));
        };
        if !PLACEHOLDERS.contains(&name) {
            return Err((format!("{{{name}}} stands for nothing"), known()));
        }
        rest = behind;
    }
    Ok(())
}

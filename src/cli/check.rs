use std::path::Path;

use clap::Args;
use serde_json::json;

use super::{Failure, print, print_json};
use crate::clock::human;
use crate::config::{self, InWords, Loaded, Problem, Settings};

#[derive(Args, Debug)]
pub(super) struct Check {
    /// One JSON array of problems, warnings and what each job does, instead of text
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let loaded = config::check(path);
        if self.json {
            let problems = loaded.problems.iter().map(|problem| object(problem, "error"));
            let warnings = loaded.warnings.iter().map(|warning| object(warning, "warning"));
            let words = loaded.words.iter().map(info);
            print_json(&problems.chain(warnings).chain(words).collect::<Vec<_>>())?;
        } else {
            let problems = loaded.problems.iter().map(|problem| format!("{problem}\n"));
            let warnings = loaded.warnings.iter().map(|warning| format!("warning: {warning}\n"));
            // Beside problems, lines about jobs that are fine would only hide them.
            let words = loaded.words.iter().filter(|_| loaded.problems.is_empty());
            let words = words.map(|said| format!("{}: {}\n", said.job, said.words));
            print(&problems.chain(warnings).chain(words).collect::<String>())?;
        }
        if !loaded.problems.is_empty() {
            return Err(Failure::config(counted(loaded.problems.len(), "problem")));
        }
        match &loaded.settings {
            Some(settings) if !self.json => print(&summary(path, &loaded, settings)),
            _ => Ok(()),
        }
    }
}

fn summary(path: &Path, loaded: &Loaded, settings: &Settings) -> String {
    let jobs = counted(loaded.jobs.len(), "job");
    let warnings = match loaded.warnings.len() {
        0 => String::new(),
        number => format!(", {}", counted(number, "warning")),
    };
    let outage = human(settings.lock.survived_outage());
    format!(
        "{}: {jobs}, no problem{warnings}\nan outage of the database of up to {outage} stops no running job\n",
        path.display()
    )
}

/// What `Display` says, for programs in its parts too.
fn object(problem: &Problem, severity: &str) -> serde_json::Value {
    json!({
        "severity": severity,
        "file": problem.file.display().to_string(),
        "line": problem.position.map(|position| position.line),
        "column": problem.position.map(|position| position.column),
        "key": problem.key,
        "value": problem.value,
        "wrong": problem.wrong,
        "remedy": problem.remedy,
        "problem": problem.to_string(),
    })
}

/// What a job does, and the place that says so.
fn info(said: &InWords) -> serde_json::Value {
    json!({
        "severity": "info",
        "file": said.file.display().to_string(),
        "line": said.position.map(|position| position.line),
        "column": said.position.map(|position| position.column),
        "key": said.key,
        "value": said.value,
        "job": said.job.as_str(),
        "words": said.words,
    })
}

/// A number with its noun.
fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

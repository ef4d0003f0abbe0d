use std::path::PathBuf;

use super::typed::TypedTicking;
use crate::clock::human;
use crate::config::document::Place;
use crate::config::problem::Position;
use crate::job::{Job, JobName, Placement, RunOn};

/// What a job's keys say about when and where it runs, in words; only a check-up asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InWords {
    /// The job.
    pub job: JobName,
    /// The file.
    pub file: PathBuf,
    /// Where in the file.
    pub position: Option<Position>,
    /// The key that makes it tick, with its path; that of the job's table, if there is none.
    pub key: String,
    /// The value as it was typed, shortened.
    pub value: Option<String>,
    /// A sentence without its first word's capital and without a full stop.
    pub words: String,
}

impl InWords {
    pub(in crate::config) fn of(job: &Job, place: &Place, keys: &TypedTicking) -> Self {
        let place = keys.ticks.typed().map_or(place, |ticks| &ticks.place);
        let shown = place.problem_with_remedy_inside(String::new());
        Self {
            job: job.name.clone(),
            file: shown.file,
            position: shown.position,
            key: place.path().to_owned(),
            value: shown.value,
            words: words(job, keys),
        }
    }
}

fn words(job: &Job, keys: &TypedTicking) -> String {
    let mut words = if job.after.is_empty() {
        job.schedule.words()
    } else {
        let names: Vec<&str> = job.after.iter().map(JobName::as_str).collect();
        format!("after {}", listed(&names, "and"))
    };
    if let (Some(splay), false) = (keys.splay.value(), job.schedule.is_by_hand())
        && !splay.is_zero()
    {
        let later =
            if job.start_delay.is_zero() { "at once".to_owned() } else { format!("{} later", human(job.start_delay)) };
        words.push_str(&format!(" + up to {} splay: starts {later}", human(splay)));
    }
    if let Some(hosts) = hosts(&job.placement) {
        words.push_str(&format!("; on {hosts}"));
    }
    if !job.enabled {
        words.push_str("; disabled");
    }
    words
}

/// Where it may run; `None`: on any host.
fn hosts(placement: &Placement) -> Option<String> {
    let patterns: Vec<&str> = placement.hosts.iter().map(|pattern| pattern.as_str()).collect();
    let labels: Vec<&str> = placement.labels.iter().map(|label| label.as_str()).collect();
    let (every, any) = (placement.run_on == RunOn::Every, placement.admits_all());
    if any && !every {
        return None;
    }
    let mut words = if every { "every host" } else { "one host" }.to_owned();
    if !patterns.is_empty() {
        words.push_str(&format!(" of {}", listed(&patterns, "and")));
    }
    if !labels.is_empty() {
        words.push_str(&format!(" with {}", listed(&labels, "and")));
    }
    Some(words)
}

/// `a`, `a and b`, `a, b and c`.
fn listed(words: &[&str], joint: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} {joint} {last}", first.join(", ")),
    }
}

use std::path::PathBuf;
use std::time::Duration;

use super::typed::TypedTicking;
use crate::clock::human;
use crate::config::document::Place;
use crate::config::problem::Position;
use crate::job::{Job, JobName};

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
    let mut words = job.ticks_in_words();
    let splay = keys.splay.value().filter(|splay| !splay.is_zero() && !job.schedule.is_by_hand());
    if let Some(splay) = splay {
        let start = match job.start_delay {
            Duration::ZERO => "at once".to_owned(),
            delay => format!("{} later", human(delay)),
        };
        words.push_str(&format!(" + up to {} splay: starts {start}", human(splay)));
    }
    if let Some(hosts) = job.placement.words() {
        words.push_str(&format!("; {hosts}"));
    }
    if !job.enabled {
        words.push_str("; disabled");
    }
    words
}

//! What is allowed, is not about time, and may not be what its author had in mind.

use std::collections::BTreeMap;

use super::document::Place;
use super::problem::Problem;
use super::typed_job::TypedJob;
use crate::clock::human;
use crate::job::{Job, JobName, OnLeaseLost, OutputTo, Overlap};

/// What may surprise in a job whose merged keys are `keys`.
pub fn doubts(job: &Job, keys: &TypedJob) -> Vec<Problem> {
    let going_on = keys.outcome.on_lease_lost.typed().filter(|lost| lost.value == OnLeaseLost::Continue);
    let going_on = going_on.map(|lost| {
        let wrong = "another host may run the job at the same time then";
        lost.place.problem(wrong, "write \"kill\", or let the job refuse old values of CRONLATCH_FENCING_TOKEN")
    });
    going_on.into_iter().chain(hasty(job, keys)).collect()
}

/// A run that replaces another and gives it no time to end.
fn hasty(job: &Job, keys: &TypedJob) -> Option<Problem> {
    let grace = job.timing.kill_grace();
    let wait_for = keys.wait_for.typed().filter(|wait_for| wait_for.value <= grace)?;
    matches!(job.overlap, Overlap::Replace(_)).then(|| {
        let wrong = format!("not longer than kill_grace ({}), which the run that is stopped may take", human(grace));
        wait_for.place.problem(wrong, "lengthen it").resting_on_others()
    })
}

/// Which job names each pattern of files first.
#[derive(Default)]
pub struct Outputs(BTreeMap<String, JobName>);

impl Outputs {
    /// Takes a job in; a warning if another writes to the same files. `place` is that of `output`.
    pub fn add(&mut self, job: &Job, place: &Place) -> Option<Problem> {
        let OutputTo::File(file) = &job.output else { return None };
        if file.pattern.contains("{job}") || file.pattern.contains("{run}") {
            return None;
        }
        let Some(first) = self.0.get(&file.pattern) else {
            self.0.insert(file.pattern.clone(), job.name.clone());
            return None;
        };
        let wrong = format!("jobs {first} and {} write to the same files, and each rotates them", job.name);
        Some(place.problem(wrong, "put {job} into the path"))
    }
}

use std::collections::BTreeMap;

use super::cycles::cycles;
use crate::config::document::{Place, Typed};
use crate::config::problem::Problem;
use crate::config::typed_job::{NamedJob, TypedJob};
use crate::job::{JobName, RunOn};

/// How many unknown names get a suggestion, each found by comparing it with all jobs.
const SUGGESTIONS: usize = 20;
/// How many jobs of a cycle are named.
const NAMED: usize = 8;

/// All jobs of one reading, those of refused files too, so that one fault gives one problem: who runs
/// after whom can't be judged before the last file is read.
#[derive(Debug, Default)]
pub struct Roster {
    jobs: BTreeMap<JobName, Entry>,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    /// How many were read before it.
    order: usize,
    enabled: bool,
    /// `None` if what it says was refused.
    run_on: Option<RunOn>,
    upstream: Vec<Typed<JobName>>,
}

impl Roster {
    /// Takes a job in. Of two jobs with one name the one that is read later is wrong: so a stray copy
    /// disables itself, not the file that has been in use.
    pub fn add(&mut self, job: &NamedJob, keys: &TypedJob) -> Option<Problem> {
        if let Some(first) = self.jobs.get(&job.name) {
            let wrong = format!("a job of this name is also at {}", first.place.file_and_line());
            return Some(job.place.problem(wrong, "rename or remove one of the two"));
        }
        let ticks = keys.ticking.ticks.typed();
        let run_on = &keys.placement.run_on;
        let entry = Entry {
            place: job.place.clone(),
            order: self.jobs.len(),
            enabled: keys.enabled.value_or(true),
            run_on: (!run_on.is_refused()).then(|| run_on.value_or(RunOn::One)),
            upstream: ticks.map(|ticks| ticks.value.upstream().to_vec()).unwrap_or_default(),
        };
        self.jobs.insert(job.name.clone(), entry);
        None
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// What is wrong between the jobs. A name may only be called unknown if all files could be read.
    pub fn problems(&self, all_are_known: bool) -> Vec<Problem> {
        let mut unknown = BTreeMap::new();
        let mut problems = self.cycles();
        for (job, entry, upstream) in self.edges() {
            if upstream.value == *job {
                let wrong = format!("job {job} can't run after itself");
                problems.push(upstream.place.problem(wrong, "remove it").resting_on_others());
            } else if let Some(other) = self.jobs.get(&upstream.value) {
                problems.extend(mismatch(job, entry, upstream, other));
            } else if all_are_known {
                let suggested = unknown.len() < SUGGESTIONS;
                let nearest = || if suggested { self.nearest(&upstream.value, job) } else { None };
                let remedy: &String = unknown.entry(&upstream.value).or_insert_with(|| match nearest() {
                    Some(near) => format!("did you mean {:?}?", near.as_str()),
                    None => "define it, or name another".to_owned(),
                });
                problems.push(upstream.place.problem("no job has this name", remedy).resting_on_others());
            }
        }
        problems
    }

    /// Jobs that wait for one that never runs by itself.
    pub fn doubts(&self) -> Vec<Problem> {
        let disabled = |upstream: &Typed<JobName>| self.jobs.get(&upstream.value).filter(|other| !other.enabled);
        let doubts = self.edges().filter(|(_, entry, _)| entry.enabled).filter_map(|(job, _, upstream)| {
            let there = disabled(upstream)?.place.seen_from(&upstream.place);
            let wrong = format!("job {} ({there}) is disabled, so job {job} never runs by itself", upstream.value);
            Some(upstream.place.problem(wrong, "enable it, or disable this one too"))
        });
        doubts.collect()
    }

    /// Each job with each one that it runs after.
    fn edges(&self) -> impl Iterator<Item = (&JobName, &Entry, &Typed<JobName>)> {
        self.jobs.iter().flat_map(|(job, entry)| entry.upstream.iter().map(move |upstream| (job, entry, upstream)))
    }

    /// The job that was probably meant by a name in the `after` of another.
    fn nearest(&self, name: &JobName, other: &JobName) -> Option<&JobName> {
        let far = name.as_str().chars().count().div_ceil(3);
        let distance = |known: &JobName| strsim::osa_distance(known.as_str(), name.as_str());
        let others = self.jobs.keys().filter(|known| *known != other);
        let near = others.map(|known| (distance(known), known)).min_by_key(|(distance, _)| *distance)?;
        (near.0 <= far).then_some(near.1)
    }

    /// One problem for each group of jobs that wait for one another, at the one that was read last.
    fn cycles(&self) -> Vec<Problem> {
        if self.edges().next().is_none() {
            return Vec::new();
        }
        let mut jobs: Vec<(&JobName, &Entry)> = self.jobs.iter().collect();
        jobs.sort_by_key(|(_, entry)| entry.order);
        let known = |upstream: &Typed<JobName>| self.jobs.get(&upstream.value).map(|entry| entry.order);
        let upstream: Vec<Vec<usize>> =
            jobs.iter().map(|(_, entry)| entry.upstream.iter().filter_map(known).collect()).collect();
        let cycles = cycles(&upstream).into_iter();
        cycles.filter_map(|cycle| told(&cycle.into_iter().map(|at| jobs[at]).collect::<Vec<_>>())).collect()
    }
}

/// Both run on one host for a trigger, or both on every host: else nobody could say whose success counts.
fn mismatch(job: &JobName, entry: &Entry, upstream: &Typed<JobName>, other: &Entry) -> Option<Problem> {
    let (own, others) = (entry.run_on?, other.run_on?);
    let words = |run_on| match run_on {
        RunOn::One => "one host",
        RunOn::Every => "every host",
    };
    (own != others).then(|| {
        let there = other.place.seen_from(&upstream.place);
        let wrong =
            format!("job {} ({there}) runs on {}, but job {job} on {}", upstream.value, words(others), words(own));
        upstream.place.problem(wrong, "give both the same run_on").resting_on_others()
    })
}

/// A cycle in words; each job runs after the next one, the last one after the first.
fn told(cycle: &[(&JobName, &Entry)]) -> Option<Problem> {
    let last = (0..cycle.len()).max_by_key(|at| cycle[*at].1.order)?;
    let names: Vec<&str> = (0..=cycle.len()).map(|n| cycle[(last + n) % cycle.len()].0.as_str()).collect();
    let next = cycle[(last + 1) % cycle.len()].0;
    let place = &cycle[last].1.upstream.iter().find(|upstream| upstream.value == *next)?.place;
    let wrong = if names.len() > NAMED {
        format!("these {} jobs wait for one another: {} after ...", cycle.len(), names[..NAMED].join(" after "))
    } else {
        format!("these jobs wait for one another: {}", names.join(" after "))
    };
    Some(place.problem(wrong, "remove one of them from the other's after").resting_on_others())
}

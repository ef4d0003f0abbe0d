use std::collections::BTreeSet;

use super::document::{Field, Place, Refused, Section, Typed, Value};
use super::problem::Problem;
use crate::fleet::{HostName, HostPattern, InvalidHostPattern, Label};
use crate::job::{Placement, RunOn};
use crate::lock::Resource;

/// The keys about where a job runs, as they were typed.
#[derive(Clone, Debug, Default)]
pub struct TypedPlacement {
    pub run_on: Field<RunOn>,
    pub hosts: Field<Vec<HostPattern>>,
    pub labels: Field<BTreeSet<Label>>,
}

impl TypedPlacement {
    /// Reads the three keys.
    pub fn read(section: &mut Section<'_>) -> Self {
        let values = |typed: Vec<Typed<_>>| typed.into_iter().map(|one| one.value).collect();
        Self {
            run_on: section.field("run_on", |value| value.word(&[("one", RunOn::One), ("every", RunOn::Every)], &[])),
            hosts: section.field("hosts", |value| value.one_or_more(read_pattern).map(values)),
            labels: section.field("labels", |value| {
                let labels = value.one_or_more(|label| label.checked(Label::new))?;
                Ok(labels.into_iter().map(|label| label.value).collect())
            }),
        }
    }

    /// These keys, and the defaults' where these are absent.
    pub fn over(&self, defaults: &Self) -> Self {
        Self {
            run_on: self.run_on.or(&defaults.run_on),
            hosts: self.hosts.or(&defaults.hosts),
            labels: self.labels.or(&defaults.labels),
        }
    }

    /// What the merged keys mean.
    pub fn meaning(&self) -> Placement {
        Placement {
            run_on: self.run_on.value_or(RunOn::One),
            hosts: self.hosts.value_or(Vec::new()),
            labels: self.labels.value_or(BTreeSet::new()),
        }
    }

    /// Refuses a lock whose name leaves no room for a host's behind it: on every host it is held under
    /// a name of its own, `LOCK@HOST`. The problem stands at `place`.
    pub fn judge_lock(&self, lock: &Resource, place: &Place) -> Option<Problem> {
        const MOST: usize = Resource::MAX_CHARS - 1 - HostName::MAX_CHARS;
        let chars = lock.as_str().chars().count();
        (self.run_on.value() == Some(RunOn::Every) && chars > MOST).then(|| {
            let wrong = format!(
                "with run_on = \"every\" a lock's name has at most {MOST} characters ({}, less @ and a host's {}), \
                 this one has {chars}",
                Resource::MAX_CHARS,
                HostName::MAX_CHARS
            );
            place.problem(wrong, "write a shorter lock").resting_on_others()
        })
    }
}

fn read_pattern(value: &Value<'_>) -> Result<HostPattern, Refused> {
    HostPattern::new(value.string()?).map_err(|error| match error {
        InvalidHostPattern::Length(_) => value.refuse(error.to_string(), "write it like hosts = [\"web-*\", \"db-1\"]"),
        InvalidHostPattern::Forbidden(_) => value.place.problem_with_remedy_inside(error.to_string()).into(),
    })
}

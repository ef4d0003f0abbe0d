use std::collections::BTreeSet;
use std::fmt;

use crate::fleet::{HostName, HostPattern, Label};

/// Where a job may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// On how many of the hosts that it admits.
    pub run_on: RunOn,
    /// A host must match one of these; empty: any host.
    pub hosts: Vec<HostPattern>,
    /// A host must have all of these; empty: any host.
    pub labels: BTreeSet<Label>,
}

/// On how many hosts each trigger runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunOn {
    /// On one of them.
    #[default]
    One,
    /// On each of them: a trigger and a lock for every host, whose name is part of both.
    Every,
}

impl Placement {
    /// Whether a host may run the job.
    pub fn admits(&self, host: &HostName, labels: &BTreeSet<Label>) -> bool {
        let is_named = self.hosts.is_empty() || self.hosts.iter().any(|pattern| pattern.matches(host));
        is_named && self.labels.is_subset(labels)
    }

    /// Whether any host may run the job.
    pub fn admits_all(&self) -> bool {
        self.hosts.is_empty() && self.labels.is_empty()
    }

    /// Where it runs, in words: `on one host of web-*, db-1 with gpu`; `None`: on any one host.
    pub fn words(&self) -> Option<String> {
        let mut words = match self.run_on {
            RunOn::One if self.admits_all() => return None,
            RunOn::One => "on one host".to_owned(),
            RunOn::Every => "on every host".to_owned(),
        };
        let hosts: Vec<&str> = self.hosts.iter().map(HostPattern::as_str).collect();
        let labels: Vec<&str> = self.labels.iter().map(Label::as_str).collect();
        for (joint, names) in [("of", hosts), ("with", labels)] {
            if !names.is_empty() {
                words.push_str(&format!(" {joint} {}", names.join(", ")));
            }
        }
        Some(words)
    }
}

/// What a host must have: `hosts web-*, db-1 with labels eu, gpu`; `any host`.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.hosts.iter().map(HostPattern::as_str).collect::<Vec<_>>().join(", ");
        let labels = self.labels.iter().map(Label::as_str).collect::<Vec<_>>().join(", ");
        match (hosts.as_str(), labels.as_str()) {
            ("", "") => f.write_str("any host"),
            (hosts, "") => write!(f, "hosts {hosts}"),
            ("", labels) => write!(f, "labels {labels}"),
            (hosts, labels) => write!(f, "hosts {hosts} with labels {labels}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_must_match_one_pattern_and_have_every_label() {
        let labels = |words: &[&str]| words.iter().map(|word| Label::new(*word).expect("a label")).collect();
        let placement = Placement {
            run_on: RunOn::One,
            hosts: ["web-*", "db-1"].map(|pattern| HostPattern::new(pattern).expect("a pattern")).into(),
            labels: labels(&["gpu", "eu"]),
        };
        let host = |name: &str| HostName::new(name).expect("a name");
        assert!(placement.admits(&host("web-3"), &labels(&["eu", "gpu", "ssd"])));
        assert!(placement.admits(&host("db-1"), &labels(&["eu", "gpu"])));
        assert!(!placement.admits(&host("db-2"), &labels(&["eu", "gpu"])));
        assert!(!placement.admits(&host("web-3"), &labels(&["eu"])));
        assert!(Placement::default().admits(&host("x"), &BTreeSet::new()) && Placement::default().admits_all());
    }

    #[test]
    fn where_a_job_runs_is_told_in_words() {
        let hosts = vec![HostPattern::new("web-*").expect("a pattern"), HostPattern::new("db-1").expect("a pattern")];
        let labels: BTreeSet<Label> = [Label::new("gpu").expect("a label")].into();
        let words = |run_on, hosts: &[HostPattern], labels: &BTreeSet<Label>| {
            Placement { run_on, hosts: hosts.to_vec(), labels: labels.clone() }.words()
        };
        assert_eq!(Placement::default().words(), None);
        assert_eq!(words(RunOn::Every, &[], &BTreeSet::new()).as_deref(), Some("on every host"));
        assert_eq!(words(RunOn::One, &hosts, &BTreeSet::new()).as_deref(), Some("on one host of web-*, db-1"));
        assert_eq!(words(RunOn::Every, &hosts, &labels).as_deref(), Some("on every host of web-*, db-1 with gpu"));
    }
}

use std::fmt;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::fleet::HostName;
use crate::job::JobName;

/// The name of one run, made by the host that claims it: a UUIDv7, so that names sort by time and
/// a claim that is sent again is known as the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// A new one.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Wraps what a table holds.
    pub fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }

    /// The UUID.
    pub fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// For whom a trigger is: the whole fleet, or one host of a job that runs on every host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Target(String);

impl Target {
    /// The whole fleet; one host of it runs.
    pub fn fleet() -> Self {
        Self::default()
    }

    /// One host.
    pub fn of_host(host: &HostName) -> Self {
        Self(host.as_str().to_owned())
    }

    /// Wraps what a table holds: empty, or a host's name.
    pub fn from_column(target: impl Into<String>) -> Self {
        Self(target.into())
    }

    /// The column's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What made a trigger: the schedule, or a request by its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin(String);

impl Origin {
    /// The schedule.
    pub fn schedule() -> Self {
        Self("schedule".to_owned())
    }

    /// Wraps what a table holds.
    pub fn from_column(origin: impl Into<String>) -> Self {
        Self(origin.into())
    }

    /// The column's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What may be run once: a job at a nominal instant. With the attempt it is the key of `runs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trigger {
    /// Which job.
    pub job: JobName,
    /// The nominal instant; never moved by delays.
    pub scheduled_at: DateTime<Utc>,
    /// For whom.
    pub target: Target,
    /// What made it.
    pub origin: Origin,
}

impl Trigger {
    /// A trigger that the schedule made, for the whole fleet.
    pub fn scheduled(job: JobName, scheduled_at: DateTime<Utc>) -> Self {
        Self { job, scheduled_at, target: Target::fleet(), origin: Origin::schedule() }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.job, self.scheduled_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
    }
}

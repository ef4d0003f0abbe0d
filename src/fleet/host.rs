use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::Label;

/// The name of a host: 1 to 64 characters, no `/`, `@`, white space or control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// Why a text can't name a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHostName {
    /// Nothing there.
    #[error("a host name can't be empty")]
    Empty,
    /// More than [`HostName::MAX_CHARS`].
    #[error("a host name has at most 64 characters, this one has {0}")]
    TooLong(usize),
    /// A character that owners and targets use as a separator, or that can't be shown.
    #[error("a host name can't hold {0:?}: no '/', '@', white space or control characters")]
    Forbidden(char),
}

impl HostName {
    /// The longest name, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidHostName`] says what is wrong with it.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidHostName> {
        let name = name.into();
        if name.is_empty() {
            return Err(InvalidHostName::Empty);
        }
        let chars = name.chars().count();
        if chars > Self::MAX_CHARS {
            return Err(InvalidHostName::TooLong(chars));
        }
        if let Some(c) = name.chars().find(|c| matches!(c, '/' | '@') || c.is_whitespace() || c.is_control()) {
            return Err(InvalidHostName::Forbidden(c));
        }
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One start of the daemon on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(Uuid);

impl InstanceId {
    /// A new one, different from all others.
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
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

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A live daemon as the table `hosts` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// Which start of the daemon.
    pub instance: InstanceId,
    /// Its host's name.
    pub name: HostName,
    /// Its version of cronlatch.
    pub version: String,
    /// What it can do, as far as this version takes the words.
    pub labels: BTreeSet<Label>,
    /// What its schedule hashes to: hosts that differ here read different files.
    pub schedule_digest: String,
    /// Its wall clock less the database's, in milliseconds; `None` before its first sample.
    pub clock_offset_ms: Option<i64>,
    /// Whether it takes no new runs.
    pub draining: bool,
    /// When it started, by the database's clock.
    pub started_at: DateTime<Utc>,
    /// Its last beat, by the database's clock.
    pub seen_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_refused() {
        assert_eq!(HostName::new("a/b"), Err(InvalidHostName::Forbidden('/')));
        assert_eq!(HostName::new("a@b"), Err(InvalidHostName::Forbidden('@')));
        assert_eq!(HostName::new("ä".repeat(65)), Err(InvalidHostName::TooLong(65)));
        assert!(HostName::new("ä".repeat(64)).is_ok());
    }
}

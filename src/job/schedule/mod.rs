//! When a job ticks.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

/// One or more expressions in one time zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: Tz,
}

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("placeholder")]
pub struct InvalidSchedule;

impl Schedule {
    /// Parses.
    ///
    /// # Errors
    /// When refused.
    pub fn parse(_expression: &str, zone: Tz) -> Result<Self, InvalidSchedule> {
        Ok(Self { zone })
    }

    /// The zone.
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// The first instant later than `after`; `None` when it never fires again.
    pub fn next_after(&self, _after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        None
    }
}

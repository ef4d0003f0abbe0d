use chrono::{DateTime, Utc};

use super::{first_instant, last_instant};

/// Whole seconds, from one up to but not including another; it may hold none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub from: i64,
    pub to: i64,
}

impl Stretch {
    /// The whole seconds in `(after, through]`.
    pub(super) fn later_than(after: DateTime<Utc>, through: DateTime<Utc>) -> Self {
        Self { from: after.timestamp().saturating_add(1), to: through.timestamp().saturating_add(1) }
    }

    /// Everything that an expression can name.
    pub(super) fn of_all_instants() -> Self {
        Self::later_than(first_instant(), last_instant())
    }

    pub(super) fn is_empty(self) -> bool {
        self.from >= self.to
    }

    pub(super) fn contains(self, second: i64) -> bool {
        self.from <= second && second < self.to
    }

    /// What lies in both.
    pub(super) fn common(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), to: self.to.min(other.to) }
    }
}

/// The first whole second that is not before `instant`.
pub(super) fn ceiling(instant: DateTime<Utc>) -> i64 {
    instant.timestamp() + i64::from(instant.timestamp_subsec_nanos() > 0)
}

/// A whole second as an instant.
pub(super) fn instant(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(second, 0).expect("an instant of these centuries")
}

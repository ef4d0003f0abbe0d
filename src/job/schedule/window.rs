use chrono::{DateTime, TimeDelta, Utc};

use super::stretch::{Stretch, ceiling};

/// The time in which a schedule ticks: from its start, up to but not including its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// The first instant that may tick; `None`: no bound.
    pub from: Option<DateTime<Utc>>,
    /// The first instant that may not tick any more; `None`: no bound.
    pub until: Option<DateTime<Utc>>,
}

impl Window {
    /// The latest moment not before `after` that nothing inside the window lies before or at.
    pub(super) fn enter(self, after: DateTime<Utc>) -> DateTime<Utc> {
        let before = self.from.and_then(|from| from.checked_sub_signed(TimeDelta::nanoseconds(1)));
        before.map_or(after, |before| before.max(after))
    }

    /// The whole seconds inside.
    pub(super) fn stretch(self) -> Stretch {
        Stretch { from: self.from.map_or(i64::MIN, ceiling), to: self.until.map_or(i64::MAX, ceiling) }
    }

    /// Whether `instant` lies past the end.
    pub(super) fn is_left_at(self, instant: DateTime<Utc>) -> bool {
        self.until.is_some_and(|until| instant >= until)
    }
}

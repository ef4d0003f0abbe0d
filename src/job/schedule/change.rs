use chrono::{Offset, TimeZone};
use chrono_tz::Tz;

use super::stretch::{Stretch, instant};

const DAY: i64 = 24 * 60 * 60;

/// A change of a zone's clocks. All are in seconds, instants since the epoch, offsets east of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The first instant with the new offset.
    pub at: i64,
    pub before: i64,
    pub since: i64,
}

impl Change {
    /// The changes of a zone from one instant up to but not including another, in order.
    ///
    /// It looks once a day: no zone of the tz database has two changes within a week.
    pub(super) fn of(zone: Tz, stretch: Stretch) -> Vec<Self> {
        let mut changes = Vec::new();
        let (mut low, mut before) = (stretch.from - 1, offset_at(zone, stretch.from - 1));
        while low < stretch.to - 1 {
            let high = (low + DAY).min(stretch.to - 1);
            let since = offset_at(zone, high);
            if since != before {
                changes.push(Self { at: turn(zone, low, high, before), before, since });
            }
            (low, before) = (high, since);
        }
        changes
    }

    /// The local times that are left out, as seconds of a calendar without offsets.
    pub(super) fn gap(self) -> Option<Stretch> {
        (self.since > self.before).then(|| Stretch { from: self.at + self.before, to: self.at + self.since })
    }

    /// The local times that are shown twice.
    pub(super) fn fold(self) -> Option<Stretch> {
        (self.since < self.before).then(|| Stretch { from: self.at + self.since, to: self.at + self.before })
    }
}

/// The first second in `(low, high]` whose offset isn't `before`.
fn turn(zone: Tz, mut low: i64, mut high: i64, before: i64) -> i64 {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset_at(zone, middle) == before {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The offset of a zone at an instant.
pub(super) fn offset_at(zone: Tz, second: i64) -> i64 {
    zone.offset_from_utc_datetime(&instant(second).naive_utc()).fix().local_minus_utc().into()
}

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The longest period, in seconds: a hundred years.
const MAX_PERIOD: u64 = 36_525 * 24 * 60 * 60;

/// Why a period can't be ticked by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEvery {
    /// Zero, or a part of a second beside whole ones.
    #[error("a period is a whole number of seconds, at least 1; write e.g. \"90s\"")]
    Period,
    /// More than a hundred years.
    #[error("a period has at most 36525 days; write at, or an expression with a year")]
    TooLong,
    /// A part of a second beside whole ones.
    #[error("an offset is a whole number of seconds; write e.g. \"30s\"")]
    Offset,
    /// As long as the period, or longer.
    #[error("an offset is shorter than its period, {}s; write {}s, which means the same", period.as_secs(), same.as_secs())]
    OffsetTooLong {
        /// The period.
        period: Duration,
        /// What is left of the offset after whole periods.
        same: Duration,
    },
}

/// Every so many seconds of UTC, counted from the epoch plus an offset: the same on all hosts,
/// whenever they started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Every {
    /// In seconds, at least 1.
    period: i64,
    /// In seconds, shorter than the period.
    offset: i64,
}

impl Every {
    pub(super) fn new(period: Duration, offset: Duration) -> Result<Self, InvalidEvery> {
        if period.is_zero() || period.subsec_nanos() > 0 {
            return Err(InvalidEvery::Period);
        }
        if period.as_secs() > MAX_PERIOD {
            return Err(InvalidEvery::TooLong);
        }
        if offset.subsec_nanos() > 0 {
            return Err(InvalidEvery::Offset);
        }
        if offset >= period {
            let same = Duration::from_secs(offset.as_secs() % period.as_secs());
            return Err(InvalidEvery::OffsetTooLong { period, same });
        }
        let seconds = |length: Duration| i64::try_from(length.as_secs()).expect("a hundred years are few seconds");
        Ok(Self { period: seconds(period), offset: seconds(offset) })
    }

    /// In seconds.
    pub(super) fn period(self) -> i64 {
        self.period
    }

    /// In seconds.
    pub(super) fn offset(self) -> i64 {
        self.offset
    }

    /// The first instant later than `after`, a whole second.
    pub(super) fn next_after(self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let periods = (after.timestamp() - self.offset).div_euclid(self.period) + 1;
        DateTime::from_timestamp(self.offset + periods * self.period, 0)
    }
}

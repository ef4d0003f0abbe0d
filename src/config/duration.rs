//! Durations as people write them: `"90s"`, `"3m"`, `"24h"`, `"90d"`, `"1h 30m"`.

use std::time::Duration;

use humantime::format_duration;

/// A minute.
pub const MINUTE: Duration = Duration::from_secs(60);

/// The longest duration of any key: instants that are this far away can still be computed with.
const MOST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// Why a text is no duration for a key.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum InvalidDuration {
    /// It can't be read.
    #[error("not a duration: {0}")]
    Unreadable(#[from] humantime::DurationError),
    /// `"5M"`: five months to the parser, five minutes to whoever wrote it.
    #[error("\"M\" would be months, minutes are \"m\"")]
    Months,
    /// Below what the key allows.
    #[error("too short: at least {}", format_duration(*.0))]
    TooShort(Duration),
    /// Beyond [`MOST`].
    #[error("too long: at most 100 years")]
    TooLong,
}

/// Reads a duration, at least `least`.
pub fn parse(text: &str, least: Duration) -> Result<Duration, InvalidDuration> {
    if text.contains('M') {
        return Err(InvalidDuration::Months);
    }
    let duration = humantime::parse_duration(text)?;
    if duration < least {
        return Err(InvalidDuration::TooShort(least));
    }
    if duration > MOST {
        return Err(InvalidDuration::TooLong);
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_s_durations_are_read() {
        for (text, seconds) in [("90s", 90), ("3m", 180), ("24h", 86_400), ("90d", 7_776_000), ("1h 30m", 5_400)] {
            assert_eq!(parse(text, Duration::ZERO), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        assert_eq!(parse("5M", Duration::ZERO), Err(InvalidDuration::Months));
        assert!(matches!(parse("30", Duration::ZERO), Err(InvalidDuration::Unreadable(_))));
        assert!(matches!(parse("-3s", Duration::ZERO), Err(InvalidDuration::Unreadable(_))));
    }

    #[test]
    fn bounds_hold() {
        let second = Duration::from_secs(1);
        assert_eq!(parse("0s", second), Err(InvalidDuration::TooShort(second)));
        assert_eq!(parse("101 years", second), Err(InvalidDuration::TooLong));
    }
}

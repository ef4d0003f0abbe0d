use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::schedule::Schedule;

/// A trigger that is older than a day is history.
const MOST: Duration = Duration::from_secs(24 * 60 * 60);
/// A restart of the daemon takes less.
const LEAST: Duration = Duration::from_secs(5 * 60);
/// Of how many periods the shortest counts. More than one, so that hosts which read an uneven
/// schedule (`0 9,10 * * *`) at different hours of the day come to the same answer.
const PERIODS: usize = 8;

/// How far back a job catches up unless it says so: half its period, but not more than a day and
/// not less than five minutes. Beyond half its period the next trigger is nearer than the one missed.
pub fn default_max_age(schedule: &Schedule, from: DateTime<Utc>) -> Duration {
    let mut before = schedule.next_after(from);
    let gaps = std::iter::from_fn(|| {
        let at = before?;
        before = schedule.next_after(at);
        (before? - at).to_std().ok()
    });
    half_of(gaps.take(PERIODS).min())
}

/// `None` is a schedule that fires once more at most.
fn half_of(period: Option<Duration>) -> Duration {
    period.map_or(MOST, |period| (period / 2).clamp(LEAST, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_period_is_kept_between_five_minutes_and_a_day() {
        const HOUR: u64 = 3_600;
        for (period, age) in [(60, 300), (600, 300), (2 * HOUR, HOUR), (48 * HOUR, 24 * HOUR), (720 * HOUR, 24 * HOUR)]
        {
            assert_eq!(half_of(Some(Duration::from_secs(period))), Duration::from_secs(age), "{period}");
        }
        assert_eq!(half_of(None), MOST);
    }
}

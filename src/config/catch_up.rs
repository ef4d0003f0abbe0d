use std::time::Duration;

use chrono::{DateTime, Utc};

use super::document::{Field, Section};
use super::problem::Problem;
use super::ticking::periods;
use crate::job::CatchUp;
use crate::job::schedule::Schedule;

/// A trigger that is older than a day is history; and runs that are further apart are no catching up.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A restart of the daemon takes less.
const LEAST: Duration = Duration::from_secs(5 * 60);
const MAX_RUNS: u32 = 10;
const MOST_RUNS: u32 = 1_000;
/// Below this an age would only ever be a mistake.
const MOMENT: Duration = Duration::from_secs(1);

/// The keys about triggers that nobody could take, as they were typed.
#[derive(Clone, Debug, Default)]
pub struct TypedCatchUp {
    pub policy: Field<Policy>,
    pub max_age: Field<Duration>,
    pub max_runs: Field<u32>,
    pub spacing: Field<Duration>,
}

/// `catch_up`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Latest,
    None,
    All,
}

impl TypedCatchUp {
    /// Reads the four keys.
    pub fn read(section: &mut Section<'_>) -> Self {
        const POLICIES: [(&str, Policy); 3] =
            [("latest", Policy::Latest), ("none", Policy::None), ("all", Policy::All)];
        Self {
            policy: section.field("catch_up", |value| value.word(&POLICIES, &[])),
            max_age: section.field("catch_up_max_age", |value| value.duration(MOMENT)),
            max_runs: section.field("catch_up_max_runs", |value| value.whole_number(1..=MOST_RUNS)),
            spacing: section.field("catch_up_spacing", |value| {
                let spacing = value.duration(Duration::ZERO)?;
                let refused = || value.refuse("too long: at most 1day", "write it like catch_up_spacing = \"30s\"");
                if spacing > DAY { Err(refused()) } else { Ok(spacing) }
            }),
        }
    }

    /// These keys, and the defaults' where these are absent.
    pub fn over(&self, defaults: &Self) -> Self {
        Self {
            policy: self.policy.or(&defaults.policy),
            max_age: self.max_age.or(&defaults.max_age),
            max_runs: self.max_runs.or(&defaults.max_runs),
            spacing: self.spacing.or(&defaults.spacing),
        }
    }

    /// What the merged keys mean.
    pub fn meaning(&self) -> CatchUp {
        match self.policy.value_or(Policy::Latest) {
            Policy::Latest => CatchUp::Latest,
            Policy::None => CatchUp::None,
            Policy::All => CatchUp::All {
                max_runs: self.max_runs.value_or(MAX_RUNS),
                spacing: self.spacing.value_or(Duration::ZERO),
            },
        }
    }

    /// What means nothing among a job's own keys, which were merged into `keys`. `has_instants` is
    /// whether the job ticks by itself; `None` if that is not known.
    pub fn meaningless(&self, keys: &Self, has_instants: Option<bool>) -> Vec<Problem> {
        const TICKING: &str = "schedule, every or at";
        const ALL: &str = "catch_up = \"all\"";
        let found = match (has_instants, &keys.policy) {
            (Some(false), _) => [
                self.policy.needs("catch_up", TICKING),
                self.max_age.needs("catch_up_max_age", TICKING),
                self.max_runs.needs("catch_up_max_runs", TICKING),
                self.spacing.needs("catch_up_spacing", TICKING),
            ],
            (_, Field::Refused) => Default::default(),
            _ if keys.policy.value() == Some(Policy::All) => Default::default(),
            _ => {
                [self.max_runs.needs("catch_up_max_runs", ALL), self.spacing.needs("catch_up_spacing", ALL), None, None]
            }
        };
        found.into_iter().flatten().collect()
    }
}

/// How far back a job catches up unless it says so. With `all`, a day. Else half its period, but not
/// more than a day and not less than five minutes: beyond half its period the next trigger is nearer
/// than the one missed.
pub fn default_max_age(policy: CatchUp, schedule: &Schedule, from: DateTime<Utc>) -> Duration {
    match policy {
        CatchUp::All { .. } => DAY,
        CatchUp::Latest | CatchUp::None => half_of(shortest(periods(schedule, from))),
    }
}

/// The shortest; those behind one that makes no difference any more are not looked at.
fn shortest(periods: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut shortest: Option<Duration> = None;
    for period in periods {
        shortest = Some(shortest.map_or(period, |shortest| shortest.min(period)));
        if period / 2 <= LEAST {
            break;
        }
    }
    shortest
}

/// `None` is a schedule that fires once more at most.
fn half_of(period: Option<Duration>) -> Duration {
    period.map_or(DAY, |period| (period / 2).clamp(LEAST, DAY))
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
        assert_eq!(half_of(None), DAY);
    }

    #[test]
    fn hosts_that_read_an_uneven_schedule_at_different_hours_agree() {
        let age = |expression: &str, hour: u32| {
            let schedule = Schedule::parse(expression, chrono_tz::UTC).expect("a good expression");
            let from = chrono::NaiveDate::from_ymd_opt(2026, 6, 1).and_then(|day| day.and_hms_opt(hour, 30, 0));
            default_max_age(CatchUp::Latest, &schedule, from.expect("a time of the calendar").and_utc())
        };
        for hour in 0..24 {
            assert_eq!(age("0 9,10 * * *", hour), Duration::from_secs(1_800), "{hour}");
            assert_eq!(age("0 3 * * *", hour), Duration::from_secs(12 * 3_600), "{hour}");
            assert_eq!(age("* * * * *", hour), LEAST, "{hour}");
            assert_eq!(age("0 3 1 6 *", hour), DAY, "{hour}");
        }
    }
}

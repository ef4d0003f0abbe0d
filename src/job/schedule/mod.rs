//! When a job ticks: crontab expressions in a time zone. Pure, without a clock.
//!
//! # Vocabulary
//! - An *expression* is crontab(5)'s five fields (minute, hour, day of month, month, day of week),
//!   six (second first), seven (and a year last), or a shorthand such as `@daily`.
//! - A *schedule* is one or more expressions in one zone. Where several name the same instant, it
//!   is one trigger.
//! - A field is *starred* when it starts with `*`, be it `*`, `*/2` or `*,5`; `?` is `*`.
//! - A *fixed-time* expression has neither minute nor hour starred; all others are *wildcards*.
//! - A *gap* is the local times that a day lacks when the clocks go forward, a *fold* those that
//!   it has twice when they go back, in a first and a second *pass*.
//!
//! # Rules
//! - Day of month and day of week: when neither is starred, either may match; else both must.
//!   [crontab(5), "the day of a command's execution"; the star rule is in Debian's `cron.c`]
//! - Weekdays 0 and 7 are Sunday; `1/2` is `1-7/2`, for whose sake the week's last day is 7. [crontab(5)]
//! - A fixed-time instant in a gap fires once, at the gap's end; in a fold it fires in the first
//!   pass only. A wildcard fires whenever the clock shows its time. [cron(8) of Debian, "NOTES"]
//! - Debian limits that to changes of less than three hours, because it can't tell a clock change
//!   from a clock that was set. A zone's change is never a correction, so here there is no limit: a
//!   job due on a day that its zone leaves out (Apia, 2011-12-30) fires once at the next one's start.
//! - What other dialects read differently is refused with a rewrite: backward ranges, a step after
//!   a name, `~`, names in part.
//!
//! # How
//! ```text
//! text -> token.rs -> values.rs, a field each -> expression.rs -> cron::Schedule (local time)
//!                                                     |
//!             instants <- local.rs, gaps and folds <--/
//! ```
//! The `cron` crate iterates, and this folder is its only user. It speaks Quartz and would
//! misread a crontab, so it sees canonical text only (numbers in range, weekdays by name), and
//! local times as if they were UTC, so that its own idea of gaps and folds never shows.
//!
//! # What it does not do
//! It doesn't know the present: whether an expression has any instant *left* is asked by
//! [`Schedule::require_later_than`]. Years end with 2100, and the clock changes with those that
//! the compiled-in tz database knows.

mod dialect;
mod error;
mod expression;
mod field;
mod item;
mod local;
mod token;
mod values;
mod zone;

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use chrono_tz::Tz;

use expression::Expression;

pub use error::{FieldProblem, InvalidSchedule};
pub use field::Field;
pub use token::MAX_BYTES;
pub use zone::{InvalidZone, parse_zone};

/// One or more expressions in one time zone. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    zone: Tz,
    /// Never empty.
    expressions: Arc<[Expression]>,
}

impl Schedule {
    /// Reads one expression.
    ///
    /// # Errors
    /// [`InvalidSchedule`] when it is no expression, or can't ever fire.
    pub fn parse(expression: &str, zone: Tz) -> Result<Self, InvalidSchedule> {
        Self::parse_all([expression], zone)
    }

    /// Reads several expressions that share a zone; the first that is wrong decides.
    ///
    /// # Errors
    /// [`InvalidSchedule`] when there is none, one is no expression, or one can't ever fire.
    pub fn parse_all<I>(expressions: I, zone: Tz) -> Result<Self, InvalidSchedule>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let parsed = expressions.into_iter().map(|text| Expression::parse(text.as_ref()));
        let expressions = parsed.collect::<Result<Arc<[_]>, _>>()?;
        if expressions.is_empty() {
            return Err(InvalidSchedule::NoExpression);
        }
        let schedule = Self { zone, expressions };
        match schedule.spent_at(first_instant()) {
            Some(spent) => Err(InvalidSchedule::NeverFires { expression: spent.text().to_owned(), zone }),
            None => Ok(schedule),
        }
    }

    /// Refuses a schedule with an expression whose last instant has gone by, such as a past year.
    ///
    /// # Errors
    /// [`InvalidSchedule::GoneBy`] names the expression.
    pub fn require_later_than(&self, now: DateTime<Utc>) -> Result<(), InvalidSchedule> {
        match self.spent_at(now) {
            Some(spent) => Err(InvalidSchedule::GoneBy { expression: spent.text().to_owned(), after: now }),
            None => Ok(()),
        }
    }

    /// The zone whose local time the expressions speak of.
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// The expressions as typed, in their order.
    pub fn expressions(&self) -> impl ExactSizeIterator<Item = &str> {
        self.expressions.iter().map(Expression::text)
    }

    /// The first instant strictly later than `after`; `None` when it never fires again.
    ///
    /// About a microsecond, and bounded for any expression: the search ends with the year 2100.
    pub fn next_after(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.expressions.iter().filter_map(|expression| self.next_of(expression, after)).min()
    }

    fn next_of(&self, expression: &Expression, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        // Instants are whole seconds; outside of these years local times may not even be representable.
        let after = DateTime::from_timestamp(after.timestamp(), 0)?.max(first_instant());
        if after > last_instant() {
            return None;
        }
        local::next_instant(self.zone, expression.clock_change(), after, |local| expression.next_local(local))
    }

    fn spent_at(&self, after: DateTime<Utc>) -> Option<&Expression> {
        self.expressions.iter().find(|expression| self.next_of(expression, after).is_none())
    }
}

/// A moment before the first that any expression can name, 1970 in the easternmost zone.
const fn first_instant() -> DateTime<Utc> {
    utc_midnight(1969, 12, 30)
}

/// A moment after the last that any expression can name, 2100 in the westernmost zone.
const fn last_instant() -> DateTime<Utc> {
    utc_midnight(2101, 1, 2)
}

const fn utc_midnight(year: i32, month: u32, day: u32) -> DateTime<Utc> {
    NaiveDate::from_ymd_opt(year, month, day).expect("a day of the calendar").and_time(NaiveTime::MIN).and_utc()
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, expression) in self.expressions.iter().enumerate() {
            let between = if place == 0 { "" } else { " and " };
            write!(f, "{between}{expression}")?;
        }
        write!(f, " ({})", self.zone)
    }
}

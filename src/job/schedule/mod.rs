//! When a job ticks: crontab expressions in a time zone, a period, an instant, or by hand only. Pure,
//! without a clock.
//!
//! # Vocabulary
//! - An *expression* is crontab(5)'s five fields (minute, hour, day of month, month, day of week),
//!   six (second first), seven (and a year last), or a shorthand such as `@daily`.
//! - A *schedule* is one or more expressions in one zone, or a source without any: a period
//!   (`every`), an instant (`at`), or nothing (by hand). Where several expressions name the same
//!   instant, it is one trigger.
//! - A field is *starred* when it starts with `*`, be it `*`, `*/2` or `*,5`; `?` is `*`.
//! - A *fixed-time* expression has neither minute nor hour starred; all others are *wildcards*.
//! - A *relative day* lies elsewhere in each month: `L`, `L-3`, `LW`, `15W`, `FRI#2`, `FRIL`. A
//!   *workday* is a Monday to Friday.
//! - A *hashed* value, `H`, is drawn from the job's name, and for each field anew.
//! - A *gap* is the local times that a day lacks when the clocks go forward, a *fold* those that
//!   it has twice when they go back, in a first and a second *pass*.
//! - A schedule ticks inside its *window* only, and not in its *blackouts*, which begin at an
//!   instant or at each one of an expression, and last for a while.
//!
//! # Rules
//! - Day of month and day of week: when neither is starred, either may match; else both must.
//!   [crontab(5), "the day of a command's execution"; the star rule is in Debian's `cron.c`]
//! - Weekdays 0 and 7 are Sunday; `1/2` is `1-7/2`, for whose sake the week's last day is 7. [crontab(5)]
//! - A fixed-time instant in a gap fires once, at the gap's end; in a fold it fires in the first
//!   pass only. A wildcard fires whenever the clock shows its time. [cron(8) of Debian, "NOTES"]
//!   `dst_gap` and `dst_fold` of a job overrule that.
//! - Debian limits that to changes of less than three hours, because it can't tell a clock change
//!   from a clock that was set. A zone's change is never a correction, so here there is no limit: a
//!   job due on a day that its zone leaves out (Apia, 2011-12-30) fires once at the next one's start.
//! - `15W` stays in its month, and a month without a 31st has no `31W`; relative days are not
//!   starred. [Quartz, `CronExpression`]
//! - `H` as a day of month is drawn from 1 to 28, so that every month has it, as Jenkins
//!   does.
//! - What other dialects read differently is refused with a rewrite: backward ranges, a step after
//!   a name, `~`, names in part, `L` alone as a weekday.
//!
//! # How
//! ```text
//! text -> expression/: token.rs -> item.rs -> values.rs, a field each -> fields.rs
//!                                                                         |     |
//!                 cron::Schedule (local time), relative days: ticks.rs <--/     \-> passed/, words/,
//!                        |                                                          cautions/
//!                        \-> local.rs, gaps and folds --\
//!                                            every.rs ---+-> source.rs -> window.rs, blackout.rs
//! ```
//! The `cron` crate iterates, and this folder is its only user. It speaks Quartz and would
//! misread a crontab, so it sees canonical text only (numbers in range, weekdays by name), and
//! local times as if they were UTC, so that its own idea of gaps and folds never shows. Of relative
//! days it gets all that may be one.
//!
//! # What it does not do
//! It doesn't know the present: whether an expression has any instant *left* is asked by
//! [`Schedule::spent`]. Years end with 2100, and the clock changes with those that
//! the compiled-in tz database knows. It knows no holidays.

mod blackout;
mod cautions;
mod change;
mod error;
mod every;
mod expression;
mod local;
mod passed;
mod reading;
mod source;
mod stretch;
mod window;
mod words;
mod zone;

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use chrono_tz::Tz;

use blackout::Blackouts;
use every::Every;
use source::{Crontab, Source};
use stretch::Stretch;
use window::Window;

pub use blackout::{Blackout, InvalidBlackout};
pub use cautions::Caution;
pub use error::{FieldProblem, InvalidSchedule};
pub use every::InvalidEvery;
pub use expression::{Field, MAX_BYTES};
pub use passed::{Passed, Span};
pub use reading::{FoldRule, GapRule, Reading};
pub use zone::{InvalidZone, parse_zone};

/// When a job ticks, and in which zone that is told. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    zone: Tz,
    source: Source,
    window: Window,
    blackouts: Blackouts,
}

/// After so many blackout windows in a row that took every instant, no more are looked for.
const MAX_WINDOWS: usize = 10_000;

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
        Self::read(expressions, &Reading::in_zone(zone))
    }

    /// Reads several expressions of one job; the first that is wrong decides.
    ///
    /// # Errors
    /// [`InvalidSchedule`] when there is none, one is no expression, or one can't ever fire.
    pub fn read<I>(expressions: I, how: &Reading<'_>) -> Result<Self, InvalidSchedule>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        Ok(Self::of(Source::Crontab(Crontab::read(expressions, how)?), how.zone))
    }

    /// Every `period`, counted from the epoch plus `offset`, so that neither a restart nor a reload
    /// shifts it. Both are whole seconds; the zone is for display only.
    ///
    /// # Errors
    /// [`InvalidEvery`] when the period is none, or the offset not shorter than it.
    pub fn every(period: Duration, offset: Duration, zone: Tz) -> Result<Self, InvalidEvery> {
        Ok(Self::of(Source::Every(Every::new(period, offset)?), zone))
    }

    /// Once, at an instant; a part of a second is cut off. The zone is for display only.
    pub fn at(instant: DateTime<Utc>, zone: Tz) -> Self {
        Self::of(Source::At(instant.trunc_subsecs(0)), zone)
    }

    /// Never by itself. The zone is for display only.
    pub fn by_hand(zone: Tz) -> Self {
        Self::of(Source::ByHand, zone)
    }

    fn of(source: Source, zone: Tz) -> Self {
        Self { zone, source, window: Window::default(), blackouts: Blackouts::default() }
    }

    /// Ticks from `from` on, up to but not including `until`, instead of what it was told before.
    #[must_use]
    pub fn within(self, from: Option<DateTime<Utc>>, until: Option<DateTime<Utc>>) -> Self {
        Self { window: Window { from, until }, ..self }
    }

    /// Doesn't tick in these times, instead of those it was told before. [`within`](Self::within)
    /// comes first: what it leaves is looked at.
    ///
    /// # Errors
    /// [`InvalidSchedule::DenseBlackout`] when the windows of one are too many in a row,
    /// [`InvalidSchedule::BlackedOut`] when they leave no instant.
    pub fn without(self, blackouts: Vec<Blackout>) -> Result<Self, InvalidSchedule> {
        let bare = Self { blackouts: Blackouts::default(), ..self };
        let ticks = |schedule: &Self| schedule.next_after(DateTime::<Utc>::MIN_UTC).is_some();
        let schedule = Self { blackouts: Blackouts::new(blackouts), ..bare.clone() };
        match ticks(&bare) {
            true if schedule.blackouts.is_dense() => Err(InvalidSchedule::DenseBlackout),
            true if !ticks(&schedule) => Err(InvalidSchedule::BlackedOut),
            _ => Ok(schedule),
        }
    }

    /// The places, among [`expressions`](Self::expressions), of those whose last instant is not later than `now`, as in a
    /// past year. They are no fault: time alone makes no schedule wrong, and what they named may still have to be
    /// accounted for.
    pub fn spent(&self, now: DateTime<Utc>) -> Vec<usize> {
        match &self.source {
            Source::Crontab(crontab) => crontab.all_spent_at(self.zone, now).collect(),
            Source::Every(_) | Source::At(_) | Source::ByHand => Vec::new(),
        }
    }

    /// The zone whose local time the expressions speak of.
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// Whether it never ticks by itself.
    pub fn is_by_hand(&self) -> bool {
        self.source == Source::ByHand
    }

    /// The expressions as typed, in their order; none, if it isn't made of any.
    pub fn expressions(&self) -> impl ExactSizeIterator<Item = &str> {
        self.source.expressions().iter().map(expression::Expression::text)
    }

    /// The first instant strictly later than `after`; `None` when it never fires again.
    ///
    /// About a microsecond, and bounded for any expression: the search ends with the year 2100, or
    /// after 10,000 blackout windows that took every instant.
    pub fn next_after(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut after = self.window.enter(after);
        for _ in 0..MAX_WINDOWS {
            let next = self.source.next_after(self.zone, after)?;
            if self.window.is_left_at(next) {
                return None;
            }
            match self.blackouts.end_at(next) {
                None => return Some(next),
                // The end itself is no part of the window.
                Some(end) => after = end - TimeDelta::nanoseconds(1),
            }
        }
        None
    }

    /// What lies in `(after, through]`, without a walk over every instant: a year of seconds takes
    /// well under a millisecond.
    ///
    /// It is exact but for windows and blackouts that begin and end tens of thousands of times.
    pub fn passed(&self, after: DateTime<Utc>, through: DateTime<Utc>) -> Passed {
        let stretch = Stretch::later_than(after, through).common(self.window.stretch());
        passed::passed(&self.source, self.zone, &self.blackouts, stretch)
    }

    /// What it means, in plain English: `at 02:15 on Monday to Friday, Europe/Berlin`.
    pub fn words(&self) -> String {
        words::words(&self.source, self.zone, self.window, self.blackouts.iter())
    }

    /// What is surprising about its expressions, each thing once: clock changes within the 366 days
    /// from `from` on, steps that don't divide their range, days that months lack, day fields that
    /// are joined in another way than it seems.
    pub fn cautions(&self, from: DateTime<Utc>) -> Vec<Caution> {
        let setting = cautions::Setting { zone: self.zone, window: self.window, blackouts: &self.blackouts, from };
        cautions::cautions(self.source.expressions(), setting)
    }

    /// Names and values of all that decides when it ticks, for a digest: two schedules with the same
    /// tick at the same instants.
    pub fn canon(&self) -> Vec<(&'static str, String)> {
        let mut canon = self.source.canon(self.zone);
        let bounds = [("active_from", self.window.from), ("active_until", self.window.until)];
        canon.extend(bounds.into_iter().filter_map(|(name, bound)| Some((name, rfc3339(bound?)))));
        canon.extend(self.blackouts.canon());
        canon
    }
}

fn rfc3339(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
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
        match &self.source {
            Source::Crontab(crontab) => write!(f, "{crontab} ({})", self.zone),
            Source::Every(every) if every.offset() == 0 => write!(f, "every {}s", every.period()),
            Source::Every(every) => write!(f, "every {}s, offset {}s", every.period(), every.offset()),
            Source::At(instant) => write!(f, "at {}", rfc3339(*instant)),
            Source::ByHand => f.write_str("by hand"),
        }
    }
}

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDateTime;

use super::error::InvalidSchedule;
use super::field::Field;
use super::local::ClockChange;
use super::reading::Reading;
use super::token::tokenise;
use super::values::Values;

/// One expression, ready to be iterated in local time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    text: Box<str>,
    /// What fires; the day of month decides alone, or both day fields together (AND).
    ticks: cron::Schedule,
    /// What fires by the day of week alone, when either day field may match (OR).
    or_ticks: Option<cron::Schedule>,
    clock_change: ClockChange,
}

impl Expression {
    /// Reads an expression of five, six or seven fields, or a shorthand.
    pub(super) fn read(text: &str, how: &Reading<'_>) -> Result<Self, InvalidSchedule> {
        let tokens = tokenise(text)?;
        let second = tokens.second.map_or(Ok(Values::zero(Field::Second)), |t| Values::parse(Field::Second, t))?;
        let [minute, hour, day, month, weekday] = tokens.crontab;
        let minute = Values::parse(Field::Minute, minute)?;
        let hour = Values::parse(Field::Hour, hour)?;
        let day = Values::parse(Field::DayOfMonth, day)?;
        let month = Values::parse(Field::Month, month)?;
        let weekday = Values::parse(Field::DayOfWeek, weekday)?;
        let year = tokens.year.map_or(Ok(Values::any(Field::Year)), |t| Values::parse(Field::Year, t))?;

        let compiled = |day: &Values, weekday: &Values| compile([&second, &minute, &hour, day, &month, weekday, &year]);
        let either_day = !day.starred && !weekday.starred;
        let (ticks, or_ticks) = if either_day {
            let (any_day, any_weekday) = (Values::any(Field::DayOfMonth), Values::any(Field::DayOfWeek));
            (compiled(&day, &any_weekday), Some(compiled(&any_day, &weekday)))
        } else {
            (compiled(&day, &weekday), None)
        };
        let wildcard = minute.starred || hour.starred;
        let usual = if wildcard { ClockChange::WILDCARD } else { ClockChange::FIXED_TIME };
        let clock_change = ClockChange { gap: how.gap.unwrap_or(usual.gap), fold: how.fold.unwrap_or(usual.fold) };
        let text = text.trim_matches([' ', '\t']).into();
        Ok(Self { text, ticks, or_ticks, clock_change })
    }

    /// What the user typed, without the spaces around it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What the user typed, with one space between two fields.
    pub(super) fn canonical(&self) -> String {
        self.text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// What becomes of it when the clocks change.
    pub(super) fn clock_change(&self) -> ClockChange {
        self.clock_change
    }

    /// The first local time later than `after` that matches, clock changes aside.
    pub(super) fn next_local(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        // The crate thinks it iterates UTC, so it never meets its own rules for gaps and folds.
        let after = after.and_utc();
        let next = |ticks: &cron::Schedule| ticks.after(&after).next();
        let by_day = next(&self.ticks);
        let earliest = match self.or_ticks.as_ref().map(next) {
            None => by_day,
            Some(by_weekday) => by_day.into_iter().chain(by_weekday).min(),
        };
        earliest.map(|instant| instant.naive_utc())
    }
}

/// Hands canonical text to the `cron` crate, the only text it ever sees.
fn compile(fields: [&Values; 7]) -> cron::Schedule {
    let text = fields.map(Values::canonical).join(" ");
    cron::Schedule::from_str(&text).expect("the crate reads stars, lists of numbers in range and weekday names")
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

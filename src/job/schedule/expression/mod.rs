//! One expression: from its text to the local times that it names, clock changes aside.

mod dialect;
mod field;
mod fields;
mod hashed;
mod item;
mod numbers;
mod relative_day;
mod ticks;
mod token;
mod values;

use std::fmt;

use chrono::NaiveDateTime;

use super::error::InvalidSchedule;
use super::local::ClockChange;
use super::reading::Reading;
use ticks::{DayFields, Ticks};

pub use field::Field;
pub use fields::Fields;
pub use numbers::Numbers;
pub use relative_day::RelativeDay;
pub use token::{MAX_BYTES, Tokens, tokenise};
pub use values::Values;

/// One expression, ready to be iterated in local time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    text: Box<str>,
    fields: Fields,
    /// What fires; the day of month decides alone, or both day fields together (AND).
    ticks: Ticks,
    /// What fires by the day of week alone, when either day field may match (OR).
    or_ticks: Option<Box<Ticks>>,
    clock_change: ClockChange,
}

impl Expression {
    /// Reads an expression of five, six or seven fields, or a shorthand.
    pub fn read(text: &str, how: &Reading<'_>) -> Result<Self, InvalidSchedule> {
        let fields = Fields::read(text, how)?;
        let (ticks, or_ticks) = if fields.takes_either_day() {
            (Ticks::new(&fields, DayFields::Day), Some(Box::new(Ticks::new(&fields, DayFields::Weekday))))
        } else {
            (Ticks::new(&fields, DayFields::Both), None)
        };
        let usual = if fields.is_wildcard() { ClockChange::WILDCARD } else { ClockChange::FIXED_TIME };
        let clock_change = ClockChange { gap: how.gap.unwrap_or(usual.gap), fold: how.fold.unwrap_or(usual.fold) };
        let text = text.trim_matches([' ', '\t']).into();
        Ok(Self { text, fields, ticks, or_ticks, clock_change })
    }

    /// What the user typed, without the spaces around it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the user typed, with one space between two fields.
    pub fn canonical(&self) -> String {
        self.text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The fields as they were read.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// What becomes of it when the clocks change.
    pub fn clock_change(&self) -> ClockChange {
        self.clock_change
    }

    /// The first local time later than `after` that matches, clock changes aside.
    pub fn next_local(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        let by_day = self.ticks.next(&self.fields, after);
        match self.or_ticks.as_ref().map(|ticks| ticks.next(&self.fields, after)) {
            None => by_day,
            Some(by_weekday) => by_day.into_iter().chain(by_weekday).min(),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

use std::fmt;

use super::super::error::FieldProblem;

/// A field of an expression: its place, its range and its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// 0 to 59; only with six or seven fields.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or a name.
    Month,
    /// 0 to 7, or a name; 0 and 7 are Sunday.
    DayOfWeek,
    /// 1970 to 2100, what the `cron` crate knows; only with seven fields.
    Year,
}

/// The names by which months go, from 1.
const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
/// The names by which weekdays go, from 0.
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// One number or name as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its number.
    pub number: u16,
    /// Whether it was typed as a name.
    pub named: bool,
}

impl Field {
    /// The least number.
    pub fn least(self) -> u16 {
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::DayOfWeek => 0,
            Self::DayOfMonth | Self::Month => 1,
            Self::Year => 1970,
        }
    }

    /// The greatest number; 7 for the weekday, as `*` and `1/2` reach it in crontab(5).
    pub fn greatest(self) -> u16 {
        match self {
            Self::Second | Self::Minute => 59,
            Self::Hour => 23,
            Self::DayOfMonth => 31,
            Self::Month => 12,
            Self::DayOfWeek => 7,
            Self::Year => 2100,
        }
    }

    /// What is allowed, in words.
    pub fn allowed(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "0-59",
            Self::Hour => "0-23",
            Self::DayOfMonth => "1-31",
            Self::Month => "1-12 or JAN-DEC",
            Self::DayOfWeek => "0-7 or SUN-SAT",
            Self::Year => "1970-2100",
        }
    }

    /// A range that would do.
    pub fn example(self) -> &'static str {
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::DayOfMonth | Self::Month => "1-5",
            Self::DayOfWeek => "MON-FRI",
            Self::Year => "2027-2030",
        }
    }

    /// Whether `?` may stand for `*`.
    pub fn is_day(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }

    /// Reads a number or a name.
    pub fn value(self, text: &str) -> Result<Value, FieldProblem> {
        if let Some(number) = self.number_of(text) {
            return Ok(Value { number, named: true });
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(FieldProblem::NoValue { text: text.to_owned(), allowed: self.allowed() });
        }
        match text.parse() {
            Ok(number) if (self.least()..=self.greatest()).contains(&number) => Ok(Value { number, named: false }),
            _ => Err(FieldProblem::OutOfRange { value: text.to_owned(), allowed: self.allowed() }),
        }
    }

    /// Writes a number the way its neighbour was typed.
    pub fn write(self, number: u16, named: bool) -> String {
        let index = usize::from(number);
        match self {
            Self::Month if named => MONTHS[index - 1].to_owned(),
            Self::DayOfWeek if named => WEEKDAYS[index % 7].to_owned(),
            _ => number.to_string(),
        }
    }

    fn number_of(self, name: &str) -> Option<u16> {
        let (names, first): (&[&str], u16) = match self {
            Self::Month => (&MONTHS, 1),
            Self::DayOfWeek => (&WEEKDAYS, 0),
            _ => return None,
        };
        (first..).zip(names).find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(number, _)| number)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
            Self::Year => "year",
        })
    }
}

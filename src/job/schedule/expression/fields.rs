use chrono::{Datelike, NaiveDate};

use super::super::error::InvalidSchedule;
use super::super::reading::Reading;
use super::field::Field;
use super::token::tokenise;
use super::values::Values;

/// The fields of an expression that was read, also those that were not typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    pub second: Values,
    pub minute: Values,
    pub hour: Values,
    pub day: Values,
    pub month: Values,
    pub weekday: Values,
    pub year: Values,
}

impl Fields {
    /// Reads five, six or seven fields, or a shorthand.
    pub fn read(text: &str, how: &Reading<'_>) -> Result<Self, InvalidSchedule> {
        let tokens = tokenise(text)?;
        let values = |field, token| Values::parse(field, token, how.job);
        let second = tokens.second.map_or(Ok(Values::zero(Field::Second)), |token| values(Field::Second, token))?;
        let [minute, hour, day, month, weekday] = tokens.crontab;
        Ok(Self {
            second,
            minute: values(Field::Minute, minute)?,
            hour: values(Field::Hour, hour)?,
            day: values(Field::DayOfMonth, day)?,
            month: values(Field::Month, month)?,
            weekday: values(Field::DayOfWeek, weekday)?,
            year: tokens.year.map_or(Ok(Values::any(Field::Year)), |token| values(Field::Year, token))?,
        })
    }

    /// Whether a date matches by its day of month or its weekday alone (OR), or by both only (AND).
    pub fn takes_either_day(&self) -> bool {
        !self.day.starred && !self.weekday.starred
    }

    /// Whether it is a wildcard rather than a fixed-time expression.
    pub fn is_wildcard(&self) -> bool {
        self.minute.starred || self.hour.starred
    }

    /// Whether anything fires on a date, as far as its local times are there.
    pub fn takes_date(&self, date: NaiveDate) -> bool {
        let (day, weekday) = (self.takes_day(date), self.takes_weekday(date));
        let right_day = if self.takes_either_day() { day || weekday } else { day && weekday };
        right_day && has(&self.month, date.month()) && has(&self.year, date.year().unsigned_abs())
    }

    /// Whether the field of the day of month takes a date.
    pub fn takes_day(&self, date: NaiveDate) -> bool {
        takes(&self.day, date.day(), date)
    }

    /// Whether the field of the weekday takes a date.
    pub fn takes_weekday(&self, date: NaiveDate) -> bool {
        takes(&self.weekday, date.weekday().num_days_from_sunday(), date)
    }
}

fn has(values: &Values, number: u32) -> bool {
    u16::try_from(number).is_ok_and(|number| values.numbers().contains(number))
}

fn takes(values: &Values, number: u32, date: NaiveDate) -> bool {
    has(values, number) || values.relative().iter().any(|day| day.is_on(date))
}

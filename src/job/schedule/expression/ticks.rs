use std::ops::RangeInclusive;
use std::str::FromStr;

use chrono::{NaiveDateTime, NaiveTime};

use super::field::Field;
use super::fields::Fields;
use super::numbers::Numbers;
use super::relative_day::RelativeDay;
use super::values::Values;

const LAST_OF_DAY: NaiveTime = NaiveTime::from_hms_opt(23, 59, 59).expect("a time of day");

/// Local times, found by the `cron` crate: it is told the days among which relative days are found,
/// and those of them that are none are left out here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticks {
    candidates: cron::Schedule,
    /// Whether a candidate must be looked at.
    has_relative_days: bool,
    days: DayFields,
}

/// Which of its day fields a date must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayFields {
    /// Day of month and weekday.
    Both,
    /// The day of month.
    Day,
    /// The weekday.
    Weekday,
}

impl Ticks {
    pub fn new(fields: &Fields, days: DayFields) -> Self {
        let (any_day, any_weekday) = (Values::any(Field::DayOfMonth), Values::any(Field::DayOfWeek));
        let (day, weekday) = match days {
            DayFields::Both => (&fields.day, &fields.weekday),
            DayFields::Day => (&fields.day, &any_weekday),
            DayFields::Weekday => (&any_day, &fields.weekday),
        };
        let texts = [
            plain(Field::Second, &fields.second),
            plain(Field::Minute, &fields.minute),
            plain(Field::Hour, &fields.hour),
            candidate_days(day, weekday),
            plain(Field::Month, &fields.month),
            candidate_weekdays(day, weekday),
            plain(Field::Year, &fields.year),
        ];
        let candidates = cron::Schedule::from_str(&texts.join(" "));
        Self {
            candidates: candidates.expect("the crate reads stars, lists of numbers in range and weekday names"),
            has_relative_days: !(day.relative().is_empty() && weekday.relative().is_empty()),
            days,
        }
    }

    /// The first local time later than `after`, clock changes aside. `fields` are those that it was
    /// made from.
    pub fn next(&self, fields: &Fields, mut after: NaiveDateTime) -> Option<NaiveDateTime> {
        loop {
            // The crate thinks it iterates UTC, so it never meets its own rules for gaps and folds.
            let candidate = self.candidates.after(&after.and_utc()).next()?.naive_utc();
            if !self.has_relative_days || self.take(fields, candidate) {
                return Some(candidate);
            }
            // The whole day is none, however many times it has.
            after = candidate.date().and_time(LAST_OF_DAY);
        }
    }

    fn take(&self, fields: &Fields, candidate: NaiveDateTime) -> bool {
        let date = candidate.date();
        match self.days {
            DayFields::Both => fields.takes_day(date) && fields.takes_weekday(date),
            DayFields::Day => fields.takes_day(date),
            DayFields::Weekday => fields.takes_weekday(date),
        }
    }
}

/// Text that the crate can't misread: `*`, or a list of numbers.
fn plain(field: Field, values: &Values) -> String {
    if values.is_any() { "*".to_owned() } else { list(field, values.numbers()) }
}

/// The days of month that may match: those of the field, as far as a weekday may fall on them that
/// is one of a month's first, second or last only.
fn candidate_days(day: &Values, weekday: &Values) -> String {
    let mut days = day.numbers();
    days.extend(day.relative().iter().flat_map(|relative| relative.days()));
    list(Field::DayOfMonth, narrowed(days, weekday, RelativeDay::days))
}

/// The weekdays that may match, as far as a day may fall on them that is a workday only. By name,
/// because the crate counts weekdays from 1 = Sunday.
fn candidate_weekdays(day: &Values, weekday: &Values) -> String {
    let mut weekdays = weekday.numbers();
    weekdays.extend(weekday.relative().iter().flat_map(|relative| relative.weekdays()));
    list(Field::DayOfWeek, narrowed(weekdays, day, RelativeDay::weekdays))
}

/// What of `numbers` the other day field can meet, if it has relative days only.
fn narrowed(numbers: Numbers, other: &Values, reach: fn(RelativeDay) -> RangeInclusive<u16>) -> Numbers {
    if !other.numbers().is_empty() {
        return numbers;
    }
    let mut near = numbers;
    near.retain(|number| other.relative().iter().any(|relative| reach(*relative).contains(&number)));
    // `*/31` and `FRI#2` never meet: then none of the days will be taken.
    if near.is_empty() { numbers } else { near }
}

/// A whole range is a star: the crate keeps no list for it.
fn list(field: Field, numbers: Numbers) -> String {
    if numbers.len() == Values::any(field).numbers().len() {
        return "*".to_owned();
    }
    let named = field == Field::DayOfWeek;
    numbers.iter().map(|number| field.write(number, named)).collect::<Vec<_>>().join(",")
}

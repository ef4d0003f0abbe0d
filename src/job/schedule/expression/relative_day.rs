use std::ops::RangeInclusive;

use chrono::{Datelike, NaiveDate, Weekday};

use super::super::error::FieldProblem;
use super::field::Field;

/// A day that each month has elsewhere. A *workday* is a Monday to Friday; holidays are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RelativeDay {
    /// `L` is the last day of the month, `L-3` the third before it.
    BeforeLast(u8),
    /// `15W`: the workday nearest to the 15th, in the same month. None, if the month has no such day.
    NearestWorkday(u8),
    /// `LW`: the last workday of the month.
    LastWorkday,
    /// `FRI#2`: the second Friday of the month. None, if the month has not so many.
    Nth {
        /// 0 is Sunday.
        weekday: u8,
        /// 1 to 5.
        nth: u8,
    },
    /// `FRIL`: the last Friday of the month.
    Last {
        /// 0 is Sunday.
        weekday: u8,
    },
}

impl RelativeDay {
    /// Reads an item of a day field; `None`: it is a plain one.
    pub fn parse(field: Field, item: &str) -> Result<Option<Self>, FieldProblem> {
        let item = item.to_ascii_uppercase();
        match field {
            Field::DayOfMonth => parse_month_day(&item).transpose(),
            Field::DayOfWeek => parse_weekday(&item).transpose(),
            _ => Ok(None),
        }
    }

    /// Whether `date` is this day of its month.
    pub fn is_on(self, date: NaiveDate) -> bool {
        let (day, length) = (date.day(), u32::from(date.num_days_in_month()));
        let weekday = |number: u8| date.weekday().num_days_from_sunday() == u32::from(number);
        match self {
            Self::BeforeLast(days) => day + u32::from(days) == length,
            Self::NearestWorkday(named) => {
                date.with_day(named.into()).is_some_and(|named| nearest_workday(named) == day)
            }
            Self::LastWorkday => date.with_day(length).is_some_and(|last| last_workday(last) == day),
            Self::Nth { weekday: number, nth } => weekday(number) && (day - 1) / 7 + 1 == u32::from(nth),
            Self::Last { weekday: number } => weekday(number) && day + 7 > length,
        }
    }

    /// The days of month among which it is found.
    pub fn days(self) -> RangeInclusive<u16> {
        let number = u16::from;
        match self {
            Self::BeforeLast(days) => 28_u16.saturating_sub(number(days)).max(1)..=31 - number(days),
            // A Saturday the 1st moves to the 3rd, a Sunday at the end back by two.
            Self::NearestWorkday(named) => number(named).saturating_sub(2).max(1)..=(number(named) + 2).min(31),
            Self::LastWorkday => 26..=31,
            Self::Nth { nth, .. } => 7 * number(nth) - 6..=(7 * number(nth)).min(31),
            Self::Last { .. } => 22..=31,
        }
    }

    /// The weekdays among which it is found; 0 is Sunday.
    pub fn weekdays(self) -> RangeInclusive<u16> {
        match self {
            Self::BeforeLast(_) => 0..=6,
            Self::NearestWorkday(_) | Self::LastWorkday => 1..=5,
            Self::Nth { weekday, .. } | Self::Last { weekday } => weekday.into()..=weekday.into(),
        }
    }
}

fn nearest_workday(named: NaiveDate) -> u32 {
    let day = named.day();
    match named.weekday() {
        Weekday::Sat if day == 1 => 3,
        Weekday::Sat => day - 1,
        Weekday::Sun if day == u32::from(named.num_days_in_month()) => day - 2,
        Weekday::Sun => day + 1,
        _ => day,
    }
}

fn last_workday(last: NaiveDate) -> u32 {
    last.day() - last.weekday().num_days_from_monday().saturating_sub(4)
}

/// `L`, `L-3`, `LW`, `15W`.
fn parse_month_day(item: &str) -> Option<Result<RelativeDay, FieldProblem>> {
    let plain = item.split('/').next().unwrap_or(item);
    if plain == "L" || plain == "LW" || plain.starts_with("L-") || plain.ends_with('W') {
        if plain != item {
            return Some(Err(FieldProblem::RelativeStep));
        }
    } else {
        return None;
    }
    Some(match plain.strip_suffix('W') {
        Some("L") => Ok(RelativeDay::LastWorkday),
        Some("") => Err(FieldProblem::LoneW),
        Some(day) if day.starts_with("L-") => Err(FieldProblem::WorkdayBeforeLast),
        Some(day) if day.contains('-') => Err(FieldProblem::WorkdayRange),
        Some(day) => Field::DayOfMonth.value(day).map(|day| RelativeDay::NearestWorkday(small(day.number))),
        None => before_last(plain),
    })
}

fn before_last(item: &str) -> Result<RelativeDay, FieldProblem> {
    let Some(days) = item.strip_prefix("L-") else { return Ok(RelativeDay::BeforeLast(0)) };
    let digits = days.bytes().all(|byte| byte.is_ascii_digit());
    match days.parse() {
        Ok(days @ 0..=30) if digits => Ok(RelativeDay::BeforeLast(days)),
        _ => Err(FieldProblem::BeforeLast),
    }
}

/// `FRI#2`, `5#2`, `FRIL`, `5L`; the months JUL and APR end like one, but are not in this field.
fn parse_weekday(item: &str) -> Option<Result<RelativeDay, FieldProblem>> {
    let plain = item.split('/').next().unwrap_or(item);
    let (weekday, nth) = match (plain.split_once('#'), plain.strip_suffix('L')) {
        (Some((weekday, nth)), _) => (weekday, Some(nth)),
        (None, Some(weekday)) => (weekday, None),
        (None, None) => return None,
    };
    Some(if plain != item {
        Err(FieldProblem::RelativeStep)
    } else if plain == "L" {
        Err(FieldProblem::LoneL)
    } else if weekday.contains('-') {
        Err(FieldProblem::RelativeRange)
    } else {
        relative_weekday(weekday, nth)
    })
}

fn relative_weekday(weekday: &str, nth: Option<&str>) -> Result<RelativeDay, FieldProblem> {
    let value = Field::DayOfWeek.value(weekday)?;
    let weekday = small(value.number % 7);
    match nth.map(str::as_bytes) {
        None => Ok(RelativeDay::Last { weekday }),
        Some([nth @ b'1'..=b'5']) => Ok(RelativeDay::Nth { weekday, nth: nth - b'0' }),
        Some(_) => {
            let name = Field::DayOfWeek.write(weekday.into(), value.named);
            Err(FieldProblem::Nth { weekday: name })
        }
    }
}

fn small(number: u16) -> u8 {
    u8::try_from(number).expect("a day is a small number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(field: Field, item: &str, year: i32, month: u32) -> Vec<u32> {
        let relative = RelativeDay::parse(field, item).unwrap().expect("no plain item");
        let first = NaiveDate::from_ymd_opt(year, month, 1).unwrap();
        let found: Vec<_> =
            first.iter_days().take(first.num_days_in_month().into()).filter(|day| relative.is_on(*day)).collect();
        for day in &found {
            let weekday = u16::try_from(day.weekday().num_days_from_sunday()).unwrap();
            assert!(relative.days().contains(&u16::try_from(day.day()).unwrap()), "{item}: {day} is no candidate");
            assert!(relative.weekdays().contains(&weekday), "{item}: {day} is no candidate");
        }
        found.iter().map(Datelike::day).collect()
    }

    #[test]
    fn a_month_has_its_relative_days_where_a_calendar_shows_them() {
        // 2027: May begins with a Saturday, February has 28 days and ends on a Sunday.
        for (field, item, year, month, expected) in [
            (Field::DayOfMonth, "L", 2027, 2, vec![28]),
            (Field::DayOfMonth, "L", 2028, 2, vec![29]),
            (Field::DayOfMonth, "l-3", 2027, 4, vec![27]),
            (Field::DayOfMonth, "L-29", 2027, 4, vec![1]),
            (Field::DayOfMonth, "L-30", 2027, 4, vec![]),
            (Field::DayOfMonth, "L-30", 2027, 5, vec![1]),
            (Field::DayOfMonth, "LW", 2027, 2, vec![26]),
            (Field::DayOfMonth, "lw", 2027, 7, vec![30]),
            (Field::DayOfMonth, "LW", 2027, 8, vec![31]),
            (Field::DayOfMonth, "1W", 2027, 5, vec![3]),
            (Field::DayOfMonth, "2W", 2027, 5, vec![3]),
            (Field::DayOfMonth, "8w", 2027, 5, vec![7]),
            (Field::DayOfMonth, "28W", 2027, 2, vec![26]),
            (Field::DayOfMonth, "29W", 2027, 2, vec![]),
            (Field::DayOfMonth, "31W", 2027, 7, vec![30]),
            (Field::DayOfMonth, "15W", 2027, 6, vec![15]),
            (Field::DayOfWeek, "SAT#1", 2027, 5, vec![1]),
            (Field::DayOfWeek, "fri#2", 2027, 5, vec![14]),
            (Field::DayOfWeek, "5#5", 2027, 5, vec![]),
            (Field::DayOfWeek, "MON#5", 2027, 5, vec![31]),
            (Field::DayOfWeek, "7#1", 2027, 5, vec![2]),
            (Field::DayOfWeek, "0L", 2027, 2, vec![28]),
            (Field::DayOfWeek, "monL", 2027, 2, vec![22]),
        ] {
            assert_eq!(days(field, item, year, month), expected, "{item} in {year}-{month}");
        }
    }

    #[test]
    fn every_relative_day_of_every_month_is_among_its_candidates() {
        let workdays = (1..=31).map(|day| format!("{day}W")).chain((0..=30).map(|days| format!("L-{days}")));
        let items = workdays.map(|item| (Field::DayOfMonth, item)).chain([(Field::DayOfMonth, "LW".to_owned())]);
        let nth = (0..7).flat_map(|weekday| (1..=5).map(move |nth| format!("{weekday}#{nth}")));
        let nth = nth.chain((0..7).map(|weekday| format!("{weekday}L"))).map(|item| (Field::DayOfWeek, item));
        for (field, item) in items.chain(nth) {
            let months = (2020..2028).flat_map(|year| (1..=12).map(move |month| (year, month)));
            let counts: Vec<_> = months.map(|(year, month)| days(field, &item, year, month).len()).collect();
            assert!(counts.iter().all(|count| *count <= 1) && counts.contains(&1), "{item}: {counts:?}");
        }
    }

    #[test]
    fn plain_items_are_left_to_others() {
        for (field, item) in [
            (Field::DayOfWeek, "FRI"),
            (Field::DayOfWeek, "1-5/2"),
            (Field::DayOfMonth, "15"),
            (Field::DayOfMonth, "1-15"),
            (Field::Month, "JUL"),
            (Field::Hour, "L"),
        ] {
            assert_eq!(RelativeDay::parse(field, item), Ok(None), "{item}");
        }
    }
}

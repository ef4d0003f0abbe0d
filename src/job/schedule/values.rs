use std::collections::BTreeSet;

use super::error::InvalidSchedule;
use super::field::Field;
use super::item::{Item, parse_item};

/// A field that was read: which values match, and how it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    field: Field,
    /// What matches; Sunday is 0.
    numbers: BTreeSet<u16>,
    /// Whether it *starts with* `*`, or is `?`. That decides between AND and OR of the day fields
    /// and between fixed-time and wildcard jobs, even for `*/2` and `*,5`.
    pub starred: bool,
}

impl Values {
    /// Reads one field, a list of items.
    pub(super) fn parse(field: Field, token: &str) -> Result<Self, InvalidSchedule> {
        if token == "?" && field.is_day() {
            return Ok(Self::any(field));
        }
        let mut numbers = BTreeSet::new();
        for item in token.split(',') {
            let Item { first, last, step } = parse_item(field, item).map_err(|problem| {
                // An empty item says nothing about where it is: show the whole list.
                let token = if item.is_empty() { token } else { item };
                InvalidSchedule::Field { field, token: token.to_owned(), problem }
            })?;
            numbers.extend((first..=last).step_by(usize::from(step)));
        }
        if field == Field::DayOfWeek && numbers.remove(&7) {
            numbers.insert(0);
        }
        Ok(Self { field, numbers, starred: token.starts_with('*') })
    }

    /// A field that matches always, as a typed `*` does.
    pub(super) fn any(field: Field) -> Self {
        Self { field, numbers: (field.least()..=field.greatest()).collect(), starred: true }
    }

    /// A field that matches 0 only: the second of a five-field expression.
    pub(super) fn zero(field: Field) -> Self {
        Self { field, numbers: BTreeSet::from([0]), starred: false }
    }

    /// Text that the `cron` crate can't misread: `*`, or a list of numbers or weekday names.
    ///
    /// Names, because the crate counts weekdays from 1 = Sunday.
    pub(super) fn canonical(&self) -> String {
        let all = match self.field {
            Field::DayOfWeek => 7,
            field => usize::from(field.greatest() - field.least() + 1),
        };
        if self.numbers.len() >= all {
            return "*".to_owned();
        }
        let named = self.field == Field::DayOfWeek;
        let values: Vec<_> = self.numbers.iter().map(|number| self.field.write(*number, named)).collect();
        values.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(field: Field, token: &str) -> String {
        Values::parse(field, token).unwrap().canonical()
    }

    #[test]
    fn what_reaches_the_crate_is_a_star_or_a_plain_list() {
        assert_eq!(canonical(Field::Minute, "*/20"), "0,20,40");
        assert_eq!(canonical(Field::Minute, "5/15"), "5,20,35,50");
        assert_eq!(canonical(Field::Minute, "007,3-4"), "3,4,7");
        assert_eq!(canonical(Field::Hour, "0-23"), "*");
        assert_eq!(canonical(Field::Month, "jan-mar,Dec"), "1,2,3,12");
        assert_eq!(canonical(Field::DayOfMonth, "?"), "*");
        assert_eq!(canonical(Field::Year, "2099/1"), "2099,2100");
    }

    #[test]
    fn weekdays_are_written_as_names_and_both_0_and_7_are_sunday() {
        assert_eq!(canonical(Field::DayOfWeek, "0"), "SUN");
        assert_eq!(canonical(Field::DayOfWeek, "0,7"), "SUN");
        assert_eq!(canonical(Field::DayOfWeek, "1-5"), "MON,TUE,WED,THU,FRI");
        assert_eq!(canonical(Field::DayOfWeek, "0-6"), "*");
        assert_eq!(canonical(Field::DayOfWeek, "1-7"), "*");
    }

    #[test]
    fn a_range_may_end_on_sunday() {
        for token in ["FRI-SUN", "5-7", "5-0", "fri-0"] {
            assert_eq!(canonical(Field::DayOfWeek, token), "SUN,FRI,SAT", "{token}");
        }
        assert_eq!(canonical(Field::DayOfWeek, "SUN-TUE"), "SUN,MON,TUE");
        assert_eq!(canonical(Field::DayOfWeek, "SUN-SUN"), "SUN");
    }

    #[test]
    fn a_field_is_starred_by_its_first_character() {
        for (token, starred) in [("*", true), ("*/2", true), ("*,5", true), ("5,*", false), ("0-59", false)] {
            assert_eq!(Values::parse(Field::Minute, token).unwrap().starred, starred, "{token}");
        }
        assert!(Values::parse(Field::DayOfWeek, "?").unwrap().starred);
    }
}

use super::super::error::InvalidSchedule;
use super::field::Field;
use super::item::{Item, Span, parse_item};
use super::numbers::Numbers;
use super::relative_day::RelativeDay;
use crate::job::JobName;

/// A field that was read: which values match, and how it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    field: Field,
    /// What matches in every month; Sunday is 0.
    numbers: Numbers,
    /// What matches elsewhere in each month, in order.
    relative: Box<[RelativeDay]>,
    /// Whether it *starts with* `*`, or is `?`. That decides between AND and OR of the day fields
    /// and between fixed-time and wildcard jobs, even for `*/2` and `*,5`.
    pub starred: bool,
}

impl Values {
    /// Reads one field, a list of items.
    pub fn parse(field: Field, token: &str, job: Option<&JobName>) -> Result<Self, InvalidSchedule> {
        if token == "?" && field.is_day() {
            return Ok(Self::any(field));
        }
        let (mut numbers, mut relative) = (Numbers::none(field.least()), Vec::new());
        for item in token.split(',') {
            let read = parse_item(field, item, job).map_err(|problem| {
                // An empty item says nothing about where it is: show the whole list.
                let token = if item.is_empty() { token } else { item };
                InvalidSchedule::Field { field, token: token.to_owned(), problem }
            })?;
            match read {
                Item::Span(Span { first, last, step }) => {
                    numbers.extend((first..=last).step_by(usize::from(step)).map(|number| canonical(field, number)));
                }
                Item::Relative(day) => relative.push(day),
            }
        }
        relative.sort_unstable();
        relative.dedup();
        Ok(Self { field, numbers, relative: relative.into(), starred: token.starts_with('*') })
    }

    /// A field that matches always, as a typed `*` does.
    pub fn any(field: Field) -> Self {
        let mut numbers = Numbers::none(field.least());
        numbers.extend((field.least()..=field.greatest()).map(|number| canonical(field, number)));
        Self { field, numbers, relative: Box::default(), starred: true }
    }

    /// A field that matches 0 only: the second of a five-field expression.
    pub fn zero(field: Field) -> Self {
        let mut numbers = Numbers::none(0);
        numbers.insert(0);
        Self { field, numbers, relative: Box::default(), starred: false }
    }

    /// What matches in every month; Sunday is 0.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// What matches elsewhere in each month.
    pub fn relative(&self) -> &[RelativeDay] {
        &self.relative
    }

    /// Whether every value matches.
    pub fn is_any(&self) -> bool {
        let all = match self.field {
            Field::DayOfWeek => 7,
            field => field.greatest() - field.least() + 1,
        };
        self.numbers.len() == u32::from(all)
    }
}

/// Sunday has two numbers, 0 and 7.
fn canonical(field: Field, number: u16) -> u16 {
    if field == Field::DayOfWeek { number % 7 } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(field: Field, token: &str) -> Vec<u16> {
        Values::parse(field, token, None).unwrap().numbers().iter().collect()
    }

    #[test]
    fn a_field_is_the_union_of_its_items() {
        assert_eq!(numbers(Field::Minute, "*/20"), [0, 20, 40]);
        assert_eq!(numbers(Field::Minute, "5/15"), [5, 20, 35, 50]);
        assert_eq!(numbers(Field::Minute, "007,3-4"), [3, 4, 7]);
        assert_eq!(numbers(Field::Month, "jan-mar,Dec"), [1, 2, 3, 12]);
        assert_eq!(numbers(Field::Year, "2099/1"), [2099, 2100]);
        assert_eq!(numbers(Field::DayOfMonth, "L,3"), [3]);
    }

    #[test]
    fn both_0_and_7_are_sunday_and_a_range_may_end_on_it() {
        assert_eq!(numbers(Field::DayOfWeek, "0,7"), [0]);
        assert_eq!(numbers(Field::DayOfWeek, "1-5"), [1, 2, 3, 4, 5]);
        for token in ["FRI-SUN", "5-7", "5-0", "fri-0"] {
            assert_eq!(numbers(Field::DayOfWeek, token), [0, 5, 6], "{token}");
        }
        assert_eq!(numbers(Field::DayOfWeek, "SUN-TUE"), [0, 1, 2]);
        assert_eq!(numbers(Field::DayOfWeek, "SUN-SUN"), [0]);
    }

    #[test]
    fn a_field_with_every_value_is_any_however_it_was_typed() {
        for (field, token) in [
            (Field::Hour, "0-23"),
            (Field::Hour, "*/1"),
            (Field::DayOfWeek, "0-6"),
            (Field::DayOfWeek, "1-7"),
            (Field::DayOfMonth, "?"),
            (Field::Year, "1970-2100"),
            (Field::DayOfMonth, "L,1-31"),
        ] {
            assert!(Values::parse(field, token, None).unwrap().is_any(), "{token}");
        }
        for (field, token) in [(Field::Hour, "0-22"), (Field::DayOfWeek, "1-6"), (Field::DayOfMonth, "1-30,L")] {
            assert!(!Values::parse(field, token, None).unwrap().is_any(), "{token}");
        }
    }

    #[test]
    fn relative_days_stand_in_lists_once_each() {
        let values = Values::parse(Field::DayOfMonth, "15,L,lw,L-0,3W", None).unwrap();
        let expected = [RelativeDay::BeforeLast(0), RelativeDay::NearestWorkday(3), RelativeDay::LastWorkday];
        assert_eq!((values.numbers().iter().collect::<Vec<_>>(), values.relative()), (vec![15], &expected[..]));
        assert!(!values.starred);
    }

    #[test]
    fn a_field_is_starred_by_its_first_character() {
        for (token, starred) in [("*", true), ("*/2", true), ("*,5", true), ("5,*", false), ("0-59", false)] {
            assert_eq!(Values::parse(Field::Minute, token, None).unwrap().starred, starred, "{token}");
        }
        assert!(Values::parse(Field::DayOfWeek, "?", None).unwrap().starred);
    }
}

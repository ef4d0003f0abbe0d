use std::collections::BTreeSet;

use super::error::{FieldProblem, InvalidSchedule};
use super::field::{Field, Value, WEEKDAYS};

/// The greatest step; a step past the range leaves its first value, as in crontab(5).
const MAX_STEP: u16 = 9999;

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
            return Ok(Self { field, numbers: (field.least()..=field.greatest()).collect(), starred: true });
        }
        let mut numbers = BTreeSet::new();
        for item in token.split(',') {
            let (first, last, step) = parse_item(field, item).map_err(|problem| {
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

/// Reads `*`, `*/n`, `a`, `a/n`, `a-b` or `a-b/n`; answers first, last and step.
fn parse_item(field: Field, item: &str) -> Result<(u16, u16, u16), FieldProblem> {
    refuse_other_dialects(field, item)?;
    let (range, step) = match item.split_once('/') {
        None => (item, None),
        Some(("", _)) => return Err(FieldProblem::BareStep { step: item.to_owned() }),
        Some((_, step)) if step.contains('/') => return Err(FieldProblem::TwoSteps),
        Some((range, step)) => (range, Some(parse_step(step)?)),
    };
    if range == "*" {
        return Ok((field.least(), field.greatest(), step.unwrap_or(1)));
    }
    if let Some((first, last)) = range.split_once('-') {
        let (first, last) = parse_range(field, first, last, step.unwrap_or(1))?;
        return Ok((first, last, step.unwrap_or(1)));
    }
    let value = field.value(range)?;
    match step {
        None => Ok((value.number, value.number, 1)),
        Some(step) if value.named => {
            // SUN-SUN would be one day; SUN-SAT/2 has the same days as crontab(5)'s 0-7/2 and reads better.
            let greatest = if field == Field::DayOfWeek && value.number == 0 { 6 } else { field.greatest() };
            let end = field.write(greatest, true);
            Err(FieldProblem::StepAfterName { rewrite: format!("{}-{end}/{step}", range.to_ascii_uppercase()) })
        }
        Some(step) => Ok((value.number, field.greatest(), step)),
    }
}

fn parse_step(text: &str) -> Result<u16, FieldProblem> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(step @ 1..=MAX_STEP) if digits => Ok(step),
        _ => Err(FieldProblem::Step { step: text.to_owned() }),
    }
}

fn parse_range(field: Field, first: &str, last: &str, step: u16) -> Result<(u16, u16), FieldProblem> {
    if first.is_empty() || last.is_empty() || last.contains('-') {
        return Err(FieldProblem::Range { allowed: field.allowed(), example: field.example() });
    }
    let (first, mut last) = (field.value(first)?, field.value(last)?);
    // FRI-SUN and 5-0: at the end of a range Sunday closes the week.
    if field == Field::DayOfWeek && last.number == 0 && first.number > 0 {
        last.number = 7;
    }
    if first.number > last.number {
        return Err(FieldProblem::Backwards { rewrite: rewrite_backwards(field, first, last, step) });
    }
    Ok((first.number, last.number))
}

/// The same values in rising order: `22-2` is `22-23,0-2`; years don't come around, they are swapped.
fn rewrite_backwards(field: Field, first: Value, last: Value, step: u16) -> String {
    let named = first.named && last.named;
    let write = |number| field.write(number, named);
    let span = |from: u16, to: u16| if from == to { write(from) } else { format!("{}-{}", write(from), write(to)) };
    // The week of ranges is Monday to Sunday, so that FRI-MON becomes FRI-SUN,MON.
    let least = if field == Field::DayOfWeek { 1 } else { field.least() };
    match (field, step) {
        (Field::Year, 1) => span(last.number, first.number),
        (Field::Year, _) => format!("{}/{step}", span(last.number, first.number)),
        (_, 1) => format!("{},{}", span(first.number, field.greatest()), span(least, last.number)),
        _ => {
            let around = (first.number..=field.greatest()).chain(least..=last.number);
            let values: Vec<_> = around.step_by(usize::from(step)).map(write).collect();
            values.join(",")
        }
    }
}

/// Refuses what only other dialects of cron know, each with its own remedy.
fn refuse_other_dialects(field: Field, item: &str) -> Result<(), FieldProblem> {
    if item.is_empty() {
        return Err(FieldProblem::EmptyItem);
    }
    if item.contains('~') {
        return Err(FieldProblem::Random);
    }
    if item.contains('?') {
        return Err(FieldProblem::Question);
    }
    if is_beyond_crontab(field, &item.to_ascii_uppercase()) {
        return Err(FieldProblem::Unsupported { allowed: field.allowed() });
    }
    let base = item.split('/').next().unwrap_or(item);
    if base.len() > 1 && base.contains('*') && !base.contains('-') {
        return Err(FieldProblem::GluedStar);
    }
    Ok(())
}

/// `H` anywhere; `L`, `L-3`, `LW`, `15W` as a day of month; `FRI#2`, `FRIL`, `L` as a weekday.
fn is_beyond_crontab(field: Field, item: &str) -> bool {
    let hashed = item.strip_prefix('H').is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '(']));
    hashed
        || match field {
            Field::DayOfMonth => item == "L" || item.starts_with("L-") || item.ends_with('W'),
            Field::DayOfWeek => item.contains('#') || item.strip_suffix('L').is_some_and(is_weekday_or_empty),
            _ => false,
        }
}

fn is_weekday_or_empty(text: &str) -> bool {
    text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit()) || WEEKDAYS.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(field: Field, token: &str) -> String {
        Values::parse(field, token).unwrap().canonical()
    }

    fn refusal(field: Field, token: &str) -> String {
        Values::parse(field, token).unwrap_err().to_string()
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

    #[test]
    fn a_backward_range_is_refused_with_its_rewrite() {
        for (field, token, rewrite) in [
            (Field::Hour, "22-2", "22-23,0-2"),
            (Field::Hour, "23-0", "23,0"),
            (Field::Hour, "20-4/3", "20,23,2"),
            (Field::DayOfWeek, "FRI-MON", "FRI-SUN,MON"),
            (Field::DayOfWeek, "6-2", "6-7,1-2"),
            (Field::DayOfWeek, "7-2", "7,1-2"),
            (Field::Month, "NOV-FEB", "NOV-DEC,JAN-FEB"),
            (Field::Year, "2030-2027", "2027-2030"),
        ] {
            let expected = format!("{field} {token:?}: the range runs backwards; write {rewrite}");
            assert_eq!(refusal(field, token), expected);
            assert!(Values::parse(field, rewrite).is_ok(), "{rewrite} is refused itself");
        }
    }

    #[test]
    fn a_refusal_names_field_token_range_and_remedy() {
        for (field, token, text) in [
            (Field::Minute, "60", "minute \"60\": 60 is out of range; allowed are 0-59"),
            (Field::Minute, "1,70,2", "minute \"70\": 70 is out of range; allowed are 0-59"),
            (Field::DayOfWeek, "FOO", "day of week \"FOO\": \"FOO\" is no value; allowed are 0-7 or SUN-SAT"),
            (Field::Minute, "1,,2", "minute \"1,,2\": a list item is empty; remove the stray comma"),
            (Field::Hour, "/5", "hour \"/5\": a step needs a range before it; write */5"),
            (Field::Hour, "*/0", "hour \"*/0\": \"0\" is no step; a step is a number from 1 to 9999, as in */5"),
            (
                Field::DayOfWeek,
                "mon/2",
                "day of week \"mon/2\": a step after a single name is ambiguous; write MON-SUN/2",
            ),
            (
                Field::DayOfWeek,
                "SUN/2",
                "day of week \"SUN/2\": a step after a single name is ambiguous; write SUN-SAT/2",
            ),
            (Field::Hour, "?", "hour \"?\": ? stands alone, and only in a day field; write *"),
        ] {
            assert_eq!(refusal(field, token), text);
        }
    }

    #[test]
    fn what_lies_beyond_crontab_is_refused_as_such() {
        for (field, token) in [
            (Field::DayOfMonth, "L"),
            (Field::DayOfMonth, "l-3"),
            (Field::DayOfMonth, "15W"),
            (Field::DayOfMonth, "LW"),
            (Field::DayOfWeek, "FRI#2"),
            (Field::DayOfWeek, "fril"),
            (Field::DayOfWeek, "5L"),
            (Field::Minute, "H"),
            (Field::Minute, "H/15"),
            (Field::Minute, "H(0-29)"),
        ] {
            assert!(refusal(field, token).contains("L, W, # and H are not supported yet"), "{token}");
        }
        assert!(refusal(Field::DayOfWeek, "JUL").contains("\"JUL\" is no value"));
    }
}

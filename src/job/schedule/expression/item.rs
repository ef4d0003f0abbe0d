use super::super::error::FieldProblem;
use super::dialect::refuse_other_dialects;
use super::field::{Field, Value};
use super::hashed::parse_hashed;
use super::relative_day::RelativeDay;
use crate::job::JobName;

/// The greatest step; a step past the range leaves its first value, as in crontab(5).
const MAX_STEP: u16 = 9999;

/// One item of a field's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Numbers, the same in every month.
    Span(Span),
    /// A day that each month has elsewhere.
    Relative(RelativeDay),
}

/// Every `step`th number from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// In the field's range.
    pub first: u16,
    /// In the field's range, not before `first`.
    pub last: u16,
    /// At least 1.
    pub step: u16,
}

/// Reads an item for a job, if there is one; only `H` needs it.
pub fn parse_item(field: Field, item: &str, job: Option<&JobName>) -> Result<Item, FieldProblem> {
    refuse_other_dialects(item)?;
    if let Some(relative) = RelativeDay::parse(field, item)? {
        return Ok(Item::Relative(relative));
    }
    match parse_hashed(field, item, job)? {
        Some(span) => Ok(Item::Span(span)),
        None => parse_span(field, item).map(Item::Span),
    }
}

/// Reads `*`, `*/n`, `a`, `a/n`, `a-b` or `a-b/n`.
fn parse_span(field: Field, item: &str) -> Result<Span, FieldProblem> {
    let (range, step) = match item.split_once('/') {
        None => (item, None),
        Some(("", _)) => return Err(FieldProblem::BareStep { step: item.to_owned() }),
        Some((_, step)) if step.contains('/') => return Err(FieldProblem::TwoSteps),
        Some((range, step)) => (range, Some(parse_step(step)?)),
    };
    if range == "*" {
        return Ok(Span { first: field.least(), last: field.greatest(), step: step.unwrap_or(1) });
    }
    if let Some((first, last)) = range.split_once('-') {
        let (first, last) = parse_range(field, first, last, step.unwrap_or(1))?;
        return Ok(Span { first, last, step: step.unwrap_or(1) });
    }
    let value = field.value(range)?;
    match step {
        None => Ok(Span { first: value.number, last: value.number, step: 1 }),
        Some(step) if value.named => {
            // SUN-SUN would be one day; SUN-SAT/2 has the same days as crontab(5)'s 0-7/2 and reads better.
            let greatest = if field == Field::DayOfWeek && value.number == 0 { 6 } else { field.greatest() };
            let end = field.write(greatest, true);
            Err(FieldProblem::StepAfterName { rewrite: format!("{}-{end}/{step}", range.to_ascii_uppercase()) })
        }
        Some(step) => Ok(Span { first: value.number, last: field.greatest(), step }),
    }
}

/// Reads what stands after a slash.
pub fn parse_step(text: &str) -> Result<u16, FieldProblem> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(step @ 1..=MAX_STEP) if digits => Ok(step),
        _ => Err(FieldProblem::Step { step: text.to_owned() }),
    }
}

/// Reads two values of a range; `step` is for the rewrite of one that runs backwards.
pub fn parse_range(field: Field, first: &str, last: &str, step: u16) -> Result<(u16, u16), FieldProblem> {
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

#[cfg(test)]
mod tests {
    use super::super::values::Values;
    use super::*;

    fn refusal(field: Field, token: &str) -> String {
        Values::parse(field, token, None).unwrap_err().to_string()
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
            assert!(Values::parse(field, rewrite, None).is_ok(), "{rewrite} is refused itself");
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
            (
                Field::DayOfMonth,
                "15,L-31",
                "day of month \"L-31\": a month has at most 30 days before its last; write L, or L-1 to L-30",
            ),
            (
                Field::DayOfMonth,
                "L-x",
                "day of month \"L-x\": a month has at most 30 days before its last; write L, or L-1 to L-30",
            ),
            (Field::DayOfMonth, "0W", "day of month \"0W\": 0 is out of range; allowed are 1-31"),
            (Field::DayOfMonth, "32w", "day of month \"32w\": 32 is out of range; allowed are 1-31"),
            (Field::DayOfMonth, "1-15W", "day of month \"1-15W\": W takes one day; write a list, e.g. 1W,15W"),
            (
                Field::DayOfMonth,
                "L-3W",
                "day of month \"L-3W\": W takes a day from 1 to 31 or L; write L-3, LW, or e.g. 28W",
            ),
            (Field::DayOfMonth, "W", "day of month \"W\": W needs a day before it; write e.g. 15W, or LW"),
            (Field::DayOfMonth, "L/2", "day of month \"L/2\": L, W and # take no step; remove it"),
            (Field::DayOfWeek, "FRI#2/2", "day of week \"FRI#2/2\": L, W and # take no step; remove it"),
            (
                Field::DayOfWeek,
                "L",
                "day of week \"L\": L alone is read in more than one way; write SAT for every Saturday, or FRIL for a month's last Friday",
            ),
            (
                Field::DayOfWeek,
                "fri#6",
                "day of week \"fri#6\": a month has at most five of a weekday; write FRI#1 to FRI#5, or FRIL for the last",
            ),
            (
                Field::DayOfWeek,
                "5#0",
                "day of week \"5#0\": a month has at most five of a weekday; write 5#1 to 5#5, or 5L for the last",
            ),
            (
                Field::DayOfWeek,
                "MON-FRI#2",
                "day of week \"MON-FRI#2\": L and # take one weekday; write a list, e.g. MON#2,FRI#2",
            ),
            (
                Field::DayOfWeek,
                "1-5L",
                "day of week \"1-5L\": L and # take one weekday; write a list, e.g. MON#2,FRI#2",
            ),
            (Field::DayOfWeek, "8L", "day of week \"8L\": 8 is out of range; allowed are 0-7 or SUN-SAT"),
            (Field::Hour, "L", "hour \"L\": \"L\" is no value; allowed are 0-23"),
            (Field::Hour, "?", "hour \"?\": ? stands alone, and only in a day field; write *"),
        ] {
            assert_eq!(refusal(field, token), text);
        }
    }

    #[test]
    fn a_bad_h_is_refused_with_its_remedy() {
        let job = JobName::new("job").unwrap();
        for (field, token, job, text) in [
            (Field::Minute, "H", None, "H is derived from a job's name, and there is none here; write a number"),
            (Field::Year, "H", Some(&job), "H has no place in the year; write the year"),
            (
                Field::Hour,
                "H/25",
                Some(&job),
                "a step of 25 is longer than 0-23, which H draws from; write H, or a step up to 24",
            ),
            (
                Field::DayOfMonth,
                "H/31",
                Some(&job),
                "a step of 31 is longer than 1-28, which H draws from; write H, or a step up to 28",
            ),
            (Field::Hour, "H(22-2)", Some(&job), "H draws from a rising range in brackets; write e.g. H(0-7)"),
            (Field::Hour, "H(5", Some(&job), "H draws from a rising range in brackets; write e.g. H(0-7)"),
            (Field::Hour, "H-7", Some(&job), "H draws from a rising range in brackets; write e.g. H(0-7)"),
            (Field::Hour, "H(0-24)", Some(&job), "24 is out of range; allowed are 0-23"),
            (Field::Hour, "H/0", Some(&job), "\"0\" is no step; a step is a number from 1 to 9999, as in */5"),
            (Field::Hour, "H/2/2", Some(&job), "an item has one step at most; write e.g. */5"),
        ] {
            let refused = Values::parse(field, token, job).unwrap_err().to_string();
            assert_eq!(refused, format!("{field} {token:?}: {text}"));
        }
    }
}

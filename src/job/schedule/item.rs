use super::dialect::refuse_other_dialects;
use super::error::FieldProblem;
use super::field::{Field, Value};

/// The greatest step; a step past the range leaves its first value, as in crontab(5).
const MAX_STEP: u16 = 9999;

/// One item of a field's list: every `step`th number from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// In the field's range.
    pub first: u16,
    /// In the field's range, not before `first`.
    pub last: u16,
    /// At least 1.
    pub step: u16,
}

/// Reads `*`, `*/n`, `a`, `a/n`, `a-b` or `a-b/n`.
pub(super) fn parse_item(field: Field, item: &str) -> Result<Item, FieldProblem> {
    refuse_other_dialects(field, item)?;
    let (range, step) = match item.split_once('/') {
        None => (item, None),
        Some(("", _)) => return Err(FieldProblem::BareStep { step: item.to_owned() }),
        Some((_, step)) if step.contains('/') => return Err(FieldProblem::TwoSteps),
        Some((range, step)) => (range, Some(parse_step(step)?)),
    };
    if range == "*" {
        return Ok(Item { first: field.least(), last: field.greatest(), step: step.unwrap_or(1) });
    }
    if let Some((first, last)) = range.split_once('-') {
        let (first, last) = parse_range(field, first, last, step.unwrap_or(1))?;
        return Ok(Item { first, last, step: step.unwrap_or(1) });
    }
    let value = field.value(range)?;
    match step {
        None => Ok(Item { first: value.number, last: value.number, step: 1 }),
        Some(step) if value.named => {
            // SUN-SUN would be one day; SUN-SAT/2 has the same days as crontab(5)'s 0-7/2 and reads better.
            let greatest = if field == Field::DayOfWeek && value.number == 0 { 6 } else { field.greatest() };
            let end = field.write(greatest, true);
            Err(FieldProblem::StepAfterName { rewrite: format!("{}-{end}/{step}", range.to_ascii_uppercase()) })
        }
        Some(step) => Ok(Item { first: value.number, last: field.greatest(), step }),
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

#[cfg(test)]
mod tests {
    use super::super::values::Values;
    use super::*;

    fn refusal(field: Field, token: &str) -> String {
        Values::parse(field, token).unwrap_err().to_string()
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
}

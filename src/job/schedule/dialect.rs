use super::error::FieldProblem;
use super::field::{Field, WEEKDAYS};

/// Refuses what only other dialects of cron know, each with its own remedy.
pub(super) fn refuse_other_dialects(field: Field, item: &str) -> Result<(), FieldProblem> {
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
            assert!(matches!(refuse_other_dialects(field, token), Err(FieldProblem::Unsupported { .. })), "{token}");
        }
        for (field, token) in
            [(Field::DayOfWeek, "JUL"), (Field::Month, "JUL"), (Field::DayOfWeek, "WED"), (Field::DayOfWeek, "THU")]
        {
            assert_eq!(refuse_other_dialects(field, token), Ok(()), "{token}");
        }
    }
}

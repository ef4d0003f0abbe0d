use super::super::expression::{Field, Fields, Numbers, RelativeDay, Tokens};
use super::super::words::{list, month};
use super::day_token;

/// A week of days and a weekday, which crontab joins with OR: the first Monday is meant, and days 1
/// to 7 and every Monday is what comes.
pub(super) fn trap(fields: &Fields, tokens: &Tokens<'_>) -> Vec<String> {
    let days: Vec<_> = fields.day.numbers().iter().collect();
    let is_plain = fields.day.relative().is_empty() && fields.weekday.relative().is_empty();
    let is_week = days.len() == 7 && days[6] - days[0] == 6;
    if !(fields.takes_either_day() && is_plain && is_week) || fields.weekday.is_any() {
        return Vec::new();
    }
    let which = match (days[0], days[6]) {
        (first @ (1 | 8 | 15 | 22), _) => format!("#{}", first / 7 + 1),
        (_, 29..=31) => "L".to_owned(),
        _ => return Vec::new(),
    };
    let names = fields.weekday.numbers().iter().map(|weekday| Field::DayOfWeek.write(weekday, true) + &which);
    let [_, _, day, _, weekday] = tokens.crontab;
    vec![format!(
        "day of month {day} or day of week {weekday}: either is enough; where both are meant, write * and {}",
        names.collect::<Vec<_>>().join(",")
    )]
}

/// Days of month that some of the months lack.
pub(super) fn lacking(fields: &Fields, tokens: &Tokens<'_>) -> Vec<String> {
    let token = day_token(tokens);
    // Every day, or every second one: nobody takes those for days of each month.
    if fields.day.is_any() || token.contains(['/', '*', '?']) {
        return Vec::new();
    }
    let mut days = fields.day.numbers();
    days.extend(fields.day.relative().iter().filter_map(|day| match day {
        RelativeDay::NearestWorkday(day) => Some(u16::from(*day)),
        _ => None,
    }));
    let months = fields.month.numbers();
    // Where a run of days ends earlier in some months, that is what a run means.
    let alone = (29..=31).filter(|day| days.contains(*day) && !days.contains(day - 1));
    alone.filter_map(|day| text(day, months)).collect()
}

fn text(day: u16, months: Numbers) -> Option<String> {
    let without: Vec<_> = months.iter().filter(|month| day > longest(*month)).map(month).collect();
    let of_february = day == 29 && months.contains(2);
    match (&without[..], of_february) {
        ([], true) => Some("February has a day 29 in leap years only; write L for its last day".to_owned()),
        ([], false) => None,
        ([one], _) => Some(format!("{one} has no day {day}; write L for the last day of each month")),
        (all, _) => Some(format!("{} have no day {day}; write L for the last day of each month", list(all))),
    }
}

fn longest(month: u16) -> u16 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

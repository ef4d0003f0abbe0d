use super::super::expression::{Fields, RelativeDay, Values};
use super::list::{Progression, list, ordinal, runs};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Monday on, so that a weekend is one run.
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// On which days, in which months and years; empty, if that goes without saying.
///
/// `needs_days` is whether the times before it read as if they came once.
pub(super) fn words(fields: &Fields, needs_days: bool) -> String {
    let months = (!fields.month.is_any()).then(|| runs(&numbers(&fields.month), month));
    let in_years = (!fields.year.is_any()).then(|| years(&numbers(&fields.year)));
    let day = (!fields.day.is_any()).then(|| days_of_month(&fields.day));
    let weekday = (!fields.weekday.is_any()).then(|| weekdays(&fields.weekday));
    let mut in_months = months.as_ref().map(|months| format!("in {months}"));
    let days = match (day, weekday) {
        (Some(day), Some(weekday)) if fields.takes_either_day() => {
            Some(format!("on {day} or on {weekday}, whichever comes"))
        }
        (Some(day), Some(weekday)) => Some(format!("on {day} if it is {weekday}")),
        // Where either may match and one always does, that is every day.
        (Some(_), None) | (None, Some(_)) if fields.takes_either_day() => None,
        (Some(day), None) => {
            in_months = None;
            Some(format!("on {day} of {}", months.unwrap_or_else(|| "every month".to_owned())))
        }
        (None, Some(weekday)) => Some(format!("on {weekday}")),
        (None, None) => None,
    };
    let days = days.or_else(|| needs_days.then(|| "every day".to_owned()));
    let parts: Vec<_> = [days, in_months, in_years].into_iter().flatten().collect();
    let has_clauses = parts.iter().any(|part| part.contains([',']) || part.contains(" if "));
    parts.join(if has_clauses { ", " } else { " " })
}

fn numbers(values: &Values) -> Vec<u16> {
    values.numbers().iter().collect()
}

/// `in 2027`, `from 2027 on`.
fn years(numbers: &[u16]) -> String {
    match (Progression::of(numbers), numbers) {
        (Some(Progression { first, last: 2100, step: 1 }), _) => format!("from {first} on"),
        (Some(Progression { first, last, step }), _) if step > 1 => {
            format!("in every {} year from {first} to {last}", ordinal(step))
        }
        _ => format!("in {}", runs(numbers, |year| year.to_string())),
    }
}

/// The name of a month, from 1.
pub(in super::super) fn month(number: u16) -> String {
    MONTHS[usize::from(number) - 1].to_owned()
}

/// `day 1`, `days 1 to 7 and the last day`.
fn days_of_month(day: &Values) -> String {
    let numbers = numbers(day);
    let plain = match (Progression::of(&numbers), &numbers[..]) {
        (_, []) => None,
        (Some(Progression { first, last, step }), _) if step > 1 => {
            Some(format!("every {} day from {first} to {last}", ordinal(step)))
        }
        (_, [one]) => Some(format!("day {one}")),
        _ => Some(format!("days {}", runs(&numbers, |number| number.to_string()))),
    };
    list(&plain.into_iter().chain(day.relative().iter().map(|day| relative(*day))).collect::<Vec<_>>())
}

/// `Monday to Friday`, `Monday and the 2nd Friday of the month`.
fn weekdays(weekday: &Values) -> String {
    let mut from_monday: Vec<_> = weekday.numbers().iter().map(|number| (number + 6) % 7).collect();
    from_monday.sort_unstable();
    let name = |number: u16| WEEKDAYS[usize::from(number)].to_owned();
    let plain = (!from_monday.is_empty()).then(|| runs(&from_monday, name));
    let relative: Vec<_> = weekday.relative().iter().map(|day| relative(*day)).collect();
    let of_month = if relative.is_empty() { "" } else { " of the month" };
    format!("{}{of_month}", list(&plain.into_iter().chain(relative).collect::<Vec<_>>()))
}

fn relative(day: RelativeDay) -> String {
    let name = |weekday: u8| WEEKDAYS[(usize::from(weekday) + 6) % 7];
    match day {
        RelativeDay::BeforeLast(0) => "the last day".to_owned(),
        RelativeDay::BeforeLast(1) => "the day before the last".to_owned(),
        RelativeDay::BeforeLast(days) => format!("the {} day before the last", ordinal(days.into())),
        RelativeDay::NearestWorkday(day) => format!("the workday nearest to day {day}"),
        RelativeDay::LastWorkday => "the last workday".to_owned(),
        RelativeDay::Nth { weekday, nth } => format!("the {} {}", ordinal(nth.into()), name(weekday)),
        RelativeDay::Last { weekday } => format!("the last {}", name(weekday)),
    }
}

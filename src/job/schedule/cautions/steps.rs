use super::super::expression::{Field, Fields, Tokens, Values};

/// Steps over a whole range that don't divide it, so that the last is nearer to the next first.
pub(super) fn uneven(fields: &Fields, tokens: &Tokens<'_>) -> Vec<String> {
    let [minute, hour, day, month, weekday] = tokens.crontab;
    let steps = [
        tokens.second.map(|token| (Field::Second, token, &fields.second, follows(&fields.minute, 60))),
        Some((Field::Minute, minute, &fields.minute, follows(&fields.hour, 24))),
        Some((Field::Hour, hour, &fields.hour, days_follow(fields))),
        Some((Field::DayOfMonth, day, &fields.day, true)),
        Some((Field::Month, month, &fields.month, true)),
        Some((Field::DayOfWeek, weekday, &fields.weekday, true)),
    ];
    let uneven = steps.into_iter().flatten().filter_map(|(field, token, values, is_followed)| {
        let step = whole_range_step(field, token)?;
        let text = text(field, step, values, is_followed)?;
        Some(format!("{field} {token}: {text}"))
    });
    uneven.collect()
}

/// The step of a lone item that goes through all of the field: `*/7`, `0-59/7`, `3/7`, `H/7`.
fn whole_range_step(field: Field, token: &str) -> Option<u16> {
    let (range, step) = token.split_once('/')?;
    let step: u16 = step.parse().ok()?;
    let is_whole = match range.split_once('-') {
        _ if range == "*" => true,
        // From 1 to 28 for a day of month, as it is said to be.
        _ if range.eq_ignore_ascii_case("H") => field != Field::DayOfMonth,
        None => field.value(range).is_ok_and(|first| first.number - field.least() < step),
        Some((first, last)) => {
            let [first, last] = [first, last].map(|value| field.value(value));
            first.is_ok_and(|first| first.number - field.least() < step)
                && last.is_ok_and(|last| last.number >= greatest(field))
        }
    };
    (is_whole && step > 1).then_some(step)
}

/// The last of a round: a week ends with its 6th day after Sunday, though 7 can be typed.
fn greatest(field: Field) -> u16 {
    if field == Field::DayOfWeek { 6 } else { field.greatest() }
}

fn text(field: Field, step: u16, values: &Values, is_followed: bool) -> Option<String> {
    let length = greatest(field) - field.least() + 1;
    let numbers: Vec<_> = values.numbers().iter().collect();
    if let [one] = numbers[..] {
        let one = name(field, one);
        return (step > length).then(|| format!("a step past the range leaves {one} alone; {}", remedy(field, step)));
    }
    let after_last = numbers.first()? + length - numbers.last()?;
    let pairs = numbers.windows(2).map(|pair| (pair[0], pair[1], pair[1] - pair[0]));
    let mut around = pairs.chain([(*numbers.last()?, *numbers.first()?, after_last)]);
    // No step but 31 comes around evenly in a month of 31 days, let alone in others.
    let (last, first, distance) = around.find(|(.., distance)| *distance != step)?;
    let unit = unit(field);
    let plural = if distance == 1 { "" } else { "s" };
    let in_long_months = if field == Field::DayOfMonth { ", in a month of 31 days" } else { "" };
    is_followed.then(|| {
        format!(
            "{} is {distance} {unit}{plural} before the next {}{in_long_months}; {}",
            name(field, last),
            name(field, first),
            remedy(field, step)
        )
    })
}

/// Whether any two of the values are neighbours, the last and the first of a round among them.
fn follows(values: &Values, length: u16) -> bool {
    let numbers = values.numbers();
    numbers.iter().any(|number| numbers.contains((number + 1) % length))
}

/// Whether anything fires on any two days in a row, whatever month it is.
fn days_follow(fields: &Fields) -> bool {
    let day = fields.day.is_any() || follows(&fields.day, 32) || !fields.day.relative().is_empty();
    let weekday = fields.weekday.is_any() || follows(&fields.weekday, 7) || !fields.weekday.relative().is_empty();
    if fields.takes_either_day() { day || weekday } else { day && weekday }
}

fn unit(field: Field) -> &'static str {
    match field {
        Field::Second => "second",
        Field::Minute => "minute",
        Field::Hour => "hour",
        Field::DayOfMonth | Field::DayOfWeek => "day",
        Field::Month => "month",
        Field::Year => "year",
    }
}

fn name(field: Field, number: u16) -> String {
    match field {
        Field::Minute => format!(":{number:02}"),
        Field::Hour => format!("{number:02}:00"),
        Field::Second | Field::DayOfMonth => format!("{} {number}", unit(field)),
        Field::Month | Field::DayOfWeek | Field::Year => field.write(number, true),
    }
}

fn remedy(field: Field, step: u16) -> String {
    match field {
        Field::Second => format!("every = \"{step}s\" goes on evenly"),
        Field::Minute => format!("every = \"{step}m\" goes on evenly"),
        Field::Hour => format!("every = \"{step}h\" goes on evenly, by UTC"),
        Field::DayOfMonth => format!("every = \"{}h\" goes on evenly, by UTC", 24 * u32::from(step)),
        Field::Month | Field::DayOfWeek | Field::Year => "a list says which are meant".to_owned(),
    }
}

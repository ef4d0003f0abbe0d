//! One field of a crontab line: which values it names, and how Debian's cron reads the same text.

/// A set of small numbers, a bit each.
pub(super) type Bits = u64;

/// A field: its name, its range, and the names of its values from the least on.
pub(super) struct Field {
    name: &'static str,
    low: u32,
    high: u32,
    names: &'static [&'static str],
    /// The values, as a message has them.
    allowed: &'static str,
}

/// Minute, hour, day of month, month, day of week.
pub(super) const FIELDS: [Field; 5] = [
    Field { name: "minute", low: 0, high: 59, names: &[], allowed: "0-59" },
    Field { name: "hour", low: 0, high: 23, names: &[], allowed: "0-23" },
    Field { name: "day of month", low: 1, high: 31, names: &[], allowed: "1-31" },
    Field {
        name: "month",
        low: 1,
        high: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
        allowed: "1-12 or JAN-DEC",
    },
    Field {
        name: "day of week",
        low: 0,
        high: 7,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        allowed: "0-7 or SUN-SAT",
    },
];
const DAY_OF_MONTH: usize = 2;
const DAY_OF_WEEK: usize = 4;

/// A field that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    /// What its author means by it. Sunday is 0.
    pub meant: Bits,
    /// What Debian's cron takes it for.
    pub debian: Debian,
    /// Whether it starts with `*`, or is `?`.
    pub starred: bool,
    /// The same in words that cronlatch takes.
    pub text: String,
}

/// What Debian's cron takes a text for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Debian {
    /// These values.
    Reads(Bits),
    /// It refuses the line, and with it the file.
    Refuses,
}

/// The longest step that cronlatch takes; a longer one leaves the same single value.
const MOST_STEP: u32 = 9_999;

/// Reads the field of this number.
///
/// # Errors
/// What is wrong, with a remedy. What Debian's cron silently makes of a text whose meaning is not
/// clear (`*5`, `1~10`) is named there, and refused all the same.
pub(super) fn read(number: usize, token: &str) -> Result<Values, String> {
    let field = &FIELDS[number];
    if token == "?" && (number == DAY_OF_MONTH || number == DAY_OF_WEEK) {
        let all = fold_sunday(number, span(field.low, field.high, 1));
        return Ok(Values { meant: all, debian: Debian::Refuses, starred: true, text: "*".to_owned() });
    }
    let mut values =
        Values { meant: 0, debian: Debian::Reads(0), starred: token.starts_with('*'), text: String::new() };
    for text in token.split(',') {
        let item = read_item(field, text).map_err(|wrong| refusal(field, token, text, &wrong))?;
        values.meant |= item.meant;
        values.debian = match (values.debian, item.debian) {
            (Debian::Reads(before), Debian::Reads(more)) => Debian::Reads(before | more),
            _ => Debian::Refuses,
        };
        let comma = if values.text.is_empty() { "" } else { "," };
        values.text += &format!("{comma}{}", item.text);
    }
    values.meant = fold_sunday(number, values.meant);
    if let Debian::Reads(bits) = &mut values.debian {
        *bits = fold_sunday(number, *bits);
    }
    Ok(values)
}

fn fold_sunday(number: usize, bits: Bits) -> Bits {
    const SUNDAY: Bits = 1 << 7;
    if number == DAY_OF_WEEK && bits & SUNDAY != 0 { bits & !SUNDAY | 1 } else { bits }
}

fn refusal(field: &Field, token: &str, item: &str, wrong: &str) -> String {
    let shown = if item.is_empty() { token } else { item };
    format!("{} {shown:?}: {wrong}", field.name)
}

fn span(first: u32, last: u32, step: u32) -> Bits {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    (first..=last).step_by(step).fold(0, |bits, value| bits | 1 << value)
}

struct Item {
    meant: Bits,
    debian: Debian,
    text: String,
}

impl Item {
    /// What all crons read alike.
    fn plain(meant: Bits, text: &str) -> Self {
        Self { meant, debian: Debian::Reads(meant), text: text.to_owned() }
    }
}

/// `*`, `*/n`, `a`, `a/n`, `a-b` or `a-b/n`.
fn read_item(field: &Field, text: &str) -> Result<Item, String> {
    if text.is_empty() {
        return Err("a list item is empty; remove the stray comma".to_owned());
    }
    if text.starts_with('*') && text != "*" && !text.starts_with("*/") {
        return Err(format!("* stands alone or before a step; {}", debian_takes_it_for("*")));
    }
    let (range, step) = match text.split_once('/') {
        None => (text, None),
        Some((range, step)) => (range, Some(read_step(step)?)),
    };
    let shown_step = step.map(|step| format!("/{}", step.min(MOST_STEP))).unwrap_or_default();
    let width = step.unwrap_or(1);
    if range == "*" {
        return Ok(Item::plain(span(field.low, field.high, width), &format!("*{shown_step}")));
    }
    let Some((first, last)) = range.split_once('-') else {
        let (value, named) = read_value(field, range)?;
        return match step {
            None => Ok(Item::plain(1 << value, text)),
            Some(step) if named => Err(format!(
                "a step after a single name is read differently by every cron; write {value}-{}/{step}",
                field.high
            )),
            Some(_) => {
                let meant = span(value, field.high, width);
                Ok(Item { meant, debian: Debian::Refuses, text: format!("{value}-{}{shown_step}", field.high) })
            }
        };
    };
    let ((first, _), (last, _)) = (read_value(field, first)?, read_value(field, last)?);
    if first <= last {
        return Ok(Item::plain(span(first, last, width), &format!("{range}{shown_step}")));
    }
    let item = around(field, first, last, width);
    // FRI-SUN and 5-0, which cronlatch takes as they are.
    let ends_on_sunday = field.high == 7 && last == 0;
    Ok(if ends_on_sunday { Item { text: format!("{range}{shown_step}"), ..item } } else { item })
}

/// A range that runs backwards, as `22-2`. Debian's cron reads it, as no value at all.
fn around(field: &Field, first: u32, last: u32, step: u32) -> Item {
    // The week of a range that comes around ends with Saturday.
    let is_week = field.high == 7;
    let (first, high) = if is_week { (first % 7, 6) } else { (first, field.high) };
    let size = high - field.low + 1;
    let way = (last + size - first) % size;
    let step_size = usize::try_from(step).unwrap_or(usize::MAX);
    let values: Vec<u32> =
        (0..=way).step_by(step_size).map(|ahead| field.low + (first - field.low + ahead) % size).collect();
    let meant = values.iter().fold(0, |bits, value| bits | 1 << value);
    let text = match values.iter().position(|value| *value == field.low) {
        Some(turn) if step == 1 && turn > 0 => format!("{},{}", run(&values[..turn]), run(&values[turn..])),
        _ if step == 1 => run(&values),
        _ => values.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
    };
    Item { meant, debian: Debian::Reads(0), text }
}

/// Consecutive values as a range.
fn run(values: &[u32]) -> String {
    match values {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    }
}

fn read_step(text: &str) -> Result<u32, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text[..digits].parse::<u32>() {
        Ok(step) if step > 0 && digits == text.len() => Ok(step),
        Ok(step) if step > 0 => {
            Err(format!("{text:?} is no step; {}", debian_takes_it_for(&format!("the step {step}"))))
        }
        _ => Err(format!("{text:?} is no step; write a number from 1 on, as in */5")),
    }
}

/// A number, or a name; whether it is a name.
fn read_value(field: &Field, text: &str) -> Result<(u32, bool), String> {
    if let Some(odd) = text.chars().find(|c| !c.is_ascii()) {
        return Err(format!("{odd:?} (U+{:04X}) only looks like ASCII; type the line again", odd as u32));
    }
    // Debian's cron reads letters and digits, and passes over what follows.
    let (value, rest) = text.split_at(text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len()));
    let allowed = field.allowed;
    let name = field.names.iter().position(|name| name.eq_ignore_ascii_case(value));
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = match name {
        Some(place) => field.low + u32::try_from(place).expect("a dozen names at most"),
        None if !is_number => return Err(format!("{text:?} is no value; allowed are {allowed}")),
        None => match value.parse::<u32>() {
            Ok(number) if (field.low..=field.high).contains(&number) => number,
            _ => return Err(format!("{value} is out of range; allowed are {allowed}")),
        },
    };
    if rest.is_empty() {
        return Ok((number, name.is_some()));
    }
    let misread = debian_takes_it_for(value);
    Err(match rest.starts_with('~') {
        true => format!("~ draws another value on each host; {misread}"),
        false => format!("{text:?} is no value; {misread}"),
    })
}

fn debian_takes_it_for(what: &str) -> String {
    format!("Debian's cron takes it for {what}: write that, or what is meant")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: usize = 0;
    const HOUR: usize = 1;
    const MONTH: usize = 3;

    fn bits(values: &[u32]) -> Bits {
        values.iter().fold(0, |bits, value| bits | 1 << value)
    }

    fn values(number: usize, token: &str) -> (Bits, Debian, String) {
        let read = read(number, token).unwrap();
        (read.meant, read.debian, read.text)
    }

    #[test]
    fn what_every_cron_reads_alike_stays_as_it_was_typed() {
        for (number, token, meant) in [
            (MINUTE, "7", bits(&[7])),
            (MINUTE, "*/20", bits(&[0, 20, 40])),
            (MINUTE, "5-9/2,50", bits(&[5, 7, 9, 50])),
            (MONTH, "Jan-mar,DEC", bits(&[1, 2, 3, 12])),
            (DAY_OF_WEEK, "5-7", bits(&[0, 5, 6])),
            (DAY_OF_WEEK, "7", bits(&[0])),
            (DAY_OF_WEEK, "*/2", bits(&[0, 2, 4, 6])),
        ] {
            assert_eq!(values(number, token), (meant, Debian::Reads(meant), token.to_owned()), "{token}");
        }
        assert_eq!(values(MINUTE, "*/20000"), (1, Debian::Reads(1), "*/9999".to_owned()));
    }

    #[test]
    fn a_backward_range_means_the_way_around_and_nothing_to_debians_cron() {
        for (number, token, meant, text) in [
            (HOUR, "22-2", bits(&[22, 23, 0, 1, 2]), "22-23,0-2"),
            (HOUR, "23-0", bits(&[23, 0]), "23,0"),
            (HOUR, "20-4/3", bits(&[20, 23, 2]), "20,23,2"),
            (DAY_OF_WEEK, "FRI-MON", bits(&[5, 6, 0, 1]), "5-6,0-1"),
            (DAY_OF_WEEK, "FRI-SUN", bits(&[5, 6, 0]), "FRI-SUN"),
            (DAY_OF_WEEK, "7-2", bits(&[0, 1, 2]), "0-2"),
            (MONTH, "NOV-FEB", bits(&[11, 12, 1, 2]), "11-12,1-2"),
            (DAY_OF_MONTH, "31-1", bits(&[31, 1]), "31,1"),
        ] {
            assert_eq!(values(number, token), (meant, Debian::Reads(0), text.to_owned()), "{token}");
        }
        assert_eq!(values(HOUR, "9,22-2").1, Debian::Reads(bits(&[9])));
    }

    #[test]
    fn what_debians_cron_refuses_is_taken_where_its_meaning_is_clear() {
        assert_eq!(values(MINUTE, "5/15"), (bits(&[5, 20, 35, 50]), Debian::Refuses, "5-59/15".to_owned()));
        assert_eq!(values(DAY_OF_MONTH, "?").1, Debian::Refuses);
        assert_eq!(values(DAY_OF_WEEK, "?").0, bits(&[0, 1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn a_text_of_unclear_meaning_is_refused_with_what_debians_cron_makes_of_it() {
        for (number, token, part) in [
            (MINUTE, "*5", "Debian's cron takes it for *"),
            (MINUTE, "1-5-7", "Debian's cron takes it for 5"),
            (MINUTE, "*/5/2", "Debian's cron takes it for the step 5"),
            (MINUTE, "1~10", "~ draws another value on each host; Debian's cron takes it for 1"),
            (MINUTE, "1.5", "Debian's cron takes it for 1:"),
            (DAY_OF_WEEK, "5#2", "Debian's cron takes it for 5:"),
            (MONTH, "feb.5", "Debian's cron takes it for feb:"),
            (DAY_OF_WEEK, "MON/2", "write 1-7/2"),
            (MINUTE, "60", "minute \"60\": 60 is out of range; allowed are 0-59"),
            (MINUTE, "99999999999", "is out of range"),
            (MINUTE, "1,,2", "minute \"1,,2\": a list item is empty"),
            (MINUTE, "*/0", "write a number from 1 on"),
            (MINUTE, "H", "\"H\" is no value"),
            (HOUR, "?", "\"?\" is no value"),
            (DAY_OF_MONTH, "L", "\"L\" is no value"),
            (DAY_OF_MONTH, "15W", "\"15W\" is no value"),
            (DAY_OF_MONTH, "0", "allowed are 1-31"),
            (MINUTE, "-5", "\"\" is no value"),
            (MINUTE, "5-", "\"\" is no value"),
            (MINUTE, "\u{665}", "U+0665"),
        ] {
            let wrong = read(number, token).unwrap_err();
            assert!(wrong.contains(part), "{wrong}");
        }
    }
}

//! What a schedule means, in plain English.
//!
//! The words come from what was read, not from how it was typed: `0-59/30` and `0,30` are one thing
//! here, and `H` is the number that it stands for.

mod date;
mod list;
mod time;

use std::time::Duration;

use chrono::{DateTime, Timelike, Utc};
use chrono_tz::Tz;

use super::blackout::{Blackout, Recurrence};
use super::every::Every;
use super::expression::Fields;
use super::source::{Crontab, Source};
use super::window::Window;

pub(super) use date::month;
pub(super) use list::list;

/// When a source ticks, and in which time it doesn't.
pub(super) fn words<'a>(
    source: &Source,
    zone: Tz,
    window: Window,
    blackouts: impl Iterator<Item = &'a Blackout>,
) -> String {
    let mut words = match source {
        Source::Crontab(crontab) => format!("{}, {zone}", crontab_words(crontab)),
        Source::Every(every) => every_words(*every),
        Source::At(instant) => format!("once, at {}", instant_words(*instant, zone)),
        Source::ByHand => return "only by hand".to_owned(),
    };
    match (window.from, window.until) {
        (None, None) => {}
        (Some(from), None) => words.push_str(&format!(", from {} on", instant_words(from, zone))),
        (None, Some(until)) => words.push_str(&format!(", until {}", instant_words(until, zone))),
        (Some(from), Some(until)) => {
            words.push_str(&format!(", from {} until {}", instant_words(from, zone), instant_words(until, zone)));
        }
    }
    for blackout in blackouts {
        words.push_str(&format!(", {}", blackout_words(blackout, zone)));
    }
    words
}

fn crontab_words(crontab: &Crontab) -> String {
    let all = crontab.expressions().iter().map(|expression| expression_words(expression.fields()));
    all.collect::<Vec<_>>().join(", and ")
}

fn expression_words(fields: &Fields) -> String {
    let time = time::words(fields);
    let needs_days = time.starts_with("at ") && !fields.hour.is_any();
    let date = date::words(fields, needs_days);
    let has_seconds = time.contains("second") && time.contains(',');
    match (date.is_empty(), has_seconds) {
        (true, _) => time,
        (false, true) => format!("{time}, {date}"),
        (false, false) => format!("{time} {date}"),
    }
}

fn every_words(every: Every) -> String {
    let count = |number: i64, unit: &str| match number {
        1 => format!("every {unit}"),
        _ => format!("every {number} {unit}s"),
    };
    let period = match every.period() {
        seconds if seconds % 86_400 == 0 => count(seconds / 86_400, "day"),
        seconds if seconds % 3_600 == 0 => count(seconds / 3_600, "hour"),
        seconds if seconds % 60 == 0 => count(seconds / 60, "minute"),
        seconds => count(seconds, "second"),
    };
    let offset = u64::try_from(every.offset()).map(Duration::from_secs).unwrap_or_default();
    let plus = if offset.is_zero() { String::new() } else { format!(" plus {}", length_words(offset)) };
    format!("{period}, counted from the epoch{plus}")
}

/// With the offset, because a time of the zone's clocks may come twice.
fn instant_words(instant: DateTime<Utc>, zone: Tz) -> String {
    let seconds = if instant.second() == 0 && instant.nanosecond() == 0 { "" } else { ":%S%.f" };
    instant.with_timezone(&zone).format(&format!("%Y-%m-%d %H:%M{seconds} %:z")).to_string()
}

fn blackout_words(blackout: &Blackout, zone: Tz) -> String {
    match blackout.recurrence() {
        Recurrence::Once { from, until } => {
            format!("not from {} to {}", instant_words(*from, zone), instant_words(*until, zone))
        }
        Recurrence::Recurring { starts, zone: own, lasts } => {
            let starts = crontab_words(starts);
            let starts = starts.strip_prefix("at ").map_or(starts.clone(), |times| format!("from {times}"));
            let lasts = length_words(lasts.to_std().unwrap_or_default());
            let own = if *own == zone { String::new() } else { format!(" ({own})") };
            format!("not for {lasts} {starts}{own}")
        }
    }
}

/// In the largest unit of which there is a whole number, up to hours: `58h`.
fn length_words(length: Duration) -> String {
    match length.as_secs() {
        seconds if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

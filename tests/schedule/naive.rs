//! A second, slower reading of an expression.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, Offset, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;

/// A second reading of an expression: a set for each field, and a walk through every minute.
pub(super) struct Naive {
    seconds: BTreeSet<u32>,
    minute: BTreeSet<u32>,
    hour: BTreeSet<u32>,
    day: BTreeSet<u32>,
    month: BTreeSet<u32>,
    weekday: BTreeSet<u32>,
    either_day: bool,
    pub(super) wildcard: bool,
}

impl Naive {
    pub(super) fn read(expression: &str) -> Self {
        let mut tokens: Vec<_> = expression.split(' ').collect();
        let seconds = if tokens.len() == 6 { tokens.remove(0) } else { "0" };
        let starred = |place: usize| tokens[place].starts_with('*');
        Self {
            seconds: set_of(seconds, 0, 59),
            minute: set_of(tokens[0], 0, 59),
            hour: set_of(tokens[1], 0, 23),
            day: set_of(tokens[2], 1, 31),
            month: set_of(tokens[3], 1, 12),
            weekday: set_of(tokens[4], 0, 7).into_iter().map(|day| day % 7).collect(),
            either_day: !starred(2) && !starred(4),
            wildcard: starred(0) || starred(1),
        }
    }

    pub(super) fn matches(&self, minute: i64) -> bool {
        let local = DateTime::from_timestamp(minute * 60, 0).expect("in range");
        let day = self.day.contains(&local.day());
        let weekday = self.weekday.contains(&local.weekday().num_days_from_sunday());
        let right_day = if self.either_day { day || weekday } else { day && weekday };
        self.minute.contains(&local.minute())
            && self.hour.contains(&local.hour())
            && self.month.contains(&local.month())
            && right_day
    }

    /// Every instant of `from..to`, by a virtual clock like that of Debian's main loop: it never
    /// goes back, and where it jumps, all minutes that it jumps over are looked at together.
    pub(super) fn firings(&self, zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let (mut fired, mut shown) = (BTreeSet::new(), None);
        // Two days earlier, so that a fold is entered by its first pass.
        let begin = from.timestamp() / 60 - 2 * 24 * 60;
        for minute in begin..=to.timestamp() / 60 {
            let now = DateTime::from_timestamp(minute * 60, 0).expect("in range");
            let offset = zone.offset_from_utc_datetime(&now.naive_utc()).fix().local_minus_utc();
            let local = minute + i64::from(offset / 60);
            let last = shown.unwrap_or(local - 1);
            if self.matches(local) && (self.wildcard || local > last) {
                fired.extend(self.seconds.iter().map(|second| now + TimeDelta::seconds((*second).into())));
            }
            if !self.wildcard && (last + 1..local).any(|skipped| self.matches(skipped)) {
                fired.insert(now);
            }
            shown = Some(last.max(local));
        }
        fired.range(from..to).copied().collect()
    }
}

fn set_of(token: &str, least: u32, greatest: u32) -> BTreeSet<u32> {
    let number = |text: &str| text.parse::<u32>().expect("the strategy writes numbers");
    let mut set = BTreeSet::new();
    for item in token.split(',') {
        let (range, step) = item.split_once('/').map_or((item, 1), |(range, step)| (range, number(step)));
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (least, greatest),
            Some((first, last)) => (number(first), number(last)),
            None if item.contains('/') => (number(range), greatest),
            None => (number(range), number(range)),
        };
        set.extend((first..=last).filter(|value| (value - first) % step == 0));
    }
    set
}

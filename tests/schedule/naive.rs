//! A second, slower reading of an expression.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike, Days, NaiveDate, Offset, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use cronlatch::job::schedule::{FoldRule, GapRule};

/// A second reading of an expression: a set for each field, and a walk through every minute.
pub(super) struct Naive {
    seconds: BTreeSet<u32>,
    minute: BTreeSet<u32>,
    hour: BTreeSet<u32>,
    day: BTreeSet<u32>,
    /// What `L`, `W` and `#` name, as it was typed.
    relative: [Vec<String>; 2],
    month: BTreeSet<u32>,
    weekday: BTreeSet<u32>,
    either_day: bool,
    pub(super) gap: GapRule,
    fold: FoldRule,
}

impl Naive {
    /// Reads an expression; where the job says nothing, its form decides about clock changes.
    pub(super) fn read(expression: &str, gap: Option<GapRule>, fold: Option<FoldRule>) -> Self {
        let mut tokens: Vec<_> = expression.split(' ').collect();
        let seconds = if tokens.len() == 6 { tokens.remove(0) } else { "0" };
        let starred = |place: usize| tokens[place].starts_with('*');
        let wildcard = starred(0) || starred(1);
        Self {
            seconds: set_of(seconds, 0, 59),
            minute: set_of(tokens[0], 0, 59),
            hour: set_of(tokens[1], 0, 23),
            day: set_of(tokens[2], 1, 31),
            month: set_of(tokens[3], 1, 12),
            weekday: set_of(tokens[4], 0, 7).into_iter().map(|day| day % 7).collect(),
            relative: [relative_items(tokens[2]), relative_items(tokens[4])],
            either_day: !starred(2) && !starred(4),
            gap: gap.unwrap_or(if wildcard { GapRule::Skip } else { GapRule::Run }),
            fold: fold.unwrap_or(if wildcard { FoldRule::Both } else { FoldRule::First }),
        }
    }

    /// Whether an expression names a second of the local calendar.
    pub(super) fn names(&self, local: i64) -> bool {
        let second = u32::try_from(local.rem_euclid(60)).expect("less than a minute");
        self.seconds.contains(&second) && self.matches(local.div_euclid(60))
    }

    fn matches(&self, minute: i64) -> bool {
        let local = DateTime::from_timestamp(minute * 60, 0).expect("in range");
        let date = local.date_naive();
        let [day, weekday] = &self.relative;
        let day = self.day.contains(&local.day()) || day.iter().any(|item| is_relative(item, date));
        let weekday = self.weekday.contains(&local.weekday().num_days_from_sunday())
            || weekday.iter().any(|item| is_relative(item, date));
        let right_day = if self.either_day { day || weekday } else { day && weekday };
        self.minute.contains(&local.minute())
            && self.hour.contains(&local.hour())
            && self.month.contains(&local.month())
            && right_day
    }

    /// Every instant of `from..to`, by a virtual clock like that of Debian's main loop: it never
    /// goes back, and where it jumps, all minutes that it jumps over are looked at together.
    pub(super) fn firings(&self, zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        // Two days earlier and later, so that a fold is entered by its first pass and left by its second.
        let [begin, end] = [from.timestamp() / 60 - 2 * 24 * 60, to.timestamp() / 60 + 2 * 24 * 60];
        let local_minute = |minute: i64| {
            let now = DateTime::from_timestamp(minute * 60, 0).expect("in range");
            minute + i64::from(zone.offset_from_utc_datetime(&now.naive_utc()).fix().local_minus_utc() / 60)
        };
        let last_shown: BTreeMap<_, _> = (begin..=end).map(|minute| (local_minute(minute), minute)).collect();
        let (mut fired, mut shown) = (BTreeSet::new(), None);
        for minute in begin..=to.timestamp() / 60 {
            let now = DateTime::from_timestamp(minute * 60, 0).expect("in range");
            let local = local_minute(minute);
            let last = shown.unwrap_or(local - 1);
            let counts = match self.fold {
                FoldRule::First => local > last,
                FoldRule::Second => last_shown[&local] == minute,
                FoldRule::Both => true,
            };
            if counts && self.matches(local) {
                fired.extend(self.seconds.iter().map(|second| now + TimeDelta::seconds((*second).into())));
            }
            if self.gap == GapRule::Run && (last + 1..local).any(|skipped| self.matches(skipped)) {
                fired.insert(now);
            }
            shown = Some(last.max(local));
        }
        fired.range(from..to).copied().collect()
    }
}

fn is_plain(item: &&str) -> bool {
    !item.contains(['L', 'W', '#'])
}

fn relative_items(token: &str) -> Vec<String> {
    token.split(',').filter(|item| !is_plain(item)).map(str::to_owned).collect()
}

/// Whether `L`, `L-n`, `LW`, `nW`, `d#n` or `dL` names a date, by a look at its whole month.
fn is_relative(item: &str, date: NaiveDate) -> bool {
    let number = |text: &str| text.parse::<u32>().expect("the strategy writes numbers");
    let first = date.with_day(1).expect("every month has a first");
    let month: Vec<_> = first.iter_days().take_while(|day| day.month() == date.month()).collect();
    let is_workday = |day: &&NaiveDate| !matches!(day.weekday().num_days_from_sunday(), 0 | 6);
    let is_weekday = |day: &&NaiveDate, weekday: &str| day.weekday().num_days_from_sunday() == number(weekday) % 7;
    let named = if let Some((weekday, nth)) = item.split_once('#') {
        month.iter().filter(|day| is_weekday(day, weekday)).nth(number(nth) as usize - 1)
    } else if item == "LW" {
        month.iter().rfind(is_workday)
    } else if let Some(day) = item.strip_suffix('W') {
        let distance = |other: &&NaiveDate| other.day().abs_diff(number(day));
        month.get(number(day) as usize - 1).and_then(|_| month.iter().filter(is_workday).min_by_key(distance))
    } else if let Some(before) = item.strip_prefix("L-") {
        month.iter().find(|day| month.last() == day.checked_add_days(Days::new(number(before).into())).as_ref())
    } else if item == "L" {
        month.last()
    } else {
        let weekday = item.strip_suffix('L').expect("the strategy writes nothing else");
        month.iter().rfind(|day| is_weekday(day, weekday))
    };
    named == Some(&date)
}

fn set_of(token: &str, least: u32, greatest: u32) -> BTreeSet<u32> {
    let number = |text: &str| text.parse::<u32>().expect("the strategy writes numbers");
    let mut set = BTreeSet::new();
    for item in token.split(',').filter(is_plain) {
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

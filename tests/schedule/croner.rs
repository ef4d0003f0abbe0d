//! The crate `croner` as a second opinion, on what lies beyond crontab above all.
//!
//! Left out, because it is known to read them differently:
//! - `*/n` in a day field: only a lone `*` makes it join the day fields with AND;
//! - near clock changes, lists and ranges of hours or minutes: to it, all but one single time a day
//!   is a wildcard, which Debian's cron says of stars only;
//! - gaps of three hours (Casey) and of a day (Apia), where its search ends without an answer;
//! - `L-3`, which it doesn't know, and `L` beside another day with `W`, which it joins to `LW`.

use chrono::{DateTime, Datelike, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::CronParser;
use cronlatch::job::schedule::Schedule;
use proptest::prelude::*;
use proptest::sample::select;

use super::grammar::{field, start_anywhere, start_near_a_change};
use super::{firings, instant};

fn read(expression: &str) -> Cron {
    // `5/15` is what it calls sloppy; the defaults are crontab's rather than Quartz's weekdays and
    // OR for the day fields.
    let parser = CronParser::builder().sloppy_ranges(true).build();
    parser.parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// The next five instants by both, as far as this century goes.
fn both(expression: &str, zone: Tz, start: DateTime<Utc>) -> Option<[Vec<DateTime<Utc>>; 2]> {
    let ours = Schedule::parse(expression, zone).ok()?;
    let theirs = read(expression);
    let inside = |at: &DateTime<Utc>| at.year() < 2090;
    let theirs = theirs.iter_after(start.with_timezone(&zone)).map(|at| at.with_timezone(&Utc));
    let ours = firings(&ours, start).take_while(inside).take(5).collect();
    Some([ours, theirs.take_while(inside).take(5).collect()])
}

#[test]
fn days_that_each_month_has_elsewhere_are_found_where_croner_finds_them() {
    let mut expressions: Vec<_> = ["L", "LW", "1,L", "15,LW", "1W,15W"].map(|day| format!("0 12 {day} * *")).into();
    expressions.extend((1..=31).map(|day| format!("30 6 {day}W * *")));
    expressions.extend((0..8).flat_map(|day| (1..6).map(move |nth| format!("0 0 12 * * {day}#{nth}"))));
    expressions.extend((0..8).map(|day| format!("0 12 * * {day}L")));
    expressions.extend(["MON,FRI#2", "FRI#1,FRI#3,FRIL", "SUN#5"].map(|weekday| format!("0 12 * * {weekday}")));
    expressions.extend(["13 * FRIL", "L * MON", "15W 2 TUE#4", "LW */2 SUN"].map(|days| format!("0 12 {days}")));
    for expression in &expressions {
        for year in 2024..2029 {
            let start = instant(&format!("{year}-01-15T00:00:00Z"));
            let [ours, theirs] = both(expression, Tz::Europe__Berlin, start).expect(expression);
            assert_eq!(ours, theirs, "{expression} from {start}");
            assert_eq!(ours.len(), 5, "{expression} from {start}");
        }
    }
}

/// A list of days of month, some of which each month has elsewhere.
fn days() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        2 => (1_u32..=31).prop_map(|day| day.to_string()),
        2 => (1_u32..=31).prop_map(|day| format!("{day}W")),
        1 => (1_u32..=15, 16_u32..=31).prop_map(|(first, last)| format!("{first}-{last}")),
    ];
    let with_last = prop_oneof![
        Just("L".to_owned()),
        Just("LW".to_owned()),
        (1_u32..=31).prop_map(|day| format!("{day},L")),
        (1_u32..=31).prop_map(|day| format!("LW,{day}W")),
    ];
    let list = prop::collection::vec(item, 1..4).prop_map(|items| items.join(","));
    prop_oneof![3 => Just("*".to_owned()), 3 => list, 2 => with_last]
}

/// A list of weekdays, some of which are one of the month's only.
fn weekdays() -> impl Strategy<Value = String> {
    let name = select(&["SUN", "mon", "Tue", "3", "4", "FRI", "SAT", "7", "0"][..]);
    let item = prop_oneof![
        2 => name.clone().prop_map(str::to_owned),
        2 => (name.clone(), 1_u32..=5).prop_map(|(name, nth)| format!("{name}#{nth}")),
        2 => name.prop_map(|name| format!("{name}L")),
        1 => (1_u32..=3, 4_u32..=7).prop_map(|(first, last)| format!("{first}-{last}")),
    ];
    let list = prop::collection::vec(item, 1..4).prop_map(|items| items.join(","));
    prop_oneof![2 => Just("*".to_owned()), 3 => list]
}

fn months() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just("*".to_owned()), 1 => field(1, 12)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn days_of_all_kinds_fall_where_croner_says(
        // By day, when clocks don't change.
        (minute, hour) in (0_u32..60, 6_u32..23),
        (day, month, weekday) in (days(), months(), weekdays()),
        (zone, start) in start_anywhere(),
    ) {
        // Far from the days that some zones left out.
        let start = start.max(instant("2012-01-01T00:00:00Z"));
        let expression = format!("{minute} {hour} {day} {month} {weekday}");
        if let Some([ours, theirs]) = both(&expression, zone, start) {
            prop_assert_eq!(ours, theirs, "{} in {} from {}", expression, zone, start);
        }
    }

    #[test]
    fn without_clock_changes_everything_falls_where_croner_says(
        second in prop::option::of(field(0, 59)),
        (minute, hour) in (field(0, 59), field(0, 23)),
        (day, month, weekday) in (days(), months(), weekdays()),
        zone in select(&[Tz::UTC, Tz::Asia__Kolkata, Tz::Etc__GMTPlus12, Tz::Pacific__Kiritimati][..]),
        (_, start) in start_anywhere(),
    ) {
        let start = start.max(instant("2000-01-01T00:00:00Z"));
        let second = second.map(|second| second + " ").unwrap_or_default();
        let expression = format!("{second}{minute} {hour} {day} {month} {weekday}");
        if let Some([ours, theirs]) = both(&expression, zone, start) {
            prop_assert_eq!(ours, theirs, "{} in {} from {}", expression, zone, start);
        }
    }

    #[test]
    fn near_clock_changes_one_time_a_day_and_wildcards_fall_where_croner_says(
        (minute, hour) in (0_u32..60, 0_u32..5),
        minutes in prop_oneof![Just("*".to_owned()), (1_u32..31).prop_map(|step| format!("*/{step}"))],
        (zone, start) in start_near_a_change(),
    ) {
        if matches!(zone, Tz::Antarctica__Casey | Tz::Pacific__Apia) {
            return Ok(());
        }
        for expression in [format!("{minute} {hour} * * *"), format!("{minutes} * * * *"), format!("{minutes} {hour} * * *")] {
            let [ours, theirs] = both(&expression, zone, start).expect("it fires");
            prop_assert_eq!(ours, theirs, "{} in {} from {}", expression, zone, start);
        }
    }
}

//! Random expressions, zones and starts.

use std::sync::LazyLock;

use chrono::{DateTime, Datelike, Days, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use cronlatch::job::schedule::{FoldRule, GapRule};
use proptest::prelude::*;
use proptest::sample::select;

use super::instant;

/// Zones with gaps and folds of all kinds: of 30 minutes, 1, 2, 3 and 24 hours, at midnight, at odd minutes.
const CHANGING_ZONES: [Tz; 10] = [
    Tz::Europe__Berlin,
    Tz::America__New_York,
    Tz::Australia__Lord_Howe,
    Tz::America__Santiago,
    Tz::Africa__Cairo,
    Tz::Asia__Beirut,
    Tz::Pacific__Chatham,
    Tz::Pacific__Apia,
    Tz::Antarctica__Troll,
    Tz::Antarctica__Casey,
];

/// Every clock change of these zones from 2007 to 2037, to the hour.
static CHANGES: LazyLock<Vec<(Tz, DateTime<Utc>)>> = LazyLock::new(|| {
    let offset = |zone: Tz, at: DateTime<Utc>| zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    let mut changes = Vec::new();
    for zone in CHANGING_ZONES {
        let mut day = instant("2007-01-01T00:00:00Z");
        while day.year() < 2038 {
            let next = day + Days::new(1);
            if offset(zone, day) != offset(zone, next) {
                let hour =
                    (0..24).map(|hour| day + TimeDelta::hours(hour)).rfind(|at| offset(zone, *at) == offset(zone, day));
                changes.push((zone, hour.expect("the day begins before the change")));
            }
            day = next;
        }
    }
    changes
});

/// A zone and a start within a day and a half of one of its changes, half of them within two hours.
pub(super) fn start_near_a_change() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    let seconds = prop_oneof![-129_600_i64..129_600, -7_200_i64..7_200];
    (any::<prop::sample::Index>(), seconds).prop_map(|(index, seconds)| {
        let (zone, change) = CHANGES[index.index(CHANGES.len())];
        (zone, change + TimeDelta::seconds(seconds))
    })
}

/// Any zone at any time that the schedules of today's jobs may see, and before.
pub(super) fn start_anywhere() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    let seconds = instant("1970-01-01T00:00:00Z").timestamp()..instant("2040-01-01T00:00:00Z").timestamp();
    (select(&TZ_VARIANTS[..]), seconds)
        .prop_map(|(zone, at)| (zone, DateTime::from_timestamp(at, 0).expect("a year with four digits")))
}

/// One field of the crontab grammar over `least..=greatest`.
pub(super) fn field(least: u32, greatest: u32) -> impl Strategy<Value = String> {
    let value = least..=greatest;
    let range = (value.clone(), value.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
    let item = prop_oneof![
        3 => value.prop_map(|value| value.to_string()),
        2 => range.clone(),
        1 => (range, 1_u32..9).prop_map(|(range, step)| format!("{range}/{step}")),
        1 => (least..=greatest, 1_u32..9).prop_map(|(value, step)| format!("{value}/{step}")),
    ];
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => (1_u32..20).prop_map(|step| format!("*/{step}")),
        4 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
}

/// A day of month, or a weekday, that each month has elsewhere.
fn relative(field: &str) -> BoxedStrategy<String> {
    match field {
        "day" => prop_oneof![
            Just("L".to_owned()),
            (0_u32..=30).prop_map(|days| format!("L-{days}")),
            Just("LW".to_owned()),
            (1_u32..=31).prop_map(|day| format!("{day}W")),
        ]
        .boxed(),
        _ => prop_oneof![
            (0_u32..=7, 1_u32..=5).prop_map(|(weekday, nth)| format!("{weekday}#{nth}")),
            (0_u32..=7).prop_map(|weekday| format!("{weekday}L")),
        ]
        .boxed(),
    }
}

/// What a job may say about clock changes.
pub(super) fn rules() -> impl Strategy<Value = (Option<GapRule>, Option<FoldRule>)> {
    let gap = prop_oneof![Just(GapRule::Run), Just(GapRule::Skip)];
    let fold = prop_oneof![Just(FoldRule::First), Just(FoldRule::Second), Just(FoldRule::Both)];
    (prop::option::of(gap), prop::option::of(fold))
}

/// An expression of five or six fields.
pub(super) fn expression() -> impl Strategy<Value = String> {
    let hour = prop_oneof![1 => field(0, 23), 1 => field(0, 4)];
    // Mostly every day, or hardly one would fire where the clocks change.
    let mostly_any = |field: BoxedStrategy<String>| prop_oneof![3 => Just("*".to_owned()), 2 => field].boxed();
    let with_relative = |plain: BoxedStrategy<String>, kind| {
        let list = prop::collection::vec(relative(kind), 1..3).prop_map(|items| items.join(","));
        let mixed = (plain.clone(), relative(kind)).prop_map(|(plain, relative)| format!("{plain},{relative}"));
        mostly_any(prop_oneof![3 => plain, 1 => list, 1 => mixed].boxed())
    };
    let day = with_relative(field(1, 31).boxed(), "day");
    let weekday = with_relative(field(0, 7).boxed(), "weekday");
    let fields = (field(0, 59), hour, day, mostly_any(field(1, 12).boxed()), weekday);
    let second =
        prop::option::weighted(0.2, field(0, 59).prop_filter("few", |second| !second.contains(['*', '-', '/'])));
    (second, fields).prop_map(|(second, (minute, hour, day, month, weekday))| {
        let second = second.map(|second| second + " ").unwrap_or_default();
        format!("{second}{minute} {hour} {day} {month} {weekday}")
    })
}

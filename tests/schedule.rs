//! Crontab schedules against recorded instants of Debian's cron, and against a second, slower reading.
//!
//! `data/cron_oracle.tsv` and `data/cron_oracle_dst.tsv`: expression, zone, start, the instants
//! after it, and a note in odd cases. Fewer than four instants mean that it fires no more.
//! `data/cron_invalid.tsv`: expression, why it must be refused.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use chrono::{DateTime, Datelike, Days, Offset, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use cronlatch::job::schedule::{Schedule, parse_zone};
use proptest::prelude::*;
use proptest::sample::select;

#[test]
fn every_recorded_schedule_fires_at_its_instants() {
    check_oracle(include_str!("data/cron_oracle.tsv"), 4);
}

#[test]
fn every_recorded_schedule_near_a_clock_change_fires_at_its_instants() {
    check_oracle(include_str!("data/cron_oracle_dst.tsv"), 5);
}

#[test]
fn every_recorded_mistake_is_refused() {
    let rows = include_str!("data/cron_invalid.tsv").lines();
    let accepted: Vec<_> = rows
        .map(|row| row.split_once('\t').expect("expression and reason"))
        .filter(|(expression, _)| Schedule::parse(expression, Tz::UTC).is_ok())
        .collect();
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

#[test]
fn a_refusal_is_one_line_in_lower_case_without_a_full_stop() {
    for (expression, _) in include_str!("data/cron_invalid.tsv").lines().filter_map(|row| row.split_once('\t')) {
        let text = Schedule::parse(expression, Tz::UTC).expect_err(expression).to_string();
        assert!(!text.starts_with(|c: char| c.is_ascii_uppercase()), "{text}");
        assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
    }
}

fn check_oracle(rows: &str, instants: usize) {
    let (mut failures, mut count) = (Vec::new(), 0);
    for (number, row) in rows.lines().enumerate() {
        count += 1;
        if let Err(failure) = check_row(row, instants) {
            failures.push(format!("line {}: {failure}", number + 1));
        }
    }
    assert!(count > 300, "only {count} rows");
    assert!(failures.is_empty(), "{} of {count} rows fail:\n{}", failures.len(), failures.join("\n"));
}

fn check_row(row: &str, instants: usize) -> Result<(), String> {
    let columns: Vec<_> = row.split('\t').collect();
    let [expression, zone, start, expected, ..] = columns[..] else {
        return Err(format!("too few columns in {row:?}"));
    };
    let zone = parse_zone(zone).map_err(|error| error.to_string())?;
    let schedule = Schedule::parse(expression, zone).map_err(|error| error.to_string())?;
    let expected: Vec<_> = expected.split(',').map(instant).collect();
    // A row with fewer instants than its neighbours ends where the schedule ends.
    let asked = instants.max(expected.len());
    let got: Vec<_> = firings(&schedule, instant(start)).take(asked).collect();
    if got == expected { Ok(()) } else { Err(format!("{row}\n  got {got:?}")) }
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn firings(schedule: &Schedule, start: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    let mut last = Some(start);
    std::iter::from_fn(move || {
        last = last.and_then(|after| schedule.next_after(after));
        last
    })
}

fn utc(expression: &str) -> Schedule {
    Schedule::parse(expression, Tz::UTC).expect(expression)
}

#[test]
fn several_expressions_make_one_trigger_an_instant_the_earliest_first() {
    let schedule = Schedule::parse_all(["0 12 * * *", "0 9 * * *", "0 */6 * * *"], Tz::UTC).expect("all are valid");
    let times: Vec<_> = firings(&schedule, instant("2027-01-01T06:00:00Z"))
        .take(4)
        .map(|at| at.format("%d %H:%M").to_string())
        .collect();
    assert_eq!(times, ["01 09:00", "01 12:00", "01 18:00", "02 00:00"]);
}

#[test]
fn a_schedule_without_expressions_is_refused() {
    let none: [&str; 0] = [];
    assert!(Schedule::parse_all(none, Tz::UTC).is_err());
}

#[test]
fn a_schedule_shows_what_was_typed() {
    let schedule = Schedule::parse_all([" 0 9  * * mon-fri ", "@daily"], Tz::Europe__Berlin).expect("both are valid");
    assert_eq!(schedule.expressions().collect::<Vec<_>>(), ["0 9  * * mon-fri", "@daily"]);
    assert_eq!(schedule.zone(), Tz::Europe__Berlin);
    assert_eq!(schedule.to_string(), "0 9  * * mon-fri and @daily (Europe/Berlin)");
}

#[test]
fn a_schedule_is_shared_between_threads() {
    fn shared<T: Clone + std::fmt::Debug + Send + Sync + 'static>(_: &T) {}
    shared(&utc("* * * * *"));
}

#[test]
fn a_year_gone_by_is_read_but_refused_against_the_present() {
    let schedule = utc("0 0 0 1 1 * 2026");
    assert_eq!(schedule.require_later_than(instant("2025-12-31T23:59:59Z")), Ok(()));
    let refused = schedule.require_later_than(instant("2026-01-01T00:00:00Z")).expect_err("it is over");
    assert_eq!(
        refused.to_string(),
        "\"0 0 0 1 1 * 2026\" fires no more after 2026-01-01T00:00:00Z; give it a later year or remove it"
    );
}

#[test]
fn an_expression_whose_only_instant_lies_in_a_gap_fires_once_or_is_refused() {
    let fixed = Schedule::parse("0 30 2 28 3 * 2027", Tz::Europe__Berlin).expect("it fires at the gap's end");
    let all: Vec<_> = firings(&fixed, instant("2027-01-01T00:00:00Z")).collect();
    assert_eq!(all, [instant("2027-03-28T01:00:00Z")]);
    assert!(Schedule::parse("0 * 2 28 3 * 2027", Tz::Europe__Berlin).is_err(), "a wildcard is never caught up");
}

#[test]
fn a_job_due_on_a_day_that_its_zone_leaves_out_fires_once_at_the_next_days_start() {
    let daily = Schedule::parse("0 9 * * *", Tz::Pacific__Apia).expect("valid");
    let got: Vec<_> = firings(&daily, instant("2011-12-29T00:00:00Z")).take(3).collect();
    let expected = ["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"].map(instant);
    assert_eq!(got, expected);
}

#[test]
fn the_first_and_the_last_instants_of_time_are_no_trap() {
    let schedule = Schedule::parse("* * * * * *", Tz::Pacific__Kiritimati).expect("valid");
    assert!(schedule.next_after(DateTime::<Utc>::MIN_UTC).is_some());
    assert_eq!(schedule.next_after(DateTime::<Utc>::MAX_UTC), None);
    let last = utc("59 59 23 31 12 * 2100").next_after(instant("2100-12-31T23:59:58.999Z"));
    assert_eq!(last, Some(instant("2100-12-31T23:59:59Z")));
    assert_eq!(last.and_then(|last| utc("* * * * *").next_after(last)), None);
}

#[test]
fn a_fraction_of_a_second_never_delays_the_next_instant() {
    let next = utc("* * * * * *").next_after(instant("2027-01-01T00:00:00.250Z"));
    assert_eq!(next, Some(instant("2027-01-01T00:00:01Z")));
}

// --- properties -------------------------------------------------------------------------------

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
fn start_near_a_change() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    let seconds = prop_oneof![-129_600_i64..129_600, -7_200_i64..7_200];
    (any::<prop::sample::Index>(), seconds).prop_map(|(index, seconds)| {
        let (zone, change) = CHANGES[index.index(CHANGES.len())];
        (zone, change + TimeDelta::seconds(seconds))
    })
}

/// Any zone at any time that the schedules of today's jobs may see, and before.
fn start_anywhere() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    let seconds = instant("1970-01-01T00:00:00Z").timestamp()..instant("2040-01-01T00:00:00Z").timestamp();
    (select(&TZ_VARIANTS[..]), seconds)
        .prop_map(|(zone, at)| (zone, DateTime::from_timestamp(at, 0).expect("a year with four digits")))
}

/// One field of the crontab grammar over `least..=greatest`.
fn field(least: u32, greatest: u32) -> impl Strategy<Value = String> {
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

/// An expression of five or six fields.
fn expression() -> impl Strategy<Value = String> {
    let hour = prop_oneof![1 => field(0, 23), 1 => field(0, 4)];
    // Mostly every day, or hardly one would fire where the clocks change.
    let day = |least, greatest| prop_oneof![3 => Just("*".to_owned()), 2 => field(least, greatest)];
    let fields = (field(0, 59), hour, day(1, 31), day(1, 12), day(0, 7));
    let second =
        prop::option::weighted(0.2, field(0, 59).prop_filter("few", |second| !second.contains(['*', '-', '/'])));
    (second, fields).prop_map(|(second, (minute, hour, day, month, weekday))| {
        let second = second.map(|second| second + " ").unwrap_or_default();
        format!("{second}{minute} {hour} {day} {month} {weekday}")
    })
}

/// A second reading of an expression: a set for each field, and a walk through every minute.
struct Naive {
    seconds: BTreeSet<u32>,
    minute: BTreeSet<u32>,
    hour: BTreeSet<u32>,
    day: BTreeSet<u32>,
    month: BTreeSet<u32>,
    weekday: BTreeSet<u32>,
    either_day: bool,
    wildcard: bool,
}

impl Naive {
    fn read(expression: &str) -> Self {
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

    fn matches(&self, minute: i64) -> bool {
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
    fn firings(&self, zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn near_clock_changes_it_fires_exactly_when_a_virtual_clock_shows_its_time(
        expression in expression(),
        (zone, start) in start_near_a_change(),
    ) {
        let end = start + TimeDelta::hours(50);
        let Ok(schedule) = Schedule::parse(&expression, zone) else {
            return Ok(()); // 30 February and the like.
        };
        let got: Vec<_> = firings(&schedule, start - TimeDelta::seconds(1)).take_while(|at| *at < end).collect();
        prop_assert_eq!(got, Naive::read(&expression).firings(zone, start, end));
    }

    #[test]
    fn every_start_inside_a_period_finds_the_same_end(
        expression in expression(),
        (zone, start) in start_near_a_change(),
        shares in prop::collection::vec(0.0..1.0, 8),
    ) {
        let Ok(schedule) = Schedule::parse(&expression, zone) else {
            return Ok(());
        };
        let Some(end) = schedule.next_after(start) else {
            return Ok(());
        };
        // Shares of the near end too: in a period of a year all the rest would lie far from the change.
        let period = (end - start).num_milliseconds();
        for longest in [period, period.min(90 * 60 * 1000)] {
            for share in &shares {
                let later = start + TimeDelta::milliseconds((longest as f64 * share) as i64);
                prop_assert_eq!(schedule.next_after(later), Some(end), "from {}", later);
            }
        }
        prop_assert_eq!(schedule.next_after(end - TimeDelta::nanoseconds(1)), Some(end));
    }

    #[test]
    fn the_next_instant_is_always_later_and_shows_a_matching_minute_or_ends_a_gap(
        expression in expression(),
        (zone, start) in start_anywhere(),
    ) {
        let Ok(schedule) = Schedule::parse(&expression, zone) else {
            return Ok(());
        };
        let naive = Naive::read(&expression);
        let local = |at: DateTime<Utc>| at.with_timezone(&zone).naive_local().and_utc().timestamp();
        let mut last = start;
        for next in firings(&schedule, start).take(20) {
            prop_assert!(next > last, "{} is not later than {}", next, last);
            let jumped = local(next) - local(next - TimeDelta::seconds(1)) > 1;
            prop_assert!(naive.matches(local(next).div_euclid(60)) || jumped && !naive.wildcard, "{}", next);
            last = next;
        }
    }

    #[test]
    fn whatever_is_typed_gets_an_answer(text in "\\PC{0,40}", fields in "[-0-9*,/?#~@LWHA-Za-z \t]{0,40}") {
        for text in [text, fields] {
            if let Err(refusal) = Schedule::parse(&text, Tz::Europe__Berlin) {
                prop_assert!(!refusal.to_string().is_empty());
            }
            prop_assert!(parse_zone(&text).is_err() || text.trim() == text);
        }
    }
}

//! What has passed, counted against a walk over every instant.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use cronlatch::job::schedule::{Blackout, FoldRule, GapRule, Passed, Reading, Schedule, Span};
use proptest::prelude::*;

use super::grammar::{expression, field, rules, start_anywhere, start_near_a_change};
use super::{firings, instant, utc};

fn span(first: &str, last: &str, count: u64) -> Option<Span> {
    Some(Span { first: instant(first), last: instant(last), count, exact: true })
}

fn live(schedule: &Schedule, after: &str, through: &str) -> Option<Span> {
    let Passed { live, blacked_out } = schedule.passed(instant(after), instant(through));
    assert_eq!(blacked_out, None);
    live
}

fn every(seconds: u64) -> Schedule {
    Schedule::every(Duration::from_secs(seconds), Duration::ZERO, Tz::UTC).expect("a good period")
}

#[test]
fn the_begin_is_left_out_and_the_end_is_counted() {
    let expected = span("2027-01-01T01:00:00Z", "2027-01-01T03:00:00Z", 3);
    for schedule in [utc("0 * * * *"), every(3_600)] {
        assert_eq!(live(&schedule, "2027-01-01T00:00:00Z", "2027-01-01T03:00:00Z"), expected);
        assert_eq!(live(&schedule, "2027-01-01T00:00:00.5Z", "2027-01-01T03:59:59.9Z"), expected);
        assert_eq!(live(&schedule, "2027-01-01T03:00:00Z", "2027-01-01T03:00:00Z"), None);
        assert_eq!(live(&schedule, "2027-01-01T03:00:00Z", "2027-01-01T00:00:00Z"), None);
        assert_eq!(live(&schedule, "2027-01-01T03:00:00Z", "2027-01-01T03:59:59Z"), None);
    }
}

#[test]
fn a_year_of_seconds_is_counted_exactly_and_at_once() {
    let begun = Instant::now();
    let year = ("2026-06-15T12:34:56Z", "2027-06-15T12:34:56Z");
    for zone in [Tz::UTC, Tz::Europe__Berlin, Tz::Australia__Lord_Howe, Tz::America__Santiago] {
        let seconds = Schedule::parse("* * * * * *", zone).expect("valid");
        assert_eq!(live(&seconds, year.0, year.1), span("2026-06-15T12:34:57Z", year.1, 31_536_000));
        let minutes = Schedule::parse("* * * * *", zone).expect("valid");
        assert_eq!(live(&minutes, year.0, year.1), span("2026-06-15T12:35:00Z", "2027-06-15T12:34:00Z", 525_600));
    }
    let all = utc("* * * * * *").passed(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC).live.expect("all of them");
    assert_eq!((all.first, all.last), (instant("1970-01-01T00:00:00Z"), instant("2100-12-31T23:59:59Z")));
    assert_eq!((all.count, all.exact), (47_847 * 86_400, true));
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
}

#[test]
fn passes_of_a_fold_are_counted_as_the_rule_says_whole_and_in_part() {
    // Berlin: 02:00 to 03:00 twice; Santiago: 23:00 to midnight; the Azores: midnight to 01:00, so
    // that a second pass begins a day of 24 hours, as a first pass ends one in Santiago.
    for (zone, change) in [
        (Tz::Europe__Berlin, "2027-10-31T01:00:00Z"),
        (Tz::America__Santiago, "2027-04-04T03:00:00Z"),
        (Tz::Atlantic__Azores, "2027-10-31T01:00:00Z"),
    ] {
        let change = instant(change);
        let count = |fold, from: i64, to: i64| {
            let how = Reading { fold: Some(fold), ..Reading::in_zone(zone) };
            let schedule = Schedule::read(["*/5 * * * *"], &how).expect("valid");
            let [after, through] = [from, to].map(|minutes| change + TimeDelta::seconds(60 * minutes - 1));
            let counted = schedule.passed(after, through).live;
            assert_eq!(counted, whole(&walk(&schedule, after, through)), "{zone} {fold:?} {from} {to}");
            counted.map_or(0, |live| live.count)
        };
        for (from, to, first, second, both) in [
            (-1_500, 1_500, 588, 588, 600),
            (-60, 60, 12, 12, 24),
            (-60, 0, 12, 0, 12),
            (0, 60, 0, 12, 12),
            (-30, 20, 6, 4, 10),
            (30, 60, 0, 6, 6),
            (60, 1_440, 276, 276, 276),
        ] {
            assert_eq!(count(FoldRule::First, from, to), first, "{zone} {from} {to}");
            assert_eq!(count(FoldRule::Second, from, to), second, "{zone} {from} {to}");
            assert_eq!(count(FoldRule::Both, from, to), both, "{zone} {from} {to}");
        }
    }
}

#[test]
fn a_window_that_begins_within_a_second_leaves_that_second_out() {
    let at = instant("2027-01-01T00:00:00Z");
    let half = TimeDelta::milliseconds(500);
    let passed = |from, until| {
        let schedule = utc("* * * * * *").within(Some(from), Some(until));
        schedule.passed(at - TimeDelta::days(1), at + TimeDelta::days(1)).live.map(|live| live.count)
    };
    assert_eq!(passed(at, at + TimeDelta::seconds(3)), Some(3));
    assert_eq!(passed(at + half, at + TimeDelta::seconds(3)), Some(2));
    assert_eq!(passed(at + half, at + half + TimeDelta::seconds(3)), Some(3));
    assert_eq!(passed(at + half, at + half), None);
}

#[test]
fn several_expressions_at_one_instant_count_once() {
    let schedule = Schedule::parse_all(["0 * * * *", "*/30 9 * * *", "0 9 * * *"], Tz::UTC).expect("valid");
    let expected = span("2027-01-01T00:00:00Z", "2027-01-01T23:00:00Z", 25);
    assert_eq!(live(&schedule, "2026-12-31T23:59:59Z", "2027-01-01T23:59:59Z"), expected);
}

#[test]
fn an_instant_passes_once_and_by_hand_nothing_does() {
    let at = instant("2027-01-01T00:00:00Z");
    let once = Schedule::at(at, Tz::UTC);
    assert_eq!(once.passed(at - TimeDelta::days(9), at).live, span("2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z", 1));
    assert_eq!(once.passed(at, at + TimeDelta::days(9)), Passed::default());
    let window = once.clone().within(Some(at + TimeDelta::seconds(1)), None);
    assert_eq!(window.passed(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC), Passed::default());
    let late = Schedule::at(instant("2200-01-01T00:00:00Z"), Tz::UTC);
    assert_eq!(late.passed(at, DateTime::<Utc>::MAX_UTC).live.map(|span| span.count), Some(1));
    let by_hand = Schedule::by_hand(Tz::UTC);
    assert_eq!(by_hand.passed(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC), Passed::default());
}

#[test]
fn what_a_blackout_took_is_counted_for_itself() {
    let weekend = Blackout::recurring("0 22 * * FRI", Duration::from_secs(58 * 3_600), &Reading::in_zone(Tz::UTC));
    let blackouts = vec![weekend.expect("valid")];
    // 52 weekends from 2027-01-01, a Friday, to the last Friday's eve.
    let (after, through) = (instant("2027-01-01T00:00:00Z"), instant("2027-12-31T00:00:00Z"));
    for bare in [utc("0 * * * *"), every(3_600)] {
        let passed = bare.without(blackouts.clone()).expect("valid").passed(after, through);
        let (hours, taken) = (364 * 24, 52 * 58);
        assert_eq!(passed.live, span("2027-01-01T01:00:00Z", "2027-12-31T00:00:00Z", hours - taken));
        assert_eq!(passed.blacked_out, span("2027-01-01T22:00:00Z", "2027-12-27T07:00:00Z", taken));
    }
    let once = Schedule::at(instant("2027-01-02T00:00:00Z"), Tz::UTC);
    let taken = once.without(blackouts).expect_err("it is the only instant");
    assert!(taken.to_string().contains("no instant"));
}

#[test]
fn windows_beyond_number_do_no_harm_where_instants_are_few() {
    let how = Reading::in_zone(Tz::UTC);
    let blackout = Blackout::recurring("*/2 * * * * *", Duration::from_secs(1), &how).expect("valid");
    let schedule =
        Schedule::parse_all(["0 12 * * *", "1 0 0 * * *"], Tz::UTC).and_then(|all| all.without(vec![blackout]));
    let passed =
        schedule.expect("one second is left").passed(instant("2026-01-01T00:00:00Z"), instant("2027-01-01T00:00:00Z"));
    assert_eq!(passed.live, span("2026-01-01T00:00:01Z", "2026-12-31T00:00:01Z", 365));
    assert_eq!(passed.blacked_out, span("2026-01-01T12:00:00Z", "2026-12-31T12:00:00Z", 365));
}

#[test]
fn windows_beyond_number_leave_a_lower_bound_and_the_true_ends() {
    let begun = Instant::now();
    // Ten seconds of every minute, for years.
    let blackouts = || {
        let how = Reading::in_zone(Tz::UTC);
        vec![Blackout::recurring("* * * * *", Duration::from_secs(10), &how).expect("valid")]
    };
    let schedule = utc("*/5 * * * * *").without(blackouts()).expect("valid");
    let Passed { live, blacked_out } =
        schedule.passed(instant("2020-01-01T00:00:00Z"), instant("2027-06-15T12:34:56Z"));
    let (live, blacked_out) = (live.expect("most"), blacked_out.expect("some"));
    assert_eq!((live.first, live.last), (instant("2020-01-01T00:00:10Z"), instant("2027-06-15T12:34:55Z")));
    assert_eq!(blacked_out.first, instant("2020-01-01T00:00:05Z"), "the first is left out by `after`");
    assert_eq!(blacked_out.last, instant("2027-06-15T12:34:05Z"));
    assert!(!live.exact && !blacked_out.exact);
    assert!(live.count >= 10 * 30_000 && live.count < 10 * 60 * 24 * 366 * 8, "{}", live.count);
    assert!((live.count / 5).abs_diff(blacked_out.count) < 3, "of twelve, two are taken");
    let day = schedule.passed(instant("2020-01-01T00:00:00Z"), instant("2020-01-02T00:00:00Z"));
    assert_eq!(day.live.map(|live| (live.count, live.exact)), Some((14_400, true)));
    assert!(begun.elapsed() < Duration::from_secs(60), "it took {:?}", begun.elapsed());
}

// --- against a walk -----------------------------------------------------------------------------

/// A schedule with everything that decides what passes, and the same without its blackouts.
#[derive(Clone, Debug)]
struct Case {
    expressions: Vec<String>,
    gap: Option<GapRule>,
    fold: Option<FoldRule>,
    /// Where the window begins and ends, in seconds after the start.
    window: (Option<i64>, Option<i64>),
    /// An expression and how many seconds it lasts.
    recurring: Option<(String, u64)>,
    /// From which second after the start on, for how many.
    once: Option<(i64, i64)>,
}

impl Case {
    fn schedules(&self, zone: Tz, start: DateTime<Utc>) -> Option<(Schedule, Schedule)> {
        let how = Reading { gap: self.gap, fold: self.fold, ..Reading::in_zone(zone) };
        let [from, until] =
            [self.window.0, self.window.1].map(|bound| bound.map(|seconds| start + TimeDelta::seconds(seconds)));
        let bare = Schedule::read(&self.expressions, &how).ok()?.within(from, until);
        let recurring = self.recurring.as_ref().map(|(expression, lasts)| {
            Blackout::recurring(expression, Duration::from_secs(*lasts), &Reading::in_zone(zone))
        });
        let once = self.once.map(|(from, lasts)| {
            let from = start + TimeDelta::seconds(from);
            Blackout::between(from, from + TimeDelta::seconds(lasts))
        });
        let blackouts = recurring.transpose().ok()?.into_iter().chain(once).collect();
        Some((bare.clone().without(blackouts).ok()?, bare))
    }
}

fn case(
    expression: impl Strategy<Value = String>,
    starts: impl Strategy<Value = String>,
    longest: i64,
) -> impl Strategy<Value = Case> {
    let bound = || prop::option::weighted(0.2, -longest..2 * longest);
    let recurring = prop::option::weighted(0.4, (starts, 1_u64..20_000));
    let once = prop::option::weighted(0.4, (-longest..longest, -9..longest));
    (prop::collection::vec(expression, 1..4), rules(), (bound(), bound()), recurring, once).prop_map(
        |(expressions, (gap, fold), window, recurring, once)| Case { expressions, gap, fold, window, recurring, once },
    )
}

/// Up to every minute.
fn often() -> impl Strategy<Value = String> {
    let hour = prop_oneof![Just("*".to_owned()), field(0, 23)];
    (field(0, 59), hour).prop_map(|(minute, hour)| format!("{minute} {hour} * * *"))
}

/// A few times a day, on some days.
fn seldom() -> impl Strategy<Value = String> {
    let day = prop_oneof![3 => Just("*".to_owned()), 1 => Just("L".to_owned()), 1 => Just("15W,LW".to_owned()), 2 => field(1, 31)];
    let weekday = prop_oneof![3 => Just("*".to_owned()), 1 => Just("FRI#2,SUNL".to_owned()), 2 => field(0, 7)];
    (0_u32..60, field(0, 4), day, weekday)
        .prop_map(|(minute, hour, day, weekday)| format!("{minute} {hour} {day} * {weekday}"))
}

fn walk(schedule: &Schedule, after: DateTime<Utc>, through: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    firings(schedule, after).take_while(|at| *at <= through).collect()
}

fn whole(instants: &[DateTime<Utc>]) -> Option<Span> {
    let count = u64::try_from(instants.len()).expect("not so many");
    Some(Span { first: *instants.first()?, last: *instants.last()?, count, exact: true })
}

fn check(case: &Case, zone: Tz, after: DateTime<Utc>, length: i64) -> Result<(), TestCaseError> {
    let Some((schedule, bare)) = case.schedules(zone, after) else { return Ok(()) };
    let through = after + TimeDelta::seconds(length);
    let live = walk(&schedule, after, through);
    let taken: Vec<_> = walk(&bare, after, through).into_iter().filter(|at| live.binary_search(at).is_err()).collect();
    let expected = Passed { live: whole(&live), blacked_out: whole(&taken) };
    prop_assert_eq!(schedule.passed(after, through), expected, "{:?} in {} after {}", case, zone, after);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn near_clock_changes_as_much_passes_as_a_walk_meets(
        case in case(expression(), often(), 100_000),
        (zone, start) in start_near_a_change(),
        length in prop_oneof![3 => 0_i64..10_000, 1 => 0_i64..100_000],
    ) {
        check(&case, zone, start, length)?;
    }

    #[test]
    fn over_months_as_much_passes_as_a_walk_meets(
        case in case(seldom(), seldom(), 20_000_000),
        (zone, start) in start_anywhere(),
        length in 0_i64..20_000_000,
    ) {
        check(&case, zone, start, length)?;
    }

    #[test]
    fn of_a_period_as_much_passes_as_a_walk_meets(
        (period, offset) in (1_u64..5_000).prop_flat_map(|period| (Just(period), 0..period)),
        (_, start) in start_anywhere(),
        length in 0_i64..200_000,
    ) {
        let [period, offset] = [period, offset].map(Duration::from_secs);
        let schedule = Schedule::every(period, offset, Tz::UTC).expect("the offset is shorter");
        let through = start + TimeDelta::seconds(length.min(1_000 * i64::try_from(period.as_secs()).expect("small")));
        let expected = Passed { live: whole(&walk(&schedule, start, through)), blacked_out: None };
        prop_assert_eq!(schedule.passed(start, through), expected);
    }
}

//! Schedules without an expression, windows, and what a digest is made of.

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use cronlatch::job::schedule::{FoldRule, GapRule, InvalidEvery, Reading, Schedule};

use super::{firings, instant, utc};

fn every(period: u64, offset: u64) -> Schedule {
    Schedule::every(Duration::from_secs(period), Duration::from_secs(offset), Tz::UTC).expect("a good period")
}

fn first(schedule: &Schedule, count: usize, start: &str) -> Vec<DateTime<Utc>> {
    firings(schedule, instant(start)).take(count).collect()
}

#[test]
fn a_period_is_counted_from_the_epoch_plus_its_offset() {
    let expected = ["2027-01-01T00:00:30Z", "2027-01-01T00:02:00Z", "2027-01-01T00:03:30Z"].map(instant);
    assert_eq!(first(&every(90, 30), 3, "2027-01-01T00:00:29.999Z"), expected);
    assert_eq!(first(&every(90, 30), 2, "2027-01-01T00:00:30Z"), expected[1..]);
    assert_eq!(first(&every(86_400, 0), 1, "1970-01-01T00:00:00Z"), [instant("1970-01-02T00:00:00Z")]);
    assert_eq!(first(&every(1, 0), 1, "1969-12-31T23:59:59.5Z"), [instant("1970-01-01T00:00:00Z")]);
}

#[test]
fn a_period_ends_with_the_last_year_that_an_expression_can_name() {
    let century = Duration::from_secs(36_525 * 86_400);
    let schedule = Schedule::every(century, Duration::from_secs(86_400), Tz::UTC).expect("a good period");
    let expected = ["1970-01-02T00:00:00Z", "2070-01-02T00:00:00Z"].map(instant);
    assert_eq!(firings(&schedule, DateTime::<Utc>::MIN_UTC).collect::<Vec<_>>(), expected);
    let passed = schedule.passed(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
    assert_eq!(passed.live.map(|live| (live.count, live.last)), Some((2, expected[1])));
}

#[test]
fn a_period_that_is_none_is_refused() {
    let judge = |period, offset| Schedule::every(period, offset, Tz::UTC).map(drop);
    let (zero, second) = (Duration::ZERO, Duration::from_secs(1));
    assert_eq!(judge(zero, zero), Err(InvalidEvery::Period));
    assert_eq!(judge(Duration::from_millis(1_500), zero), Err(InvalidEvery::Period));
    assert_eq!(judge(second, Duration::from_millis(5)), Err(InvalidEvery::Offset));
    assert_eq!(judge(Duration::MAX, zero), Err(InvalidEvery::Period));
    assert_eq!(judge(Duration::from_secs(u64::MAX), zero), Err(InvalidEvery::TooLong));
    assert_eq!(judge(second * 36_525 * 86_400, zero), Ok(()));
    let refused = judge(90 * second, 100 * second).expect_err("the offset is too long").to_string();
    assert_eq!(refused, "an offset is shorter than its period, 90s; write 10s, which means the same");
}

#[test]
fn an_instant_comes_once_and_by_hand_never() {
    let once = Schedule::at(instant("2027-01-01T02:00:00.75Z"), Tz::Europe__Berlin);
    assert_eq!(first(&once, 2, "2020-01-01T00:00:00Z"), [instant("2027-01-01T02:00:00Z")]);
    assert_eq!(once.next_after(instant("2027-01-01T02:00:00Z")), None);
    assert_eq!(once.next_after(DateTime::<Utc>::MIN_UTC), Some(instant("2027-01-01T02:00:00Z")));
    let by_hand = Schedule::by_hand(Tz::UTC);
    assert!(by_hand.is_by_hand() && !once.is_by_hand());
    assert_eq!(by_hand.next_after(DateTime::<Utc>::MIN_UTC), None);
    assert_eq!(by_hand.expressions().len(), 0);
}

#[test]
fn a_window_begins_with_its_start_and_ends_before_its_end() {
    let [from, until] = ["2027-01-01T01:00:00Z", "2027-01-01T03:00:00Z"].map(|text| Some(instant(text)));
    let inside = ["2027-01-01T01:00:00Z", "2027-01-01T02:00:00Z"].map(instant);
    for schedule in [utc("0 * * * *"), every(3_600, 0)] {
        assert_eq!(first(&schedule.clone().within(from, until), 9, "2020-01-01T00:00:00Z"), inside);
        assert_eq!(first(&schedule.clone().within(from, None), 2, "2020-01-01T00:00:00Z"), inside);
        assert_eq!(first(&schedule.clone().within(None, until), 9, "2027-01-01T00:59:59Z"), inside);
        assert_eq!(first(&schedule.within(from, until), 9, "2027-01-01T01:00:00Z"), inside[1..]);
    }
    let from = Some(instant("2027-01-01T01:00:00.5Z"));
    assert_eq!(first(&utc("0 * * * *").within(from, None), 1, "2020-01-01T00:00:00Z"), inside[1..]);
    assert_eq!(utc("0 * * * *").within(until, until).next_after(instant("2020-01-01T00:00:00Z")), None);
    let ends = (Some(DateTime::<Utc>::MIN_UTC), Some(DateTime::<Utc>::MAX_UTC));
    assert!(utc("0 * * * *").within(ends.0, ends.1).next_after(DateTime::<Utc>::MIN_UTC).is_some());
}

#[test]
fn what_decides_when_it_ticks_is_named_and_nothing_else() {
    let canon = |schedule: Schedule| {
        let pairs: Vec<_> = schedule.canon().into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
        pairs.join(", ")
    };
    let how = Reading::in_zone(Tz::Europe__Berlin);
    let texts = [" 0 9\t * * mon-fri ", "@daily"];
    let plain = Schedule::read(texts, &how).expect("both are valid");
    assert_eq!(canon(plain), "timezone = Europe/Berlin, schedule = 0 9 * * mon-fri, schedule = @daily");
    let ruled = Reading { gap: Some(GapRule::Skip), fold: Some(FoldRule::Second), ..how };
    let ruled = Schedule::read(["0 9 * * *"], &ruled).expect("valid");
    let window = (Some(instant("2027-01-01T00:00:00Z")), Some(instant("2028-01-01T00:00:00.5Z")));
    assert_eq!(
        canon(ruled.within(window.0, window.1)),
        "timezone = Europe/Berlin, schedule = 0 9 * * *, dst_gap = skip, dst_fold = second, \
         active_from = 2027-01-01T00:00:00Z, active_until = 2028-01-01T00:00:00.500Z"
    );
    assert_eq!(canon(every(90, 30)), "every_s = 90, offset_s = 30");
    let once = Schedule::at(instant("2027-01-01T02:00:00Z"), Tz::Europe__Berlin);
    assert_eq!(canon(once), "at = 2027-01-01T02:00:00Z");
    assert_eq!(canon(Schedule::by_hand(Tz::UTC)), "by_hand = true");
}

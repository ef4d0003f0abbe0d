//! Times in which a schedule doesn't tick.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use cronlatch::job::schedule::{Blackout, InvalidBlackout, InvalidSchedule, Reading, Schedule};

use super::{firings, instant, utc};

const HOUR: Duration = Duration::from_secs(3_600);

fn recurring(expression: &str, lasts: Duration, zone: Tz) -> Blackout {
    Blackout::recurring(expression, lasts, &Reading::in_zone(zone)).expect(expression)
}

fn between(from: &str, until: &str) -> Blackout {
    Blackout::between(instant(from), instant(until))
}

/// Day and time of the first instants of 2027, a Friday's year.
fn first(schedule: Schedule, blackouts: Vec<Blackout>, count: usize) -> Vec<String> {
    let schedule = schedule.without(blackouts).expect("some instants are left");
    let before = instant("2026-12-31T23:59:59Z");
    firings(&schedule, before).take(count).map(|at| at.format("%d %H:%M:%S").to_string()).collect()
}

#[test]
fn a_window_takes_its_start_and_leaves_its_end() {
    let hourly = || utc("0 * * * *");
    let once = between("2027-01-01T01:00:00Z", "2027-01-01T03:00:00Z");
    assert_eq!(first(hourly(), vec![once.clone()], 3), ["01 00:00:00", "01 03:00:00", "01 04:00:00"]);
    let daily = recurring("0 1 * * *", 22 * HOUR, Tz::UTC);
    assert_eq!(first(hourly(), vec![daily.clone()], 3), ["01 00:00:00", "01 23:00:00", "02 00:00:00"]);
    assert_eq!(first(hourly(), vec![once, daily], 3), ["01 00:00:00", "01 23:00:00", "02 00:00:00"]);
    let nothing = between("2027-01-01T03:00:00Z", "2027-01-01T01:00:00Z");
    assert_eq!(first(hourly(), vec![nothing], 2), ["01 00:00:00", "01 01:00:00"]);
    let fractions = between("2027-01-01T00:00:00.5Z", "2027-01-01T01:00:00.5Z");
    assert_eq!(first(hourly(), vec![fractions], 2), ["01 00:00:00", "01 02:00:00"]);
}

#[test]
fn a_window_that_began_long_before_still_holds() {
    // From Friday 22:00 to Monday 08:00.
    let weekend = || recurring("0 22 * * FRI", 58 * HOUR, Tz::UTC);
    assert_eq!(first(utc("0 12 * * *"), vec![weekend()], 3), ["01 12:00:00", "04 12:00:00", "05 12:00:00"]);
    let schedule = utc("* * * * *").without(vec![weekend()]).expect("most weekdays are left");
    let inside = instant("2027-01-03T12:00:00Z");
    assert_eq!(schedule.next_after(inside), Some(instant("2027-01-04T08:00:00Z")));
}

#[test]
fn windows_that_overlap_or_touch_are_left_together() {
    let blackouts =
        || vec![recurring("0 1,2 * * *", 2 * HOUR, Tz::UTC), between("2027-01-01T04:00:00Z", "2027-01-01T05:30:00Z")];
    assert_eq!(first(utc("30 * * * *"), blackouts(), 2), ["01 00:30:00", "01 05:30:00"]);
    let every = Schedule::every(Duration::from_secs(600), Duration::from_secs(1), Tz::UTC).expect("valid");
    assert_eq!(first(every, blackouts(), 7)[5..], ["01 00:50:01", "01 05:30:01"]);
}

#[test]
fn a_window_lasts_as_long_as_time_passes_whatever_the_clocks_do() {
    // The clocks of Berlin go from 02:00 to 03:00 that night.
    let night = recurring("0 22 * * *", 6 * HOUR, Tz::Europe__Berlin);
    let hourly = Schedule::parse("0 * * * *", Tz::Europe__Berlin).and_then(|hourly| hourly.without(vec![night]));
    let next = hourly.expect("valid").next_after(instant("2027-03-27T20:00:00Z"));
    assert_eq!(next, Some(instant("2027-03-28T03:00:00Z")), "05:00 in summer time");
}

#[test]
fn windows_and_blackouts_hold_together() {
    let window = (Some(instant("2027-01-01T02:00:00Z")), Some(instant("2027-01-01T05:00:00Z")));
    let taken = || vec![between("2027-01-01T00:00:00Z", "2027-01-01T04:00:00Z")];
    assert_eq!(first(utc("0 * * * *").within(window.0, window.1), taken(), 2), ["01 04:00:00"]);
    let all = vec![between("2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z")];
    assert_eq!(utc("0 * * * *").within(window.0, window.1).without(all), Err(InvalidSchedule::BlackedOut));
}

#[test]
fn blackouts_that_leave_nothing_are_refused_in_bounded_time() {
    let begun = Instant::now();
    for (schedule, blackout) in [
        (utc("0 3 * * *"), recurring("0 2 * * *", 2 * HOUR, Tz::UTC)),
        (utc("0 0 1 * *"), Blackout::between(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC)),
        (
            Schedule::at(instant("2027-01-01T00:00:00Z"), Tz::UTC),
            between("2027-01-01T00:00:00Z", "2027-01-01T00:00:01Z"),
        ),
    ] {
        let refused = schedule.without(vec![blackout]).expect_err("nothing is left");
        assert_eq!(refused.to_string(), "the blackouts leave no instant of the schedule; shorten one, or remove it");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
    let over =
        Schedule::at(instant("2027-01-01T00:00:00Z"), Tz::UTC).within(None, Some(instant("2026-01-01T00:00:00Z")));
    assert!(over.without(vec![between("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")]).is_ok(), "it has none to lose");
    assert!(Schedule::by_hand(Tz::UTC).without(vec![recurring("* * * * *", HOUR, Tz::UTC)]).is_ok());
}

#[test]
fn a_blackout_that_begins_again_and_again_without_a_pause_is_refused() {
    let minute = Duration::from_secs(60);
    let judge = |expression, lasts| utc("* * * * * *").without(vec![recurring(expression, lasts, Tz::UTC)]).map(drop);
    for (expression, lasts) in [
        ("* * 1-20 * *", minute),
        ("* * * * *", HOUR),
        ("0 * 1-20 * *", HOUR),
        ("*/5 * * 1,3-12 *", 5 * minute),
        ("* * * * * *", minute),
    ] {
        assert_eq!(judge(expression, lasts), Err(InvalidSchedule::DenseBlackout), "{expression} for {lasts:?}");
    }
    for (expression, lasts) in [
        ("0 0 * * SAT,SUN", 24 * HOUR),
        ("*/10 9-17 * * *", 10 * minute),
        ("0 0 1-20 * *", 24 * HOUR),
        ("* * 1-20 * *", minute / 2),
    ] {
        assert_eq!(judge(expression, lasts), Ok(()), "{expression} for {lasts:?}");
    }
    let text = judge("* * 1-20 * *", minute).expect_err("dense").to_string();
    assert!(text.contains("lasts = \"20d\" }"), "{text}");
}

#[test]
fn a_blackout_that_is_none_is_refused() {
    let judge = |expression, lasts| Blackout::recurring(expression, lasts, &Reading::in_zone(Tz::UTC)).map(drop);
    assert_eq!(judge("0 22 * * FRI", Duration::ZERO), Err(InvalidBlackout::Lasts));
    assert_eq!(judge("0 22 * * FRI", Duration::from_millis(1_500)), Err(InvalidBlackout::Lasts));
    assert_eq!(judge("0 22 * * FRI", 367 * 24 * HOUR), Err(InvalidBlackout::Lasts));
    assert_eq!(judge("0 22 * * FRI", 366 * 24 * HOUR), Ok(()));
    let refused = |expression| judge(expression, HOUR).expect_err("no expression").to_string();
    assert!(refused("0 25 * * *").starts_with("hour \"25\": 25 is out of range"));
    assert!(refused("0 0 30 2 *").contains("never fires"));
}

#[test]
fn blackouts_are_part_of_what_decides_when_it_ticks() {
    let blackouts = vec![
        recurring("0  22 * * FRI", 58 * HOUR, Tz::Europe__Berlin),
        between("2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"),
    ];
    let canon = utc("0 * * * *").without(blackouts).expect("valid").canon();
    let expected = [
        ("timezone", "UTC"),
        ("schedule", "0 * * * *"),
        ("blackout_lasts_s", "208800"),
        ("timezone", "Europe/Berlin"),
        ("schedule", "0 22 * * FRI"),
        ("blackout_from", "2027-01-01T00:00:00Z"),
        ("blackout_until", "2027-01-02T00:00:00Z"),
    ];
    assert_eq!(canon, expected.map(|(name, value)| (name, value.to_owned())));
}

#[test]
fn the_ends_of_time_are_no_trap_for_blackouts() {
    let weekly = utc("* * * * *").without(vec![recurring("0 0 * * MON", HOUR, Tz::UTC)]).expect("valid");
    assert!(weekly.next_after(DateTime::<Utc>::MIN_UTC).is_some());
    assert_eq!(weekly.next_after(DateTime::<Utc>::MAX_UTC), None);
    let last = weekly.next_after(instant("2100-12-31T23:58:59Z")).expect("the last minute");
    assert_eq!(weekly.next_after(last + TimeDelta::seconds(1)), None);
}

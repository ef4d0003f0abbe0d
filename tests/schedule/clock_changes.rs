//! `dst_gap` and `dst_fold`, against the form of an expression.

use chrono_tz::Tz;
use cronlatch::job::schedule::{FoldRule, GapRule, Reading, Schedule};

use super::{firings, instant};

/// What fires in Berlin from `from` on, up to but not including `to`, in UTC.
fn fired(expression: &str, gap: Option<GapRule>, fold: Option<FoldRule>, from: &str, to: &str) -> Vec<String> {
    let how = Reading { gap, fold, ..Reading::in_zone(Tz::Europe__Berlin) };
    let schedule = Schedule::read([expression], &how).expect(expression);
    let before = instant(from) - chrono::TimeDelta::seconds(1);
    let inside = firings(&schedule, before).take_while(|at| *at < instant(to));
    inside.map(|at| at.format("%H:%M").to_string()).collect()
}

#[test]
fn in_a_gap_the_jobs_rule_wins_over_the_expressions_form() {
    // The clocks go from 02:00 to 03:00 at 01:00 UTC.
    let fired = |expression, gap| fired(expression, gap, None, "2027-03-28T00:00:00Z", "2027-03-28T02:00:00Z");
    let nothing: [&str; 0] = [];
    assert_eq!(fired("30 2 * * *", None), ["01:00"]);
    assert_eq!(fired("30 2 * * *", Some(GapRule::Run)), ["01:00"]);
    assert_eq!(fired("30 2 * * *", Some(GapRule::Skip)), nothing);
    assert_eq!(fired("*/20 2 * * *", None), nothing);
    assert_eq!(fired("*/20 2 * * *", Some(GapRule::Skip)), nothing);
    assert_eq!(fired("*/20 2 * * *", Some(GapRule::Run)), ["01:00"], "three times in one");
    assert_eq!(fired("50 * * * *", Some(GapRule::Run)), ["00:50", "01:00", "01:50"]);
    assert_eq!(fired("50 1-3 * * *", Some(GapRule::Skip)), ["00:50", "01:50"]);
}

#[test]
fn in_a_fold_the_jobs_rule_wins_over_the_expressions_form() {
    // The clocks go from 03:00 back to 02:00 at 01:00 UTC.
    let fired = |expression, fold| fired(expression, None, fold, "2027-10-30T23:00:00Z", "2027-10-31T03:00:00Z");
    assert_eq!(fired("30 1-3 * * *", None), ["23:30", "00:30", "02:30"]);
    assert_eq!(fired("30 1-3 * * *", Some(FoldRule::First)), ["23:30", "00:30", "02:30"]);
    assert_eq!(fired("30 1-3 * * *", Some(FoldRule::Second)), ["23:30", "01:30", "02:30"]);
    assert_eq!(fired("30 1-3 * * *", Some(FoldRule::Both)), ["23:30", "00:30", "01:30", "02:30"]);
    assert_eq!(fired("30 * * * *", None), ["23:30", "00:30", "01:30", "02:30"]);
    assert_eq!(fired("30 * * * *", Some(FoldRule::First)), ["23:30", "00:30", "02:30"]);
    assert_eq!(fired("30 * * * *", Some(FoldRule::Second)), ["23:30", "01:30", "02:30"]);
    assert_eq!(fired("0 2,3 * * *", Some(FoldRule::Second)), ["01:00", "02:00"]);
}

#[test]
fn the_second_pass_is_found_from_every_start() {
    let how = Reading { fold: Some(FoldRule::Second), ..Reading::in_zone(Tz::Europe__Berlin) };
    let schedule = Schedule::read(["30 2 * * *"], &how).expect("valid");
    for start in ["2027-10-30T12:00:00Z", "2027-10-31T00:00:00Z", "2027-10-31T00:30:00Z", "2027-10-31T00:59:59Z"] {
        assert_eq!(schedule.next_after(instant(start)), Some(instant("2027-10-31T01:30:00Z")), "{start}");
    }
    assert_eq!(schedule.next_after(instant("2027-10-31T01:30:00Z")), Some(instant("2027-11-01T01:30:00Z")));
}

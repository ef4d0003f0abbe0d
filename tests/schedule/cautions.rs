//! What `check` says about schedules that are fine to read.

use std::time::Duration;

use chrono_tz::Tz;
use cronlatch::job::JobName;
use cronlatch::job::schedule::{Blackout, FoldRule, GapRule, Reading, Schedule};

use super::{instant, utc};

const FROM: &str = "2027-01-01T00:00:00Z";

fn texts(schedule: &Schedule) -> Vec<String> {
    schedule.cautions(instant(FROM)).iter().map(ToString::to_string).collect()
}

fn check(expected: &[(&str, &[&str])]) {
    for (expression, cautions) in expected {
        assert_eq!(texts(&utc(expression)), *cautions, "{expression}");
    }
}

#[test]
fn a_step_that_does_not_divide_its_range_is_told_with_its_last_distance() {
    check(&[
        ("*/7 * * * *", &["minute */7: :56 is 4 minutes before the next :00; every = \"7m\" goes on evenly"]),
        ("0-59/25 * * * *", &["minute 0-59/25: :50 is 10 minutes before the next :00; every = \"25m\" goes on evenly"]),
        ("3/11 9,10 * * *", &["minute 3/11: :58 is 5 minutes before the next :03; every = \"11m\" goes on evenly"]),
        ("*/90 * * * *", &["minute */90: a step past the range leaves :00 alone; every = \"90m\" goes on evenly"]),
        (
            "*/40 * * * * *",
            &["second */40: second 40 is 20 seconds before the next second 0; every = \"40s\" goes on evenly"],
        ),
        ("0 */5 * * *", &["hour */5: 20:00 is 4 hours before the next 00:00; every = \"5h\" goes on evenly, by UTC"]),
        (
            "0 */48 * * *",
            &["hour */48: a step past the range leaves 00:00 alone; every = \"48h\" goes on evenly, by UTC"],
        ),
        ("0 0 1 */5 *", &["month */5: NOV is 2 months before the next JAN; a list says which are meant"]),
        ("0 0 * * */2", &["day of week */2: SAT is 1 day before the next SUN; a list says which are meant"]),
        ("0 0 * * 1-7/2", &["day of week 1-7/2: SUN is 1 day before the next MON; a list says which are meant"]),
        (
            "0 0 */2 * *",
            &["day of month */2: day 31 is 1 day before the next day 1, in a month of 31 days; \
               every = \"48h\" goes on evenly, by UTC"],
        ),
        (
            "0 0 */7 * *",
            &["day of month */7: day 29 is 3 days before the next day 1, in a month of 31 days; \
               every = \"168h\" goes on evenly, by UTC"],
        ),
    ]);
}

#[test]
fn steps_that_come_around_evenly_or_have_nothing_after_them_are_no_surprise() {
    for expression in [
        "*/5 * * * *",
        "0-59/20 * * * *",
        "1/2 * * * *",
        "7/15 * * * *",
        "*/60 * * * *",
        "*/1 * * * *",
        "*/20 * * * * *",
        "0 */6 * * *",
        "0 */24 * * *",
        "0 0 1 */3 *",
        "0 0 * * */7",
        "0 0 */31 * *",
        // Parts of a range end where they end.
        "10-50/7 * * * *",
        "0 8-18/4 * * *",
        "0 0 * * 1-5/2",
        "0 0 1-15/2 * *",
        "5,*/10 * * * *",
        // No hour, minute or day comes after the last.
        "*/7 3 * * *",
        "*/7 3,6,9 * * *",
        "*/7 0 * * * *",
        "0 */5 * * MON,WED",
        "0 */5 13 * *",
    ] {
        assert_eq!(texts(&utc(expression)), [""; 0], "{expression}");
    }
}

#[test]
fn steps_of_h_are_told_for_the_phase_that_was_drawn() {
    let job = JobName::new("nightly-backup").expect("a name");
    let how = Reading { job: Some(&job), ..Reading::in_zone(Tz::UTC) };
    let read = |expression: &str| texts(&Schedule::read([expression], &how).expect(expression));
    let uneven = "minute H/7: :59 is 4 minutes before the next :03; every = \"7m\" goes on evenly";
    assert_eq!(read("H/7 * * * *"), [uneven]);
    assert_eq!(read("H/15 H * * *"), [""; 0]);
    assert_eq!(read("0 0 H/14 * *"), [""; 0]);
    assert_eq!(read("H(0-29)/7 * * * *"), [""; 0]);
}

#[test]
fn a_day_that_some_month_lacks_is_told() {
    let remedy = "write L for the last day of each month";
    let short = "February, April, June, September and November have no day 31";
    let leap = "February has a day 29 in leap years only; write L for its last day";
    for (expression, expected) in [
        ("0 0 31 * *", format!("{short}; {remedy}")),
        ("0 0 1,31 * *", format!("{short}; {remedy}")),
        ("0 0 31W * *", format!("{short}; {remedy}")),
        ("0 0 30 * *", format!("February has no day 30; {remedy}")),
        ("0 0 30,31 * *", format!("February has no day 30; {remedy}")),
        ("0 0 31 MAR-JUN *", format!("April and June have no day 31; {remedy}")),
        ("0 0 29 * *", leap.to_owned()),
        ("0 0 29 2 *", leap.to_owned()),
        ("0 0 29-31 * *", leap.to_owned()),
    ] {
        assert_eq!(texts(&utc(expression)), [expected], "{expression}");
    }
    for expression in [
        "0 0 31 1,3,5,7,8,10,12 *",
        "0 0 30 4 *",
        "0 0 29 3-12 *",
        "0 0 28 * *",
        "0 0 28-31 * *",
        "0 0 15-31 * *",
        "0 0 1-31 * *",
        "0 0 L * *",
        "0 0 L-2 * *",
        "0 0 LW * *",
    ] {
        assert_eq!(texts(&utc(expression)), [""; 0], "{expression}");
    }
}

#[test]
fn a_week_of_days_beside_a_weekday_is_told_as_the_trap_that_it_is() {
    let start = "either is enough; where both are meant, write * and";
    check(&[
        ("0 0 1-7 * MON", &[&format!("day of month 1-7 or day of week MON: {start} MON#1")]),
        ("0 0 8-14 * 2,5", &[&format!("day of month 8-14 or day of week 2,5: {start} TUE#2,FRI#2")]),
        ("0 0 22-28 * 0", &[&format!("day of month 22-28 or day of week 0: {start} SUN#4")]),
        ("0 0 25-31 * FRI", &[&format!("day of month 25-31 or day of week FRI: {start} FRIL")]),
        // What is surely meant, and a step that is not.
        ("0 0 1-7 * *", &[]),
        ("0 0 1-7 * ?", &[]),
        ("0 0 1-7 * 0-6", &[]),
        ("0 0 13 * FRI", &[]),
        ("0 0 1-10 * MON", &[]),
        ("0 0 1,3,5,7,9,11,13 * MON", &[]),
        ("0 0 1-7,L * MON", &[]),
        ("0 0 * * MON#1", &[]),
    ]);
}

fn in_berlin(expression: &str, gap: Option<GapRule>, fold: Option<FoldRule>) -> Vec<String> {
    let how = Reading { gap, fold, ..Reading::in_zone(Tz::Europe__Berlin) };
    texts(&Schedule::read([expression], &how).expect(expression))
}

#[test]
fn times_that_a_clock_change_skips_are_told_with_what_becomes_of_them() {
    let gap = |expression, rule| {
        let mut all = in_berlin(expression, rule, None);
        all.retain(|text| text.contains("dst_gap"));
        all
    };
    let no = |times: &str, then: &str| vec![format!("2027-03-28 has no {times} in Europe/Berlin: {then}")];
    let instead = "it fires at 03:00 instead; dst_gap = \"skip\" leaves it out";
    assert_eq!(gap("30 2 * * *", None), no("02:30", instead));
    assert_eq!(gap("30 2 * * SUN", None), no("02:30", instead));
    assert_eq!(gap("30 1-3 28 3 *", None), no("02:30", instead));
    let once = "these 2 fire once, at 03:00; dst_gap = \"skip\" leaves them out";
    assert_eq!(gap("0,45 2 * * *", None), no("02:00 to 02:45", once));
    assert_eq!(gap("59,0 59 2 * * *", None), no("02:59 to 02:59:59", once));
    let out = "it is left out; dst_gap = \"run\" fires it at 03:00";
    assert_eq!(gap("30 2 * * *", Some(GapRule::Skip)), no("02:30", out));
    let all_out = "these 3 are left out; dst_gap = \"run\" fires once for them, at 03:00";
    assert_eq!(gap("*/20 2 * * *", None), no("02:00 to 02:40", all_out));
    for expression in ["30 2 * * MON", "30 3 * * *", "59 59 1 * * *", "30 2 * 4-10 *", "30 * * * *", "*/5 * * * *"] {
        assert_eq!(gap(expression, None), [""; 0], "{expression}");
    }
}

#[test]
fn times_that_a_clock_change_doubles_are_told_with_what_becomes_of_them() {
    let fold = |expression, rule| {
        let mut all = in_berlin(expression, None, rule);
        all.retain(|text| text.contains("dst_fold"));
        all
    };
    let twice = |times: &str, then: &str| vec![format!("2027-10-31 has {times} twice in Europe/Berlin: {then}")];
    let first = "only the first counts; dst_fold = \"second\" or \"both\" changes that";
    assert_eq!(fold("30 2 * * *", None), twice("02:30", first));
    assert_eq!(fold("0 1-3 * * *", None), twice("02:00", first));
    let second = "only the second counts; dst_fold = \"first\" or \"both\" changes that";
    assert_eq!(fold("30 2 * * *", Some(FoldRule::Second)), twice("02:30", second));
    let both = "both count; dst_fold = \"first\" or \"second\" takes one of them";
    assert_eq!(fold("*/20 2 * * *", None), twice("02:00 to 02:40", both));
    for expression in ["30 2 * * MON", "0 3 * * *", "59 1 * * *", "30 2 * 3-9 *", "30 * * * *", "15 0-23 * * *"] {
        assert_eq!(fold(expression, None), [""; 0], "{expression}");
    }
}

#[test]
fn clock_changes_of_other_kinds_are_told_too() {
    let of = |expression, zone| texts(&Schedule::parse(expression, zone).expect("valid"));
    assert_eq!(of("15 0-2 * * *", Tz::UTC), [""; 0]);
    assert_eq!(of("15 0-2 * * *", Tz::Asia__Kolkata), [""; 0]);
    let gap = "dst_gap = \"skip\" leaves it out";
    let fold = "only the first counts; dst_fold = \"second\" or \"both\" changes that";
    // From midnight to 01:00, and from midnight back to 23:00.
    let santiago = "2027-09-05 has no 00:15 in America/Santiago: it fires at 01:00 instead";
    assert_eq!(of("15 0,2 * * *", Tz::America__Santiago), [format!("{santiago}; {gap}")]);
    let santiago = format!("2027-04-03 has 23:15 twice in America/Santiago: {fold}");
    assert_eq!(of("15 23 * * *", Tz::America__Santiago), [santiago]);
    // From 02:00 to 02:30, and from 02:00 back to 01:30.
    let lord_howe = "2027-10-03 has no 02:15 in Australia/Lord_Howe: it fires at 02:30 instead";
    assert_eq!(of("15 1,2 * * *", Tz::Australia__Lord_Howe), [format!("{lord_howe}; {gap}")]);
    let lord_howe = format!("2027-04-04 has 01:45 twice in Australia/Lord_Howe: {fold}");
    assert_eq!(of("45 1,2 * * *", Tz::Australia__Lord_Howe), [lord_howe]);
}

#[test]
fn clock_changes_at_which_nothing_can_tick_are_no_surprise() {
    let daily = || Schedule::parse("30 2 * * *", Tz::Europe__Berlin).expect("valid");
    assert_eq!(texts(&daily()).len(), 2);
    let spring = daily().within(None, Some(instant("2027-03-28T01:00:00Z")));
    assert_eq!(texts(&spring), [""; 0]);
    let summer = daily().within(Some(instant("2027-04-01T00:00:00Z")), Some(instant("2027-10-01T00:00:00Z")));
    assert_eq!(texts(&summer), [""; 0]);
    let weekend = Blackout::recurring("0 0 * * SAT", Duration::from_secs(48 * 3_600), &Reading::in_zone(Tz::UTC));
    assert_eq!(texts(&daily().without(vec![weekend.expect("valid")]).expect("workdays are left")), [""; 0]);
    let late = daily().cautions(instant("2027-10-31T12:00:00Z"));
    assert!(late.iter().all(|caution| caution.to_string().starts_with("2028-")), "{late:?}");
    // The 28th of March is a Sunday of a clock change in 2027, not in 2026.
    let yearly = Schedule::parse("30 2 28 3 *", Tz::Europe__Berlin).expect("valid");
    assert_eq!(yearly.cautions(instant("2026-03-27T01:00:00Z")).len(), 1, "366 days later to the second");
    assert_eq!(yearly.cautions(instant("2026-03-27T00:59:59Z")).len(), 0);
    assert!(daily().cautions(chrono::DateTime::<chrono::Utc>::MAX_UTC).is_empty());
}

#[test]
fn each_expression_has_its_own_cautions() {
    let all = ["30 2 * * *", "0 12 * * *", "*/7 * 31 * *"];
    let schedule = Schedule::parse_all(all, Tz::Europe__Berlin).expect("valid");
    let places: Vec<_> = schedule.cautions(instant(FROM)).iter().map(|caution| caution.expression).collect();
    assert_eq!(places, [0, 0, 2, 2]);
    assert!(Schedule::at(instant(FROM), Tz::UTC).cautions(instant(FROM)).is_empty());
}

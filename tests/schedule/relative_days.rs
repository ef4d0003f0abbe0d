//! Days that each month has elsewhere beside plain ones, and `H`.

use chrono_tz::Tz;
use cronlatch::job::JobName;
use cronlatch::job::schedule::{InvalidSchedule, Reading, Schedule};

use super::{firings, instant, utc};

fn dates(expression: &str, count: usize) -> Vec<String> {
    let from = instant("2026-12-31T23:59:59Z");
    firings(&utc(expression), from).take(count).map(|at| at.format("%m-%d").to_string()).collect()
}

#[test]
fn the_day_fields_join_as_those_of_plain_days() {
    // 2027 begins with a Friday.
    assert_eq!(dates("0 0 L * MON#1", 4), ["01-04", "01-31", "02-01", "02-28"], "neither is starred: either");
    assert_eq!(dates("0 0 L-2,15W * *", 4), ["01-15", "01-29", "02-15", "02-26"]);
    assert_eq!(dates("0 0 ? * TUE,FRI#1", 5), ["01-01", "01-05", "01-12", "01-19", "01-26"]);
    assert_eq!(dates("0 0 */2 * FRI#2", 3), ["04-09", "06-11", "07-09"], "the day is starred: both");
}

#[test]
fn a_schedule_of_days_that_no_month_has_is_refused() {
    for expression in ["0 0 L-30 2 *", "0 0 31W 2,4,6 *", "0 0 */31 * FRI#2", "0 0 0 * 2 MON#5 2027-2030"] {
        let refused = Schedule::parse(expression, Tz::UTC);
        let fires = refused.as_ref().map(|schedule| schedule.next_after(instant("1970-01-01T00:00:00Z")));
        assert!(matches!(refused, Err(InvalidSchedule::NeverFires { .. })), "{expression}: {fires:?}");
    }
}

#[test]
fn a_last_day_that_begins_in_a_gap_begins_when_the_gap_ends() {
    // Santiago's clocks went from midnight to 01:00 on Sunday, 2027-09-05.
    let schedule = Schedule::parse("0 0 * * SUN#1", Tz::America__Santiago).expect("valid");
    assert_eq!(schedule.next_after(instant("2027-09-01T00:00:00Z")), Some(instant("2027-09-05T04:00:00Z")));
    let wildcard = Schedule::parse("*/20 0 * * SUN#1", Tz::America__Santiago).expect("valid");
    assert_eq!(wildcard.next_after(instant("2027-09-01T00:00:00Z")), Some(instant("2027-10-03T03:00:00Z")));
}

#[test]
fn a_jobs_hashed_times_follow_from_its_name() {
    let [backup, reports] = ["nightly-backup", "reports"].map(|name| JobName::new(name).expect("a name"));
    let first = |expression: &str, job: &JobName, zone| {
        let how = Reading { job: Some(job), ..Reading::in_zone(zone) };
        let schedule = Schedule::read([expression], &how).expect(expression);
        schedule.next_after(instant("2027-03-28T00:00:00Z")).expect("it fires").to_rfc3339()
    };
    assert_eq!(first("H H * * *", &backup, Tz::UTC), "2027-03-28T02:51:00+00:00");
    assert_eq!(first("H H * * *", &reports, Tz::UTC), "2027-03-28T17:05:00+00:00");
    assert_eq!(first("H/15 * * * *", &backup, Tz::UTC), "2027-03-28T00:06:00+00:00");
    assert_eq!(first("0 0 H * *", &backup, Tz::UTC), "2027-04-08T00:00:00+00:00");
    // Fixed-time jobs run at the end of the gap from 02:00 to 03:00, wildcards don't.
    assert_eq!(first("H H * * *", &backup, Tz::Europe__Berlin), "2027-03-28T01:00:00+00:00");
    assert_eq!(first("* H * * *", &backup, Tz::Europe__Berlin), "2027-03-29T00:00:00+00:00");
    assert!(Schedule::parse("H H * * *", Tz::UTC).is_err_and(|error| error.to_string().contains("job's name")));
}

//! Single cases, written out.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use cronlatch::job::schedule::Schedule;

use super::{firings, instant, utc};

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
fn expressions_of_a_year_gone_by_are_read_and_known() {
    let schedule = Schedule::parse_all(["0 0 0 1 1 * 2026", "@daily"], Tz::UTC).expect("time makes nothing wrong");
    assert_eq!(schedule.spent(instant("2025-12-31T23:59:59Z")), Vec::<usize>::new());
    assert_eq!(schedule.spent(instant("2026-01-01T00:00:00Z")), [0]);
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

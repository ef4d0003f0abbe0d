//! What a schedule means in words.

use std::time::Duration;

use chrono_tz::Tz;
use cronlatch::job::JobName;
use cronlatch::job::schedule::{Blackout, Reading, Schedule};

use super::{firings, instant, utc};

fn words(expression: &str) -> String {
    let words = utc(expression).words();
    words.strip_suffix(", UTC").unwrap_or_else(|| panic!("{expression}: {words:?} names no zone")).to_owned()
}

#[test]
fn the_times_of_a_day_are_told_as_people_say_them() {
    for (expression, expected) in [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0-59/5 * * * *", "every 5 minutes"),
        ("0,30 * * * *", "every 30 minutes"),
        ("15,45 * * * *", "every 30 minutes from :15"),
        ("7/15 * * * *", "every 15 minutes from :07"),
        ("0 * * * *", "every hour"),
        ("@hourly", "every hour"),
        ("20 * * * *", "every hour at :20"),
        ("0,10,17 * * * *", "at :00, :10 and :17 of every hour"),
        ("*/7 * * * *", "every 7 minutes from :00 to :56 of every hour"),
        ("0-29 * * * *", "every minute from :00 to :29 of every hour"),
        ("0-10,30 * * * *", "at :00 to :10 and :30 of every hour"),
        ("15 2 * * *", "at 02:15 every day"),
        ("@daily", "at 00:00 every day"),
        ("0 9,12,18 * * *", "at 09:00, 12:00 and 18:00 every day"),
        ("0,30 9 * * *", "at 09:00 and 09:30 every day"),
        ("5,40 3,15 * * *", "at 03:05, 03:40, 15:05 and 15:40 every day"),
        ("0 9-12 * * *", "at 09:00, 10:00, 11:00 and 12:00 every day"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
        ("15 9-17 * * *", "every hour from 09:15 to 17:15"),
        ("*/10 9-17 * * *", "every 10 minutes from 09:00 to 17:50"),
        ("5/10 9-17 * * *", "every 10 minutes from 09:05 to 17:55"),
        ("* 9-17 * * *", "every minute from 09:00 to 17:59"),
        ("* 3 * * *", "every minute from 03:00 to 03:59"),
        ("*/7 3 * * *", "every 7 minutes from 03:00 to 03:56"),
        ("*/7 3-4 * * *", "every 7 minutes from :00 to :56 of the hours 03 and 04"),
        ("1,8,30,40,50,51,52 3 * * *", "at :01, :08, :30, :40 and :50 to :52 of the hour 03 every day"),
        ("0,20 9-17 * * *", "at :00 and :20 of the hours 09 to 17 every day"),
        ("0 */2 * * *", "every 2 hours"),
        ("0 */6 * * *", "every 6 hours"),
        ("0 */5 * * *", "at 00:00, 05:00, 10:00, 15:00 and 20:00 every day"),
        ("10 */4 * * *", "at 00:10, 04:10, 08:10, 12:10, 16:10 and 20:10 every day"),
        ("0 */7,21 * * *", "at 00:00, 07:00, 14:00 and 21:00 every day"),
        ("23 0-23/2 * * *", "every 2 hours from 00:23 to 22:23"),
        ("0 1/2 * * *", "every 2 hours from 01:00 to 23:00"),
        ("0 */8 * * *", "at 00:00, 08:00 and 16:00 every day"),
        ("*/10 */2 * * *", "every 10 minutes of every 2nd hour from 00 to 22"),
        ("* 9,12,13,14,20 * * *", "every minute of the hours 09, 12 to 14 and 20"),
        ("5 1,2,3,4,9,12,13 * * *", "at :05 of the hours 01 to 04, 09, 12 and 13 every day"),
        ("0 0-23 * * *", "every hour"),
    ] {
        assert_eq!(words(expression), expected, "{expression}");
    }
}

#[test]
fn seconds_are_told_where_they_are_more_than_the_first() {
    for (expression, expected) in [
        ("0 15 2 * * *", "at 02:15 every day"),
        ("30 15 2 * * *", "at 02:15:30 every day"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("0,30 * * * * *", "every 30 seconds"),
        ("15 * * * * *", "every minute, at second 15"),
        ("15,20 * * * * *", "every minute, at seconds 15 and 20"),
        ("30 */5 * * * *", "every 5 minutes, at second 30"),
        ("* */5 * * * *", "every 5 minutes, each second of that minute"),
        ("*/20 15 2 * * *", "at 02:15, every 20 seconds of that minute, every day"),
        ("* * 9-17 * * *", "every second from 09:00:00 to 17:59:59"),
        ("*/15 * 9 * * *", "every 15 seconds from 09:00:00 to 09:59:45"),
        ("5 0 * * * *", "every hour, at second 5"),
        ("15 * * * * MON", "every minute, at second 15, on Monday"),
        ("1-3 0 */2 * * *", "every 2 hours, at seconds 1 to 3"),
    ] {
        assert_eq!(words(expression), expected, "{expression}");
    }
}

#[test]
fn days_months_and_years_are_told_by_name() {
    for (expression, expected) in [
        ("15 2 * * 1-5", "at 02:15 on Monday to Friday"),
        ("0 0 * * SAT,SUN", "at 00:00 on Saturday and Sunday"),
        ("0 0 * * FRI-SUN", "at 00:00 on Friday to Sunday"),
        ("0 0 * * 0,1,5,6", "at 00:00 on Monday and Friday to Sunday"),
        ("@weekly", "at 00:00 on Sunday"),
        ("@monthly", "at 00:00 on day 1 of every month"),
        ("@yearly", "at 00:00 on day 1 of January"),
        ("0 0 1,15 * *", "at 00:00 on days 1 and 15 of every month"),
        ("0 0 1-7 1,7 *", "at 00:00 on days 1 to 7 of January and July"),
        ("0 0 */2 * *", "at 00:00 on every 2nd day from 1 to 31 of every month"),
        ("0 0 * 1-3 *", "at 00:00 every day in January to March"),
        ("*/5 * * 12 *", "every 5 minutes in December"),
        ("0 0 * 6 MON", "at 00:00 on Monday in June"),
        ("0 0 L * *", "at 00:00 on the last day of every month"),
        ("0 0 L-1 * *", "at 00:00 on the day before the last of every month"),
        ("0 0 L-3 2 *", "at 00:00 on the 3rd day before the last of February"),
        ("0 0 15,L * *", "at 00:00 on day 15 and the last day of every month"),
        ("0 0 LW * *", "at 00:00 on the last workday of every month"),
        ("0 0 15W * *", "at 00:00 on the workday nearest to day 15 of every month"),
        ("0 0 * * FRI#2", "at 00:00 on the 2nd Friday of the month"),
        ("0 0 * * FRIL", "at 00:00 on the last Friday of the month"),
        ("0 0 * * MON,7#1,FRI#3", "at 00:00 on Monday, the 1st Sunday and the 3rd Friday of the month"),
        ("0 0 13 * FRI", "at 00:00 on day 13 or on Friday, whichever comes"),
        ("0 0 13 6 FRI", "at 00:00 on day 13 or on Friday, whichever comes, in June"),
        ("0 0 L * MON#1", "at 00:00 on the last day or on the 1st Monday of the month, whichever comes"),
        ("0 0 */10 * MON", "at 00:00 on every 10th day from 1 to 31 if it is Monday"),
        ("0 0 */10 1 MON", "at 00:00 on every 10th day from 1 to 31 if it is Monday, in January"),
        ("0 0 1-31 * MON", "at 00:00 every day"),
        ("0 0 ? * MON", "at 00:00 on Monday"),
        ("0 0 12 * * MON 2027", "at 12:00 on Monday in 2027"),
        ("0 0 12 * * * 2027-2029", "at 12:00 every day in 2027 to 2029"),
        ("0 0 12 1 1 ? 2027/2", "at 12:00 on day 1 of January in every 2nd year from 2027 to 2099"),
        ("0 0 12 1 1 ? 2027-2100", "at 12:00 on day 1 of January from 2027 on"),
        ("0 0 12 1 1 ? 2027,2031", "at 12:00 on day 1 of January in 2027 and 2031"),
    ] {
        assert_eq!(words(expression), expected, "{expression}");
    }
}

#[test]
fn several_expressions_share_the_zone_at_the_end() {
    let texts = ["0 9 * * MON-FRI", "0 12 * * SAT"];
    let schedule = Schedule::parse_all(texts, Tz::Europe__Berlin).expect("valid");
    assert_eq!(schedule.words(), "at 09:00 on Monday to Friday, and at 12:00 on Saturday, Europe/Berlin");
}

#[test]
fn h_is_told_as_the_number_that_it_stands_for() {
    let job = JobName::new("nightly-backup").expect("a name");
    let how = Reading { job: Some(&job), ..Reading::in_zone(Tz::UTC) };
    let words = |expression: &str| Schedule::read([expression], &how).expect("valid").words();
    assert_eq!(words("H H * * *"), "at 02:51 every day, UTC");
    assert_eq!(words("H/15 * * * *"), "every 15 minutes from :06, UTC");
}

#[test]
fn schedules_without_an_expression_have_words_too() {
    let every = |period, offset| {
        let [period, offset] = [period, offset].map(Duration::from_secs);
        Schedule::every(period, offset, Tz::UTC).expect("valid").words()
    };
    assert_eq!(every(90, 10), "every 90 seconds, counted from the epoch plus 10s");
    assert_eq!(every(1, 0), "every second, counted from the epoch");
    assert_eq!(every(300, 0), "every 5 minutes, counted from the epoch");
    assert_eq!(every(5_400, 1_800), "every 90 minutes, counted from the epoch plus 30m");
    assert_eq!(every(86_400, 7_200), "every day, counted from the epoch plus 2h");
    let at = |text: &str| Schedule::at(instant(text), Tz::Europe__Berlin).words();
    assert_eq!(at("2027-01-01T02:00:00Z"), "once, at 2027-01-01 03:00 +01:00");
    assert_eq!(at("2027-07-01T02:00:05Z"), "once, at 2027-07-01 04:00:05 +02:00");
    assert_eq!(Schedule::by_hand(Tz::UTC).within(Some(instant("2027-01-01T00:00:00Z")), None).words(), "only by hand");
}

#[test]
fn windows_and_blackouts_are_told_in_the_schedules_zone() {
    let daily = || Schedule::parse("15 2 * * *", Tz::Europe__Berlin).expect("valid");
    let [from, until] = ["2027-01-01T00:00:00Z", "2027-07-01T00:00:00Z"].map(instant);
    let words = |from, until| daily().within(from, until).words().replace("at 02:15 every day, Europe/Berlin, ", "");
    assert_eq!(words(Some(from), Some(until)), "from 2027-01-01 01:00 +01:00 until 2027-07-01 02:00 +02:00");
    assert_eq!(words(Some(from), None), "from 2027-01-01 01:00 +01:00 on");
    assert_eq!(words(None, Some(until)), "until 2027-07-01 02:00 +02:00");
    let blackout = |expression, half_hours: u64, zone| {
        let lasts = Duration::from_secs(half_hours * 1_800);
        Blackout::recurring(expression, lasts, &Reading::in_zone(zone)).expect("valid")
    };
    let words = |blackouts| daily().without(blackouts).expect("valid").words();
    assert_eq!(
        words(vec![blackout("0 22 * * FRI", 116, Tz::Europe__Berlin), Blackout::between(from, until)]),
        "at 02:15 every day, Europe/Berlin, not for 58h from 22:00 on Friday, \
         not from 2027-01-01 01:00 +01:00 to 2027-07-01 02:00 +02:00"
    );
    assert_eq!(
        words(vec![blackout("0 */6 * * *", 1, Tz::UTC)]),
        "at 02:15 every day, Europe/Berlin, not for 30m every 6 hours (UTC)"
    );
}

#[test]
fn what_has_the_same_words_fires_at_the_same_instants() {
    let seconds = ["0", "30", "*", "*/20", "5,15"];
    let minutes = ["*", "*/5", "0", "7", "0,30", "15,45", "*/7", "0-29", "1,2,3,40", "5/15"];
    let hours = ["*", "3", "9-17", "*/2", "1/2", "*/6", "*/5", "0,12", "9,12,13,14,20"];
    let days = ["* * *", "1 * *", "*/2 * *", "L * *", "15W 6 *", "1,15 * MON", "* * 1-5", "*/2 * FRI#2", "* * 1,5L"];
    let mut seen = std::collections::HashMap::new();
    for second in seconds {
        for minute in minutes {
            for (hour, day) in hours.iter().flat_map(|hour| days.map(|day| (hour, day))) {
                let expression = format!("{second} {minute} {hour} {day}");
                let schedule = utc(&expression);
                let starts = ["2027-01-01T00:00:00Z", "2027-02-28T08:59:59Z", "2027-03-12T23:00:00Z"].map(instant);
                let instants: Vec<_> = starts.into_iter().flat_map(|at| firings(&schedule, at).take(8)).collect();
                let (first, before) =
                    seen.entry(schedule.words()).or_insert_with(|| (expression.clone(), instants.clone()));
                assert_eq!(*before, instants, "{first} and {expression} are both: {}", schedule.words());
            }
        }
    }
    assert!(seen.len() > 4_000, "only {} different words", seen.len());
}

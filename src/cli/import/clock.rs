//! The old cron's clock: when its main loop wakes, and for which jobs.
//!
//! A second, independent telling of time beside `job::schedule`: minute by minute, without any idea
//! of gaps and folds. Debian's cron reads the local clock each minute, and compares it with a clock of
//! its own that goes on evenly ("virtual"):
//!
//! | the local clock is | what runs |
//! |---|---|
//! | one minute ahead of the virtual one | everything of that minute |
//! | up to 5 minutes ahead: cron woke late | everything, of each minute in between |
//! | up to 3 hours ahead | wildcards of this minute, fixed times of each minute in between |
//! | behind, by less than 3 hours | wildcards of this minute; the virtual clock waits |
//! | further away: somebody set it | everything of this minute; the virtual clock is set too |
//!
//! What it leaves out: that cron starts jobs a second after the minute, and that the runs of several
//! minutes in between are 10 seconds apart.

use chrono::{DateTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::times::{Shown, ShownDate, Times};

/// One look at the jobs.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: DateTime<Utc>,
    shown: Shown,
    jobs: Jobs,
}

/// Which jobs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jobs {
    All,
    Wildcards,
    FixedTime,
}

/// All looks of a span of time in one zone.
#[derive(Debug)]
pub(super) struct CronClock {
    looks: Vec<Look>,
}

const LATE: i64 = 5;
const SET: i64 = 3 * 60;

impl CronClock {
    /// From one instant, itself left out, to another.
    pub(super) fn between(zone: Tz, from: DateTime<Utc>, until: DateTime<Utc>) -> Self {
        // A day of running in, so that a start in a fold comes from before it.
        let begin = (from - TimeDelta::days(1)).timestamp().div_euclid(60);
        let end = until.timestamp().div_euclid(60);
        let mut looks = Vec::new();
        let mut shown = LocalClock::default();
        let mut virtual_minute = local_minute(zone, begin);
        for minute in begin + 1..=end {
            let at = instant(minute);
            let mut look = |local: i64, jobs| {
                if at > from {
                    looks.push(Look { at, shown: shown.at(local), jobs });
                }
            };
            let now = local_minute(zone, minute);
            let ahead = now - virtual_minute;
            if (1..=LATE).contains(&ahead) {
                (virtual_minute + 1..=now).for_each(|local| look(local, Jobs::All));
                virtual_minute = now;
            } else if (1..=SET).contains(&ahead) {
                look(now, Jobs::Wildcards);
                (virtual_minute + 1..=now).for_each(|local| look(local, Jobs::FixedTime));
                virtual_minute = now;
            } else if (-SET + 1..=0).contains(&ahead) {
                look(now, Jobs::Wildcards);
            } else {
                look(now, Jobs::All);
                virtual_minute = now;
            }
        }
        Self { looks }
    }

    /// When jobs of these times are started, in order; an instant comes again if there are several starts.
    pub(super) fn starts<'a>(&'a self, times: &'a Times) -> impl Iterator<Item = DateTime<Utc>> + 'a {
        let is_looked_at = |jobs| match jobs {
            Jobs::All => true,
            Jobs::Wildcards => times.wildcard,
            Jobs::FixedTime => !times.wildcard,
        };
        let starts = self.looks.iter().filter(move |look| is_looked_at(look.jobs) && times.are_due(&look.shown));
        starts.map(|look| look.at)
    }
}

/// What a clock shows at a minute of local time since 1970. It keeps the date until that changes.
#[derive(Default)]
struct LocalClock(Option<(i64, ShownDate)>);

impl LocalClock {
    fn at(&mut self, minute: i64) -> Shown {
        const DAY: i64 = 24 * 60;
        let (day, minute_of_day) = (minute.div_euclid(DAY), minute.rem_euclid(DAY));
        let known = self.0.filter(|(known, _)| *known == day);
        let (_, date) = *self.0.insert(known.unwrap_or_else(|| (day, ShownDate::on(instant(day * DAY).date_naive()))));
        date.at(u32::try_from(minute_of_day).expect("a remainder of 1,440"))
    }
}

fn instant(minute: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(minute * 60, 0).expect("a minute of a calendar year")
}

fn local_minute(zone: Tz, minute: i64) -> i64 {
    let offset = zone.offset_from_utc_datetime(&instant(minute).naive_utc()).fix().local_minus_utc();
    (minute * 60 + i64::from(offset)).div_euclid(60)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::times::{Read, Shorthand, shorthand};
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    fn read(expression: &str) -> Read {
        let tokens: Vec<&str> = expression.split(' ').collect();
        match <[&str; 5]>::try_from(tokens) {
            Ok(tokens) => Read::fields(tokens).expect(expression),
            Err(_) => match shorthand(expression) {
                Ok(Shorthand::Fields(fields)) => Read::shorthand(expression, fields).unwrap(),
                _ => panic!("{expression} is no crontab's"),
            },
        }
    }

    fn starts(expression: &str, zone: Tz, from: &str, until: &str) -> Vec<DateTime<Utc>> {
        let clock = CronClock::between(zone, at(from), at(until));
        clock.starts(&read(expression).meant).collect()
    }

    /// A row of a recording, and what was found of it so far.
    struct Row<'a> {
        text: &'a str,
        times: Times,
        recorded: Vec<DateTime<Utc>>,
        got: Vec<DateTime<Utc>>,
    }

    /// Runs rows of one zone and start on the same clock, in pieces: some of their instants lie decades
    /// ahead. Pieces with none of their dates in them or beside them are passed over.
    fn run(zone: Tz, start: DateTime<Utc>, rows: &mut [Row<'_>]) {
        const PIECE: TimeDelta = TimeDelta::days(4);
        let mut from = start;
        let is_open = |row: &Row<'_>, from| row.got.len() < row.recorded.len() && from <= row.recorded[row.got.len()];
        while rows.iter().any(|row| is_open(row, from)) {
            let dates = (from - TimeDelta::days(2)).date_naive().iter_days().take(8).map(ShownDate::on);
            let dates: Vec<ShownDate> = dates.collect();
            let is_near = |row: &&mut Row<'_>| dates.iter().any(|date| row.times.fall_on(*date));
            let mut clock = None;
            for row in rows.iter_mut().filter(|row| is_open(row, from)).filter(is_near) {
                let clock = clock.get_or_insert_with(|| CronClock::between(zone, from, from + PIECE));
                row.got.extend(clock.starts(&row.times));
                row.got.dedup();
            }
            from += PIECE;
        }
    }

    /// All rows of a recording but those with seconds or years, which are no crontab's.
    fn check_recording(rows: &str, expected_others: usize) {
        let (mut groups, mut others) = (BTreeMap::<(&str, &str), Vec<Row<'_>>>::new(), 0);
        for text in rows.lines() {
            let columns: Vec<&str> = text.split('\t').collect();
            let [expression, zone, start, instants, ..] = columns[..] else { panic!("too few columns in {text:?}") };
            if expression.split(' ').count() > 5 {
                others += 1;
                continue;
            }
            let recorded = instants.split(',').map(at).collect();
            let row = Row { text, times: read(expression).meant, recorded, got: Vec::new() };
            groups.entry((zone, start)).or_default().push(row);
        }
        let mut failures = Vec::new();
        for ((zone, start), mut rows) in groups {
            run(zone.parse().unwrap(), at(start), &mut rows);
            let is_other = |row: &&Row<'_>| row.got.iter().take(row.recorded.len()).ne(&row.recorded);
            failures.extend(rows.iter().filter(is_other).map(|row| format!("{}\n  got {:?}", row.text, row.got)));
        }
        assert_eq!(others, expected_others, "rows that are no crontab's");
        assert!(failures.is_empty(), "{} rows fail:\n{}", failures.len(), failures.join("\n"));
    }

    #[test]
    fn every_recorded_crontab_entry_runs_at_its_instants() {
        check_recording(include_str!("../../../tests/data/cron_oracle.tsv"), 17);
    }

    #[test]
    fn every_recorded_crontab_entry_near_a_clock_change_runs_at_its_instants() {
        check_recording(include_str!("../../../tests/data/cron_oracle_dst.tsv"), 0);
    }

    #[test]
    fn a_fixed_time_of_a_gap_runs_at_its_end_once_for_each_time_that_was_left_out() {
        let gap = ("2027-03-28T00:00:00Z", "2027-03-28T03:00:00Z");
        let end = at("2027-03-28T01:00:00Z");
        assert_eq!(starts("0,30 2 * * *", Tz::Europe__Berlin, gap.0, gap.1), [end, end]);
        assert_eq!(starts("*/30 2 * * *", Tz::Europe__Berlin, gap.0, gap.1), Vec::<DateTime<Utc>>::new());
    }

    #[test]
    fn in_a_fold_wildcards_run_again_and_fixed_times_do_not() {
        let fold = ("2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z");
        assert_eq!(starts("30 2 * * *", Tz::Europe__Berlin, fold.0, fold.1), [at("2026-10-25T00:30:00Z")]);
        let both = [at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z")];
        assert_eq!(starts("30 * * * *", Tz::Europe__Berlin, fold.0, "2026-10-25T01:59:00Z"), both);
    }

    #[test]
    fn a_change_of_more_than_three_hours_is_taken_for_a_clock_that_was_set() {
        // Apia had no 30 December 2011.
        let left_out = starts("0 9 * * *", Tz::Pacific__Apia, "2011-12-29T12:00:00Z", "2011-12-31T12:00:00Z");
        assert_eq!(left_out, ["2011-12-29T19:00:00Z", "2011-12-30T19:00:00Z"].map(at));
    }

    #[test]
    fn a_start_in_the_second_pass_of_a_fold_knows_the_first() {
        let until = "2026-10-25T01:59:00Z";
        assert_eq!(
            starts("30 2 * * *", Tz::Europe__Berlin, "2026-10-25T01:10:00Z", until),
            Vec::<DateTime<Utc>>::new()
        );
    }
}

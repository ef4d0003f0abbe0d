//! Recorded instants of Debian's cron.
//!
//! `cron_oracle.tsv` and `cron_oracle_dst.tsv`: expression, zone, start, the instants after it, and
//! a note in odd cases. Fewer than four instants mean that it fires no more.
//! `cron_invalid.tsv`: expression, why it must be refused.

use chrono_tz::Tz;
use cronlatch::job::schedule::{Schedule, parse_zone};

use super::{firings, instant};

#[test]
fn every_recorded_schedule_fires_at_its_instants() {
    check_oracle(include_str!("../data/cron_oracle.tsv"), 4);
}

#[test]
fn every_recorded_schedule_near_a_clock_change_fires_at_its_instants() {
    check_oracle(include_str!("../data/cron_oracle_dst.tsv"), 5);
}

#[test]
fn every_recorded_mistake_is_refused() {
    let rows = include_str!("../data/cron_invalid.tsv").lines();
    let accepted: Vec<_> = rows
        .map(|row| row.split_once('\t').expect("expression and reason"))
        .filter(|(expression, _)| Schedule::parse(expression, Tz::UTC).is_ok())
        .collect();
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

#[test]
fn a_refusal_is_one_line_in_lower_case_without_a_full_stop() {
    for (expression, _) in include_str!("../data/cron_invalid.tsv").lines().filter_map(|row| row.split_once('\t')) {
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

//! Schedules against recorded instants, against other readings of the same text, and against their own rules.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod blackouts;
mod cautions;
mod clock_changes;
mod croner;
mod grammar;
mod instants;
mod naive;
mod oracle;
mod other_sources;
mod passed;
mod properties;
mod relative_days;
mod words;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use cronlatch::job::schedule::Schedule;

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn firings(schedule: &Schedule, start: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    let mut last = Some(start);
    std::iter::from_fn(move || {
        last = last.and_then(|after| schedule.next_after(after));
        last
    })
}

fn utc(expression: &str) -> Schedule {
    Schedule::parse(expression, Tz::UTC).expect(expression)
}

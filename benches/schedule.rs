//! How long it takes to read a schedule, to find its next instant, and to count what has passed.
//!
//! `cargo bench --bench schedule`; `cargo test --bench schedule` runs each case once.

use std::hint::black_box;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use criterion::{Criterion, criterion_group, criterion_main};
use cronlatch::job::schedule::{Blackout, Reading, Schedule};

/// What most jobs have, then what costs more.
const EXPRESSIONS: [(&str, &str); 11] = [
    ("every minute", "* * * * *"),
    ("every 5 minutes", "*/5 * * * *"),
    ("daily", "15 2 * * *"),
    ("workdays", "0 9-17 * * MON-FRI"),
    ("monthly", "0 0 1 * *"),
    ("yearly", "0 0 1 1 *"),
    ("or", "0 0 13 * FRI"),
    ("last day", "0 3 L * *"),
    ("nearest workday", "0 3 15W * *"),
    ("second friday", "0 3 * * FRI#2"),
    ("leap day", "0 0 29 2 *"),
];

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_798_000_000, 0).expect("an instant of 2026")
}

fn berlin(expression: &str) -> Schedule {
    Schedule::parse(expression, Tz::Europe__Berlin).expect("a good expression")
}

fn weekend() -> Blackout {
    let lasts = Duration::from_secs(58 * 60 * 60);
    Blackout::recurring("0 22 * * FRI", lasts, &Reading::in_zone(Tz::Europe__Berlin)).expect("a good blackout")
}

fn read(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("read");
    for (name, expression) in EXPRESSIONS {
        group.bench_function(name, |bench| bench.iter(|| berlin(black_box(expression))));
    }
}

fn next(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("next");
    let mut case = |name: &str, schedule: &Schedule| {
        // From one instant to the next, as a daemon asks.
        let mut after = now();
        group.bench_function(name, |bench| {
            bench.iter(|| {
                after = black_box(schedule).next_after(after).unwrap_or_else(now);
                after
            });
        });
    };
    for (name, expression) in EXPRESSIONS {
        case(name, &berlin(expression));
    }
    let every = Schedule::every(Duration::from_secs(90), Duration::ZERO, Tz::UTC).expect("a good period");
    case("every 90 seconds", &every);
    case("blackout", &berlin("*/5 * * * *").without(vec![weekend()]).expect("workdays are left"));
}

fn passed(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("a year passed");
    let (after, through) = (now() - TimeDelta::days(365), now());
    let mut case = |name: &str, schedule: &Schedule| {
        group.bench_function(name, |bench| bench.iter(|| black_box(schedule).passed(after, through)));
    };
    case("every second", &berlin("* * * * * *"));
    case("every minute", &berlin("* * * * *"));
    case("daily", &berlin("15 2 * * *"));
    let several = Schedule::parse_all(["*/5 * * * *", "0 3 L * *", "30 9 * * MON-FRI"], Tz::Europe__Berlin);
    case("three expressions", &several.expect("good expressions"));
    case("every minute but weekends", &berlin("* * * * *").without(vec![weekend()]).expect("workdays are left"));
    let often = Blackout::recurring("* * * * *", Duration::from_secs(10), &Reading::in_zone(Tz::UTC));
    let often = berlin("* * * * * *").without(vec![often.expect("a good blackout")]);
    case("windows beyond number", &often.expect("fifty seconds of each minute are left"));
}

criterion_group! {
    name = schedule;
    config = Criterion::default().sample_size(50).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = read, next, passed
}
criterion_main!(schedule);

use std::time::Duration;

use super::*;
use crate::daemon::test_job;

const DAY: TimeDelta = TimeDelta::days(1);
const HOUR: TimeDelta = TimeDelta::hours(1);

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("an instant")
}

fn job(schedule: &str, start_delay: u64) -> Arc<Job> {
    Arc::new(Job { start_delay: Duration::from_secs(start_delay), ..test_job::job(schedule) })
}

/// A ticker that is looked at each second.
struct Run {
    ticker: Ticker,
    now: DateTime<Utc>,
}

impl Run {
    fn of(job: &Arc<Job>, from: &str) -> Self {
        Self { ticker: Ticker::new(vec![job.clone()], at(from)), now: at(from) }
    }

    /// What is handed out in so much time.
    fn go_on(&mut self, time: TimeDelta) -> Vec<DateTime<Utc>> {
        let end = self.now + time;
        let mut handed_out = Vec::new();
        while self.now < end {
            self.now += TimeDelta::seconds(1);
            let found = self.ticker.look(self.now);
            assert!(found.passed_over.is_empty(), "passed over at {}", self.now);
            handed_out.extend(found.due.into_iter().map(|due| due.at));
        }
        handed_out
    }

    /// The clock is set, and looked at.
    fn step(&mut self, by: TimeDelta) -> Found {
        self.now += by;
        self.ticker.look(self.now)
    }
}

fn minutes(from: &str, count: i64) -> Vec<DateTime<Utc>> {
    (0..count).map(|n| at(from) + TimeDelta::minutes(n)).collect()
}

#[test]
fn each_trigger_is_handed_out_once_and_in_time() {
    let mut run = Run::of(&job("* * * * *", 0), "2030-01-01T00:00:30Z");
    assert_eq!(run.go_on(HOUR), minutes("2030-01-01T00:01:00Z", 60));
}

#[test]
fn a_clock_that_steps_forward_by_a_day_brings_no_burst_and_no_stall() {
    let mut run = Run::of(&job("* * * * * *", 0), "2030-01-01T00:00:30Z");
    run.go_on(TimeDelta::seconds(5));
    let found = run.step(DAY);
    let due: Vec<_> = found.due.iter().map(|due| due.at).collect();
    assert_eq!(due, [at("2030-01-02T00:00:35Z")], "the newest alone");
    assert_eq!(found.passed_over.len(), 1, "named once");
    assert_eq!(run.go_on(TimeDelta::seconds(2)), [at("2030-01-02T00:00:36Z"), at("2030-01-02T00:00:37Z")]);
}

#[test]
fn a_clock_that_steps_back_by_an_hour_hands_that_hour_out_again_and_never_stands_still() {
    let mut run = Run::of(&job("* * * * *", 0), "2030-01-01T10:00:30Z");
    run.go_on(TimeDelta::minutes(2));
    let found = run.step(-HOUR);
    assert!(found.due.is_empty() && found.passed_over.is_empty());
    assert_eq!(run.go_on(HOUR + HOUR), minutes("2030-01-01T09:03:00Z", 120));
}

#[test]
fn a_clock_that_is_set_back_a_little_hands_nothing_out_twice() {
    let mut run = Run::of(&job("* * * * * *", 0), "2030-01-01T10:00:30Z");
    run.go_on(TimeDelta::seconds(5));
    assert!(run.step(TimeDelta::seconds(-3)).due.is_empty());
    assert_eq!(run.go_on(TimeDelta::seconds(5)), [at("2030-01-01T10:00:36Z"), at("2030-01-01T10:00:37Z")]);
}

#[test]
fn a_suspend_hands_nothing_out_that_it_slept_through() {
    let mut run = Run::of(&job("*/10 * * * *", 0), "2030-01-01T10:00:30Z");
    let found = run.step(TimeDelta::hours(9));
    assert!(found.due.is_empty());
    assert_eq!(found.passed_over.len(), 1);
    assert_eq!(run.go_on(TimeDelta::minutes(10)), [at("2030-01-01T19:10:00Z")]);
}

#[test]
fn a_trigger_that_came_just_before_the_end_of_a_suspend_is_handed_out() {
    let mut run = Run::of(&job("*/10 * * * *", 0), "2030-01-01T00:00:30Z");
    let found = run.step(TimeDelta::hours(10) - TimeDelta::seconds(28));
    assert_eq!((found.due.len(), found.passed_over.len()), (1, 1));
    assert_eq!(found.due[0].at, at("2030-01-01T10:00:00Z"));
    assert_eq!(run.go_on(TimeDelta::minutes(10)), [at("2030-01-01T10:10:00Z")]);
}

#[test]
fn a_look_that_is_a_little_late_still_hands_out() {
    let mut run = Run::of(&job("*/10 * * * *", 0), "2030-01-01T10:09:57Z");
    let found = run.step(TimeDelta::seconds(7));
    assert_eq!(found.due.len(), 1);
    assert_eq!(found.due[0].at, at("2030-01-01T10:10:00Z"));
}

#[test]
fn a_reload_fires_nothing_at_once_and_loses_nothing() {
    let hourly = job("0 * * * *", 0);
    let mut run = Run::of(&hourly, "2030-01-01T09:59:58Z");
    assert_eq!(run.go_on(TimeDelta::seconds(3)), [at("2030-01-01T10:00:00Z")]);
    run.ticker.replan(vec![hourly.clone()]);
    assert!(run.go_on(TimeDelta::minutes(30)).is_empty());
    run.ticker.replan(vec![job("* * * * *", 0)]);
    assert_eq!(run.go_on(TimeDelta::minutes(2)), minutes("2030-01-01T10:31:00Z", 2));
}

#[test]
fn a_job_that_starts_later_keeps_its_instant_over_reloads_and_restarts() {
    let splayed = job("0 * * * *", 600);
    let mut run = Run::of(&splayed, "2030-01-01T10:05:00Z");
    assert!(run.go_on(TimeDelta::minutes(3)).is_empty());
    run.ticker.replan(vec![splayed.clone()]);
    assert_eq!(run.go_on(TimeDelta::minutes(2)), [at("2030-01-01T10:00:00Z")], "due at 10:10");
    assert_eq!(run.go_on(HOUR), [at("2030-01-01T11:00:00Z")]);
    let found = run.step(DAY + TimeDelta::seconds(30));
    assert_eq!((found.due.len(), found.passed_over.len()), (0, 1));
    assert_eq!(run.go_on(HOUR), [at("2030-01-02T12:00:00Z")]);
}

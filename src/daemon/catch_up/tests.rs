use std::collections::BTreeMap;

use super::*;
use crate::job::schedule::Schedule;
use crate::job::{Command, OnCrash, Placement};
use crate::lock::{LeaseTiming, Resource};

const DAY: Duration = Duration::from_secs(86_400);

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("an instant")
}

fn job(schedule: &str, max_age: Duration) -> Job {
    Job {
        name: JobName::new("job").expect("a name"),
        description: None,
        enabled: true,
        schedule: Schedule::parse(schedule, chrono_tz::UTC).expect("a schedule"),
        command: Command::Shell("true".to_owned()),
        resource: Resource::new("job:job").expect("a resource"),
        timing: LeaseTiming::new(Duration::from_secs(180), Duration::from_secs(30), Duration::from_secs(15))
            .expect("meets the rule"),
        overlap: Overlap::Skip,
        timeout: None,
        env: BTreeMap::new(),
        directory: None,
        on_crash: OnCrash::Record,
        start_deadline: Duration::from_secs(60),
        catch_up: CatchUp::Latest,
        catch_up_max_age: max_age,
        start_delay: Duration::ZERO,
        after: Vec::new(),
        placement: Placement::default(),
    }
}

fn progress(watermark: &str, with_row: &[&str]) -> JobProgress {
    JobProgress {
        job: JobName::new("job").expect("a name"),
        target: Target::fleet(),
        caught_up_through: at(watermark),
        settled_through: at(watermark),
        newest_before: None,
        with_row: with_row.iter().map(|text| at(text)).collect(),
        pause: None,
    }
}

fn decided(job: &Job, progress: &JobProgress, now: &str) -> Option<CatchUpPlan> {
    decide(job, progress, Stretch::of(job, at(now)))
}

#[test]
fn the_newest_trigger_without_a_row_runs_late_and_those_before_it_are_missed() {
    let job = job("0 0 * * * *", DAY);
    let plan = decided(&job, &progress("2030-01-01T00:30:00Z", &[]), "2030-01-01T04:30:00Z").expect("there are gaps");
    assert_eq!(plan.late.iter().map(|late| late.scheduled_at).collect::<Vec<_>>(), [at("2030-01-01T04:00:00Z")]);
    let reason = MissedReason::Superseded;
    let (from, to) = (at("2030-01-01T01:00:00Z"), at("2030-01-01T03:00:00Z"));
    let range = TriggerRange { kind: RangeKind::Missed, from, to, count: 3, reason };
    assert_eq!(plan.ranges, [range]);
}

#[test]
fn an_older_trigger_never_runs_after_a_newer_one() {
    let job = job("0 0 * * * *", DAY);
    let progress = progress("2030-01-01T00:30:00Z", &["2030-01-01T04:00:00Z"]);
    let plan = decided(&job, &progress, "2030-01-01T04:30:00Z").expect("there are gaps");
    assert!(plan.late.is_empty());
    assert_eq!((plan.ranges[0].to, plan.ranges[0].count), (at("2030-01-01T03:00:00Z"), 3));
}

#[test]
fn a_trigger_that_is_on_its_way_supersedes_those_before_it() {
    let job = job("0 0 * * * *", DAY);
    let plan = decided(&job, &progress("2030-01-01T00:30:00Z", &[]), "2030-01-01T04:00:02Z").expect("there are gaps");
    assert!(plan.late.is_empty());
    assert_eq!((plan.ranges[0].to, plan.ranges[0].count), (at("2030-01-01T03:00:00Z"), 3));
}

#[test]
fn nothing_missing_is_no_plan() {
    let job = job("0 0 * * * *", DAY);
    let progress = progress("2030-01-01T00:30:00Z", &["2030-01-01T01:00:00Z", "2030-01-01T02:00:00Z"]);
    assert!(decided(&job, &progress, "2030-01-01T02:30:00Z").is_none());
}

#[test]
fn a_job_that_does_not_catch_up_misses_all() {
    let job = Job { catch_up: CatchUp::None, ..job("0 0 * * * *", DAY) };
    let plan = decided(&job, &progress("2030-01-01T00:30:00Z", &[]), "2030-01-01T04:30:00Z").expect("there are gaps");
    assert!(plan.late.is_empty());
    assert_eq!((plan.ranges[0].count, plan.ranges[0].reason), (4, MissedReason::NoCatchUp));
}

#[test]
fn years_of_seconds_are_counted_to_a_bound_and_end_where_they_end() {
    let job = Job { catch_up: CatchUp::None, ..job("* * * * * *", 3 * DAY) };
    let begun = std::time::Instant::now();
    let plan = decided(&job, &progress("2020-01-01T00:00:00Z", &[]), "2030-01-01T00:00:00Z").expect("there are gaps");
    assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());
    let [old, recent] = plan.ranges[..] else { panic!("{:?}", plan.ranges) };
    assert_eq!((old.from, old.to), (at("2020-01-01T00:00:01Z"), at("2029-12-29T00:00:00Z")));
    assert_eq!((recent.from, recent.to), (at("2029-12-29T00:00:01Z"), at("2029-12-31T23:59:55Z")));
    assert!(old.count > 10_000 && recent.count > 10_000);
}

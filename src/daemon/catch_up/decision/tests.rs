use super::*;
use crate::daemon::test_job;
use crate::fleet::{HostName, HostPattern};
use crate::job::schedule::Blackout;
use crate::job::{JobName, Placement};
use crate::store::Pause;
use crate::trigger::Target;

const DAY: Duration = Duration::from_secs(24 * 3_600);
const HOURLY: &str = "0 0 * * * *";

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("an instant")
}

/// An instant of the first day of 2030.
fn clock(time: &str) -> DateTime<Utc> {
    at(&format!("2030-01-01T{time}Z"))
}

fn job(schedule: &str, max_age: Duration) -> Job {
    Job { catch_up_max_age: max_age, ..test_job::job(schedule) }
}

fn all(max_runs: u32, spacing: u64) -> CatchUp {
    CatchUp::All { max_runs, spacing: Duration::from_secs(spacing) }
}

fn progress(watermark: DateTime<Utc>, with_row: &[&str]) -> JobProgress {
    JobProgress {
        job: JobName::new("job").expect("a name"),
        target: Target::fleet(),
        caught_up_through: watermark,
        settled_through: watermark,
        with_row: with_row.iter().map(|time| clock(time)).collect(),
        pause: None,
        edited_at: None,
    }
}

fn site() -> Site {
    Site { host: HostName::new("web-1").expect("a name"), labels: std::collections::BTreeSet::new() }
}

fn decided(job: &Job, progress: &JobProgress, now: DateTime<Utc>) -> Option<CatchUpPlan> {
    decide(job, &site(), progress, Bounds::of(job, now, Settle::GivenUp))
}

fn late(plan: &CatchUpPlan) -> Vec<DateTime<Utc>> {
    plan.late.iter().map(|late| late.scheduled_at).collect()
}

fn only_range(plan: &CatchUpPlan) -> (RangeKind, DateTime<Utc>, DateTime<Utc>, u64, MissedReason) {
    let [range] = plan.ranges[..] else { panic!("{:#?}", plan.ranges) };
    (range.kind, range.from, range.to, range.count, range.reason)
}

#[test]
fn the_newest_trigger_without_a_row_runs_late_and_those_before_it_are_missed() {
    let job = job(HOURLY, DAY);
    let plan = decided(&job, &progress(clock("00:30:00"), &[]), clock("04:30:00")).expect("there are gaps");
    assert_eq!(late(&plan), [clock("04:00:00")]);
    let missed = (RangeKind::Missed, clock("01:00:00"), clock("03:00:00"), 3, MissedReason::Superseded);
    assert_eq!(only_range(&plan), missed);
}

#[test]
fn an_older_trigger_never_runs_after_a_newer_one() {
    let job = job(HOURLY, DAY);
    let progress = progress(clock("00:30:00"), &["04:00:00"]);
    let plan = decided(&job, &progress, clock("04:30:00")).expect("there are gaps");
    assert!(plan.late.is_empty());
    assert_eq!((plan.ranges[0].to, plan.ranges[0].count), (clock("03:00:00"), 3));
}

#[test]
fn a_trigger_that_is_on_its_way_supersedes_those_before_it() {
    let job = job(HOURLY, DAY);
    let plan = decided(&job, &progress(clock("00:30:00"), &[]), clock("04:00:02")).expect("there are gaps");
    assert!(plan.late.is_empty());
    assert_eq!((plan.ranges[0].to, plan.ranges[0].count), (clock("03:00:00"), 3));
}

#[test]
fn nothing_missing_is_no_plan() {
    let progress = progress(clock("00:30:00"), &["01:00:00", "02:00:00"]);
    assert!(decided(&job(HOURLY, DAY), &progress, clock("02:30:00")).is_none());
}

#[test]
fn a_job_that_does_not_catch_up_misses_all() {
    let job = Job { catch_up: CatchUp::None, ..job(HOURLY, DAY) };
    let plan = decided(&job, &progress(clock("00:30:00"), &[]), clock("04:30:00")).expect("there are gaps");
    assert!(plan.late.is_empty());
    assert_eq!((plan.ranges[0].count, plan.ranges[0].reason), (4, MissedReason::NoCatchUp));
}

#[test]
fn what_is_older_than_the_catch_up_goes_back_is_missed_in_one_row_with_the_rest() {
    let job = job(HOURLY, Duration::from_secs(2 * 3_600));
    let plan = decided(&job, &progress(clock("00:30:00"), &[]), clock("09:30:00")).expect("there are gaps");
    assert_eq!(late(&plan), [clock("09:00:00")]);
    let missed = (RangeKind::Missed, clock("01:00:00"), clock("08:00:00"), 8, MissedReason::Superseded);
    assert_eq!(only_range(&plan), missed);
    let job = Job { catch_up_max_age: Duration::from_secs(600), ..job };
    let plan = decided(&job, &progress(clock("00:30:00"), &[]), clock("09:30:00")).expect("there are gaps");
    assert!(plan.late.is_empty());
    let missed = (RangeKind::Missed, clock("01:00:00"), clock("09:00:00"), 9, MissedReason::TooOld);
    assert_eq!(only_range(&plan), missed);
}

#[test]
fn catch_up_of_all_runs_the_newest_ones_oldest_first_with_their_spacing() {
    let job = Job { catch_up: all(3, 10), ..job(HOURLY, DAY) };
    let plan = decided(&job, &progress(clock("00:30:00"), &["05:00:00"]), clock("08:30:00")).expect("there are gaps");
    assert_eq!(late(&plan), [clock("06:00:00"), clock("07:00:00"), clock("08:00:00")]);
    let pauses: Vec<_> = plan.late.iter().map(|late| late.not_before.map_or(0, |pause| pause.as_secs())).collect();
    assert_eq!(pauses, [0, 10, 20]);
    assert!(plan.late.iter().all(|late| late.waits >= DAY), "each waits for those before it");
    assert!(plan.late.is_sorted_by_key(|late| late.run), "taken in the order of their ids");
    let missed = (RangeKind::Missed, clock("01:00:00"), clock("04:00:00"), 4, MissedReason::TooMany);
    assert_eq!(only_range(&plan), missed);
}

#[test]
fn catch_up_of_all_is_bounded_by_age_too_and_takes_older_ones_than_have_run() {
    let job = Job { catch_up: all(100, 0), ..job(HOURLY, Duration::from_secs(3 * 3_600)) };
    let plan = decided(&job, &progress(clock("00:30:00"), &["08:00:00"]), clock("08:30:00")).expect("there are gaps");
    assert_eq!(late(&plan), [clock("06:00:00"), clock("07:00:00")]);
    assert!(plan.late.iter().all(|late| late.not_before.is_none()));
    let missed = (RangeKind::Missed, clock("01:00:00"), clock("05:00:00"), 5, MissedReason::TooOld);
    assert_eq!(only_range(&plan), missed);
    let few = Job { catch_up: all(100, 0), ..job };
    let plan = decided(&few, &progress(clock("06:30:00"), &[]), clock("08:30:00")).expect("there are gaps");
    assert_eq!((late(&plan).len(), plan.ranges.len()), (2, 0), "nothing is missed");
}

#[test]
fn a_year_of_minutes_is_one_late_run_and_one_row_that_counts_them_all() {
    let job = job("* * * * *", Duration::from_secs(300));
    let plan = decided(&job, &progress(at("2029-01-01T00:00:30Z"), &[]), clock("00:00:40")).expect("there are gaps");
    assert_eq!(late(&plan), [clock("00:00:00")]);
    let (kind, from, to, count, _) = only_range(&plan);
    assert_eq!((kind, from, to), (RangeKind::Missed, at("2029-01-01T00:01:00Z"), at("2029-12-31T23:59:00Z")));
    assert_eq!(count, 365 * 24 * 60 - 1);
}

#[test]
fn a_year_of_seconds_is_counted_as_well() {
    let job = Job { catch_up: all(5, 0), ..job("* * * * * *", Duration::from_secs(300)) };
    // Counted one by one it would take minutes.
    let plan = decided(&job, &progress(at("2029-01-01T00:00:00Z"), &[]), clock("00:00:00")).expect("there are gaps");
    assert_eq!(late(&plan).len(), 5);
    assert_eq!(only_range(&plan).3, 365 * 24 * 3_600 - 5 - 5, "but those of the last five seconds");
}

#[test]
fn what_came_in_a_pause_is_paused_and_does_not_run_late_when_it_is_over() {
    let job = job(HOURLY, DAY);
    let pause = Some(Pause { from: clock("01:30:00"), until: Some(clock("05:30:00")) });
    let progress = JobProgress { pause, ..progress(clock("00:30:00"), &["01:00:00"]) };
    let plan = decided(&job, &progress, clock("05:40:00")).expect("there are gaps");
    assert!(plan.late.is_empty());
    let paused = (RangeKind::Paused, clock("02:00:00"), clock("05:00:00"), 4, MissedReason::Paused);
    assert_eq!(only_range(&plan), paused);
    // What is missing after it is caught up as ever.
    let plan = decided(&job, &progress, clock("08:10:00")).expect("there are gaps");
    assert_eq!(late(&plan), [clock("08:00:00")]);
    let kinds: Vec<_> = plan.ranges.iter().map(|range| (range.kind, range.count)).collect();
    assert_eq!(kinds, [(RangeKind::Paused, 4), (RangeKind::Missed, 2)]);
}

#[test]
fn a_pause_that_goes_on_is_left_alone_and_what_was_missing_before_it_is_settled() {
    let job = job(HOURLY, DAY);
    for until in [None, Some(clock("09:00:00"))] {
        let pause = Some(Pause { from: clock("03:10:00"), until });
        let progress = JobProgress { pause, ..progress(clock("01:30:00"), &[]) };
        let plan = decided(&job, &progress, clock("06:10:00")).expect("there are gaps");
        assert_eq!((plan.through, plan.late.len()), (clock("03:10:00"), 0));
        let missed = (RangeKind::Missed, clock("02:00:00"), clock("03:00:00"), 2, MissedReason::Paused);
        assert_eq!(only_range(&plan), missed);
    }
}

#[test]
fn what_a_blackout_took_is_recorded_as_such_and_not_caught_up() {
    let dark = Blackout::between(clock("02:00:00"), clock("04:00:00"));
    let mut job = job(HOURLY, DAY);
    job.schedule = job.schedule.without(vec![dark]).expect("it leaves some");
    let progress = progress(clock("00:30:00"), &["01:00:00", "04:00:00"]);
    let plan = decided(&job, &progress, clock("04:30:00")).expect("there is something");
    assert!(plan.late.is_empty());
    let left_out = (RangeKind::Blackout, clock("02:00:00"), clock("03:00:00"), 2, MissedReason::Blackout);
    assert_eq!(only_range(&plan), left_out);
}

#[test]
fn a_job_that_starts_later_is_not_late_before() {
    let job = Job { start_delay: Duration::from_secs(600), ..job(HOURLY, DAY) };
    let progress = progress(clock("00:30:00"), &["01:00:00"]);
    assert!(decided(&job, &progress, clock("02:09:00")).is_none(), "due at 02:10");
    let plan = decided(&job, &progress, clock("02:11:00")).expect("nobody took it");
    assert_eq!(late(&plan), [clock("02:00:00")]);
    let plan = decided(&job, &progress, clock("03:09:00")).expect("nobody took it");
    assert_eq!(late(&plan), [clock("02:00:00")], "the next one is not due yet");
}

#[test]
fn a_host_that_may_not_run_the_job_settles_only_what_is_too_old_for_any() {
    let hosts = vec![HostPattern::new("db-*").expect("a pattern")];
    let placement = Placement { hosts, ..Placement::default() };
    let job = Job { placement, ..job(HOURLY, Duration::from_secs(2 * 3_600)) };
    let progress = progress(clock("00:30:00"), &[]);
    let plan = decided(&job, &progress, clock("02:20:00"));
    assert!(plan.is_none(), "{plan:?}");
    let plan = decided(&job, &progress, clock("04:30:00")).expect("some are too old");
    assert_eq!((plan.late.len(), plan.through), (0, clock("02:30:00")));
    let missed = (RangeKind::Missed, clock("01:00:00"), clock("02:00:00"), 2, MissedReason::NoHost);
    assert_eq!(only_range(&plan), missed);
}

#[test]
fn a_watermark_that_a_wrong_clock_left_in_the_future_is_put_right() {
    let plan = decided(&job(HOURLY, DAY), &progress(at("2030-01-02T00:00:00Z"), &[]), clock("04:30:00"));
    let plan = plan.expect("it is to be moved");
    assert_eq!((plan.from, plan.through), (at("2030-01-02T00:00:00Z"), clock("04:29:55")));
    assert!(plan.ranges.is_empty() && plan.late.is_empty() && plan.rows_seen == 0);
    let nearly = progress(clock("04:30:20"), &[]);
    assert!(decided(&job(HOURLY, DAY), &nearly, clock("04:30:00")).is_none(), "clocks differ by so much");
}

#[test]
fn rows_at_instants_of_another_version_of_the_job_hide_no_gap() {
    let progress = progress(clock("00:30:00"), &["01:30:00", "02:30:00", "03:30:00"]);
    let plan = decided(&job(HOURLY, DAY), &progress, clock("03:40:00")).expect("there are gaps");
    assert!(plan.late.is_empty(), "a newer one has run");
    let missed = (RangeKind::Missed, clock("01:00:00"), clock("03:00:00"), 3, MissedReason::Superseded);
    assert_eq!(only_range(&plan), missed);
}

#[test]
fn a_job_that_starts_later_is_as_old_as_it_is_overdue() {
    let job = Job { start_delay: Duration::from_secs(2_400), ..job(HOURLY, Duration::from_secs(1_800)) };
    let plan = decided(&job, &progress(clock("09:30:00"), &[]), clock("10:41:00")).expect("nobody took it");
    assert_eq!(late(&plan), [clock("10:00:00")], "due at 10:40");
}

#[test]
fn a_sweep_that_only_looks_leaves_triggers_alone_that_may_wait_for_room() {
    let job = Job { start_deadline: Duration::from_secs(300), ..job(HOURLY, DAY) };
    let progress = progress(clock("03:30:00"), &[]);
    let looking = |now: &str| decide(&job, &site(), &progress, Bounds::of(&job, clock(now), Settle::Neglected));
    assert!(looking("04:04:00").is_none());
    assert_eq!(looking("04:05:10").map(|plan| late(&plan)), Some(vec![clock("04:00:00")]));
}

#[test]
fn a_late_run_waits_no_longer_than_until_the_next_trigger_which_it_must_not_follow() {
    let job = Job { start_deadline: Duration::from_secs(3_600), ..job(HOURLY, DAY) };
    let plan = decided(&job, &progress(clock("03:30:00"), &[]), clock("04:50:00")).expect("there is a gap");
    assert_eq!(plan.late[0].waits, Duration::from_secs(600));
    assert!(plan.only_newest);
}

#[test]
fn rows_that_a_wrong_clock_left_in_the_future_are_no_newer_runs() {
    let mut progress = progress(clock("12:30:00"), &[]);
    progress.with_row = vec![at("2030-01-02T13:00:00Z")];
    let plan = decided(&job(HOURLY, DAY), &progress, clock("13:10:00")).expect("there is a gap");
    assert_eq!(late(&plan), [clock("13:00:00")]);
}

#[test]
fn what_lay_before_an_edit_is_missed_and_never_run_late() {
    let progress = JobProgress { edited_at: Some(clock("04:00:05")), ..progress(clock("03:59:55"), &[]) };
    let plan = decided(&job(HOURLY, DAY), &progress, clock("04:10:00")).expect("there is something");
    assert!(plan.late.is_empty());
    let missed = (RangeKind::Missed, clock("04:00:00"), clock("04:00:00"), 1, MissedReason::Edited);
    assert_eq!(only_range(&plan), missed);
}

#[test]
fn watermarks_move_although_nothing_is_missing_so_that_every_sweep_sees_all_rows() {
    let minutes: Vec<_> = (1..=40).map(|minute| format!("00:{minute:02}:00")).collect();
    let rows: Vec<_> = minutes.iter().map(String::as_str).collect();
    let every_minute = job("* * * * *", DAY);
    let plan = decided(&every_minute, &progress(clock("00:00:30"), &rows), clock("00:40:30")).expect("it moves");
    assert_eq!((plan.through, plan.rows_seen, plan.ranges.len()), (clock("00:40:25"), 40, 0));
    assert!(decided(&every_minute, &progress(clock("00:30:30"), &rows[30..]), clock("00:40:30")).is_none());
    let daily = job("0 0 23 * * *", DAY);
    assert!(decided(&daily, &progress(clock("00:00:30"), &[]), clock("05:00:00")).is_none());
    assert!(decided(&daily, &progress(clock("00:00:30"), &[]), clock("07:00:00")).is_some());
}

#[test]
fn a_pause_that_took_nothing_is_over_when_it_is_over() {
    let daily = job("0 0 23 * * *", DAY);
    let pause = Some(Pause { from: clock("01:00:00"), until: Some(clock("02:00:00")) });
    let progress = JobProgress { pause, ..progress(clock("00:30:00"), &[]) };
    let plan = decided(&daily, &progress, clock("02:10:00")).expect("the watermark passes it");
    assert!(plan.ranges.is_empty() && plan.through > clock("02:00:00"));
}

#[test]
fn a_blackout_in_a_pause_is_recorded_and_one_that_goes_on_waits_for_its_end() {
    let mut job = job(HOURLY, DAY);
    let dark = Blackout::between(clock("02:00:00"), clock("04:00:00"));
    job.schedule = job.schedule.without(vec![dark]).expect("it leaves some");
    let pause = Some(Pause { from: clock("00:40:00"), until: Some(clock("05:30:00")) });
    let paused = JobProgress { pause, ..progress(clock("00:30:00"), &[]) };
    let plan = decided(&job, &paused, clock("06:10:00")).expect("there is something");
    let found: Vec<_> = plan.ranges.iter().map(|range| (range.kind, range.count)).collect();
    assert_eq!(found, [(RangeKind::Blackout, 2), (RangeKind::Paused, 3)], "01, 04 and 05 in the pause");
    assert_eq!(late(&plan), [clock("06:00:00")]);
    let dark_now = progress(clock("00:30:00"), &["01:00:00"]);
    assert!(decided(&job, &dark_now, clock("03:10:00")).is_none());
}

#[test]
fn a_daemon_that_is_alone_leaves_a_job_for_later_that_was_due_just_now() {
    let job = job(HOURLY, DAY);
    let alone = |now: DateTime<Utc>| {
        let bounds = Bounds::of(&job, now, Settle::UpTo(now - TimeDelta::seconds(5)));
        decide(&job, &site(), &progress(clock("00:30:00"), &[]), bounds)
    };
    assert!(alone(clock("04:00:03")).is_none());
    assert_eq!(alone(clock("04:00:06")).map(|plan| late(&plan)), Some(vec![clock("04:00:00")]));
}

#[test]
fn a_pause_that_ends_in_a_blackout_that_goes_on_is_accounted_for_with_it_and_once() {
    let mut job = job(HOURLY, DAY);
    let dark = [("02:00:00", "03:30:00"), ("05:00:00", "09:00:00")];
    let dark = dark.map(|(from, until)| Blackout::between(clock(from), clock(until)));
    job.schedule = job.schedule.without(dark.into()).expect("they leave some");
    let pause = Some(Pause { from: clock("01:30:00"), until: Some(clock("06:30:00")) });
    let before = JobProgress { pause, ..progress(clock("00:30:00"), &["01:00:00"]) };
    let early = decided(&job, &before, clock("07:10:00"));
    assert!(early.is_none(), "{early:?}");
    let plan = decided(&job, &before, clock("09:10:00")).expect("all is over");
    let found: Vec<_> = plan.ranges.iter().map(|range| (range.kind, range.count)).collect();
    assert_eq!(found, [(RangeKind::Blackout, 6), (RangeKind::Paused, 1)], "02, 03, 05 to 08; 04 in the pause");
    assert_eq!(late(&plan), [clock("09:00:00")]);
}

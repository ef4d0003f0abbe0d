use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

use crate::support::ledger::{Entries, Ledger, Mark};
use crate::support::scratch::{Farewell, Scratch};
use crate::support::wait::{PATIENCE, eventually};

/// A ledger of lines `MARK RUN TOKEN`, all under one lock, each run a trigger of its own.
fn entries(lines: &[&str]) -> Entries {
    let line = |line: &&str| {
        let [mark, run, token] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        format!("{mark}\tjob:a\t{token}\ta\tat-{run}\t1\t{run}\thost\t1.00\t7\n")
    };
    lines.iter().map(line).collect::<String>().parse().unwrap()
}

fn run(ledger: &Ledger, shell: &str, run: &str) -> Child {
    let env = [
        ("CRONLATCH_LOCK", "job:a"),
        ("CRONLATCH_FENCING_TOKEN", "41"),
        ("CRONLATCH_JOB", "a"),
        ("CRONLATCH_SCHEDULED_AT", "2026-01-01T00:00:00Z"),
        ("CRONLATCH_ATTEMPT", "1"),
        ("CRONLATCH_RUN_ID", run),
        ("CRONLATCH_HOST", "web-1"),
    ];
    let folder = ledger.path().parent().unwrap();
    Command::new("/bin/sh").args(["-c", shell]).envs(env).current_dir(folder).process_group(0).spawn().unwrap()
}

#[test]
fn runs_one_after_another_are_no_overlap() {
    let good = entries(&["start x 1", "beat x 1", "end x 1", "start y 2", "beat y 2", "start z 3", "end z 3"]);
    good.assert_locks_held();
    good.assert_each_trigger_ran_once();
    assert_eq!(good.runs_by_host().get("host"), Some(&3));
}

#[test]
fn a_run_that_lives_on_after_the_next_grant_is_an_overlap() {
    let bad = entries(&["start x 1", "start y 2", "beat x 1", "beat x 1", "end y 2"]);
    assert_eq!(bad.overlaps_per_lock().get("job:a").map(Vec::len), Some(1));
}

#[test]
fn a_child_that_outlives_its_run_into_the_next_is_an_overlap() {
    let bad = entries(&["start x 1", "end x 1", "start y 2", "end y 2", "beat x 1"]);
    assert!(!bad.overlaps_per_lock().is_empty());
}

#[test]
fn runs_under_different_locks_may_overlap() {
    let other = "start\tjob:b\t9\tb\tat\t1\tr\thost\t1.00\t8\n";
    let text =
        format!("start\tjob:a\t1\ta\tat\t1\tq\thost\t1.00\t7\n{other}end\tjob:a\t1\ta\tat\t1\tq\thost\t1.02\t7\n");
    let entries: Entries = text.parse().unwrap();
    assert!(entries.overlaps_per_lock().is_empty());
}

#[test]
fn a_token_that_falls_or_repeats_is_found() {
    assert!(!entries(&["start x 2", "end x 2", "start y 1"]).tokens_rise_in_order_of_start());
    assert!(!entries(&["start x 2", "end x 2", "start y 2"]).tokens_rise_in_order_of_start());
    assert!(entries(&["start x 2", "end x 2", "start y 9"]).tokens_rise_in_order_of_start());
}

#[test]
fn a_retry_keeps_the_token_of_its_trigger() {
    let text = "start\tl\t5\ta\tat\t1\tr1\th\t1.00\t7\nend\tl\t5\ta\tat\t1\tr1\th\t1.00\t7\nstart\tl\t5\ta\tat\t2\tr2\th\t1.00\t7\n";
    text.parse::<Entries>().unwrap().assert_locks_held();
}

#[test]
fn a_trigger_that_ran_twice_is_counted() {
    let text = "start\tl\t5\ta\tat\t1\tr1\th\t1.00\t7\nstart\tl\t6\ta\tat\t1\tr2\tk\t1.00\t7\n";
    let runs = text.parse::<Entries>().unwrap().runs_per_trigger();
    assert_eq!(runs.into_values().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_job_writes_what_its_environment_says() {
    let scratch = Scratch::new("ledger", Farewell::Kill);
    let ledger = Ledger::new(scratch.path());
    let status = run(&ledger, &ledger.job_then(Duration::from_millis(60), "exit 3"), "r-1").wait().unwrap();
    assert_eq!(status.code(), Some(3));
    let entries = ledger.read();
    let marks: Vec<_> = entries.iter().map(|entry| entry.mark).collect();
    assert_eq!(marks, [Mark::Start, Mark::Beat, Mark::Beat, Mark::Beat, Mark::End]);
    let first = entries.iter().next().unwrap();
    assert_eq!((first.lock.as_str(), first.token, first.host.as_str()), ("job:a", 41, "web-1"));
    assert!(first.at > Duration::from_secs(1), "{:?}", first.at);
}

#[test]
fn concurrent_jobs_never_break_one_anothers_lines() {
    let scratch = Scratch::new("ledger", Farewell::Kill);
    let ledger = Ledger::new(scratch.path());
    let jobs: Vec<_> = (0..8).map(|n| run(&ledger, &ledger.job(Duration::from_millis(200)), &n.to_string())).collect();
    for mut job in jobs {
        assert!(job.wait().unwrap().success());
    }
    assert_eq!(ledger.read().iter().count(), 8 * 12);
    assert!(!ledger.read().overlaps_per_lock().is_empty(), "eight jobs at once under one lock do overlap");
}

#[test]
fn a_stubborn_job_and_its_child_outlive_sigterm_but_not_the_scratch_folder() {
    let scratch = Scratch::new("ledger", Farewell::Kill);
    let folder = scratch.path().to_owned();
    let ledger = Ledger::new(&folder);
    let mut job = run(&ledger, &ledger.stubborn_job(), "r-1");
    let pids = || ledger.read().marked(Mark::Beat).map(|entry| entry.pid).collect::<std::collections::BTreeSet<_>>();
    eventually("job and child beat", PATIENCE, || pids().len() == 2);
    let own = rustix::process::Pid::from_child(&job);
    rustix::process::kill_process(own, rustix::process::Signal::TERM).unwrap();
    eventually("the job notes it", PATIENCE, || ledger.read().marked(Mark::Term).next().is_some());
    let beats = ledger.read().marked(Mark::Beat).count();
    eventually("both go on", PATIENCE, || ledger.read().marked(Mark::Beat).count() > beats + 4);
    let pids = pids();
    drop(scratch);
    assert!(!folder.exists());
    job.wait().unwrap();
    for pid in pids {
        assert!(!std::path::Path::new(&format!("/proc/{pid}/cwd")).exists(), "{pid} lives");
    }
}

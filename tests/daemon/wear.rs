//! What thousands of runs, stops at any instant, and jobs that fail leave behind: nothing.

use std::fs;
use std::time::Duration;

use chrono::Utc;
use rustix::process::Signal;

use crate::jobs::short;
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually};

/// What a daemon and the processes below it have.
#[derive(Debug)]
struct Belongings {
    descriptors: usize,
    resident_kib: u64,
    zombies: usize,
}

fn belongings(pid: i32) -> Belongings {
    let family: Vec<i32> = family_of(pid);
    let status = |pid: i32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |pid: i32, name: &str| -> Option<String> {
        status(pid).lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    let resident = |pid: i32| field(pid, "VmRSS:")?.split(' ').next()?.parse::<u64>().ok();
    let keeps = |pid: i32| {
        let name = field(pid, "Name:").unwrap_or_default();
        pid == family[0] || name == "cronlatch-fork"
    };
    let lasting: Vec<i32> = family.iter().copied().filter(|pid| keeps(*pid)).collect();
    let descriptors_of = |pid: &i32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    Belongings {
        descriptors: lasting.iter().map(descriptors_of).sum(),
        resident_kib: lasting.iter().filter_map(|pid| resident(*pid)).sum(),
        zombies: family.iter().filter(|pid| field(**pid, "State:").is_some_and(|state| state.starts_with('Z'))).count(),
    }
}

/// A process and all below it.
fn family_of(pid: i32) -> Vec<i32> {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        next += 1;
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().filter_map(Result::ok);
        let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<i32> = children
            .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect();
        family.extend(children);
    }
    family
}

#[test]
fn two_thousand_runs_leave_no_zombie_no_descriptor_and_no_memory() {
    const JOBS: usize = 60;
    const RUNS: usize = 2_000;
    /// Up to 64 free shims are kept for the next runs, each with a channel and a descriptor of its process.
    const FREE_SHIMS: usize = 2 * 64 + 8;
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let mut schedule = Schedule::new(&fleet, &database).timing(20_000, 4_000, 2_000);
    for job in 0..JOBS {
        schedule = schedule.job(&format!("job-{job}"), EVERY_SECOND, "echo $CRONLATCH_JOB", &[]);
    }
    fleet.start(&["a"], |host| schedule.on(host));
    fleet.wait_until_up();
    let ended =
        || -> usize { database.query("SELECT count(*)::text FROM runs WHERE state = 'succeeded'")[0].parse().unwrap() };
    // Everything that is made once has been made.
    eventually("the first runs have ended", 2 * PATIENCE, || ended() >= 400);
    let pid = fleet["a"].pid();
    let before = belongings(pid);
    let target = ended() + RUNS;
    eventually("2,000 more have ended", 6 * PATIENCE, || ended() >= target);
    // Runs that are under way have descriptors of their own: a moment without any.
    let mut after = belongings(pid);
    eventually("nothing is left of them", PATIENCE, || {
        after = belongings(pid);
        after.zombies == 0 && after.descriptors <= before.descriptors + FREE_SHIMS
    });
    let grown = after.resident_kib.saturating_sub(before.resident_kib);
    assert!(grown <= 5 * 1_024, "{grown} KiB more than {before:?}: {after:?}");
    fleet.drain(PATIENCE);
}

#[test]
fn a_term_at_any_instant_lets_no_job_start_after_the_end_and_leaves_no_lock_held() {
    let rounds = if std::env::var_os("CRONLATCH_TEST_LONG").is_some() { 500 } else { 12 };
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let line = short(&fleet);
    let mut schedule = Schedule::new(&fleet, &database);
    for job in 0..5 {
        schedule = schedule.job(&format!("job-{job}"), EVERY_SECOND, &line, &[]);
    }
    fleet.start(&["a"], |host| schedule.on(host));
    for round in 0..rounds {
        if round > 0 {
            fleet.launch("a");
        }
        let mark = fleet["a"].log().mark();
        fleet["a"].wait_for_event("daemon.started", |_| true);
        fleet["a"].wait_for_event_after(mark.min(1), "run.started", |_| true);
        // From a little before a second to some time after it, where claims and starts are.
        let offset = Duration::from_millis(930 + u64::from(round_robin(round, 17)) * 10);
        let now = Duration::from_millis(Utc::now().timestamp_subsec_millis().into());
        let wait = (offset + Duration::from_secs(1)).saturating_sub(now);
        let until = std::time::Instant::now() + Duration::from_millis((wait.as_millis() % 1_000) as u64);
        eventually("the instant", PATIENCE, || std::time::Instant::now() >= until);
        fleet["a"].signal(Signal::TERM);
        assert!(fleet["a"].wait_exit(PATIENCE).success());
        let started = fleet.ledger().read().marked(Mark::Start).count();
        assert_eq!(database.held_locks(), Vec::<String>::new(), "round {round}");
        let open: Vec<_> =
            database.runs().into_iter().filter(|run| ["claimed", "running"].contains(&&*run.state)).collect();
        assert!(open.is_empty(), "round {round}: {open:#?}");
        let ended = fleet.ledger().read();
        assert_eq!(ended.marked(Mark::Start).count(), started, "round {round}: a job started after the end");
    }
    fleet.ledger().read().assert_locks_held();
    fleet.ledger().read().assert_each_trigger_ran_once();
}

/// Spreads rounds over so many places, neighbours apart.
fn round_robin(round: u32, places: u32) -> u32 {
    round * 7 % places
}

#[test]
fn jobs_that_fail_in_any_way_neither_delay_nor_stop_another() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let fifo = fleet.folder().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let hangs = format!("env_file = {fifo:?}");
    let schedule = Schedule::new(&fleet, &database)
        .timing(20_000, 4_000, 2_000)
        .job("good", EVERY_SECOND, &short(&fleet), &[])
        .job("fails", EVERY_SECOND, "exit 3", &[])
        .job("dies", EVERY_SECOND, "kill -SEGV $$", &[])
        .job("hangs", EVERY_SECOND, "true", &[&hangs])
        .job("forks", EVERY_SECOND, "for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done", &[])
        .job("floods", EVERY_SECOND, "yes | head -c 5000000", &[])
        .table("missing", EVERY_SECOND, &["command = [\"/no/such/program\"]"])
        .table("unknown", EVERY_SECOND, &["command = [\"true\"]", "user = \"no-such-user\""]);
    fleet.start(&["a"], |host| schedule.on(host));
    let good = || database.runs_of("good").into_iter().filter(|run| run.state == "succeeded").count();
    eventually("the good one has run often", PATIENCE, || good() >= 8);
    let runs = database.runs_of("good");
    let odd: Vec<_> = runs.iter().filter(|run| run.is_final() && run.state != "succeeded").collect();
    assert!(odd.is_empty(), "{odd:#?}");
    for job in ["fails", "dies", "missing", "unknown"] {
        assert!(database.runs_of(job).iter().filter(|run| run.state == "failed").count() >= 3, "{job}");
    }
    let late = runs.iter().filter_map(|run| Some(run.claimed_at? - run.scheduled_at)).max().unwrap();
    assert!(late < chrono::TimeDelta::seconds(2), "the good one was {late} late");
    fleet.drain(PATIENCE);
}

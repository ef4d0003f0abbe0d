//! What becomes of a job's process, and what it is told.

use std::collections::BTreeMap;

use crate::jobs::{first_run_endures, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::machine::is_alive;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually_some};

#[test]
fn a_job_that_takes_longer_than_its_timeout_gets_term_then_kill_and_has_failed() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let line = first_run_endures(&fleet, "job");
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &line, &["timeout = \"1s\""]);
    fleet.start(&["a"], |host| schedule.on(host));
    let running = wait_for_beat(&fleet, "job");
    let ended = database.wait_for_run("job", "is stopped", |run| run.id == running.run && run.is_final());
    assert_eq!((ended.state.as_str(), ended.reason.as_deref(), ended.signal), ("failed", Some("timeout"), Some(9)));
    let said = fleet["a"].wait_for_event("run.timed_out", |event| event["run"] == running.run.as_str());
    assert!(said["duration_ms"].as_u64().unwrap() >= 1_000, "{said}");
    assert!(!is_alive(running.pid));
    let entries = fleet.ledger().read();
    let term = entries.of_run(&running.run).find(|entry| entry.mark == Mark::Term).unwrap().at;
    let grace = entries.of_run(&running.run).last().unwrap().at.saturating_sub(term);
    assert!(grace >= schedule.kill_grace() / 2, "KILL came after {grace:?}");
    database.wait_for_run("job", "goes on ticking", |run| run.state == "succeeded");
}

#[test]
fn a_job_ends_with_its_process_and_what_it_left_in_the_background_is_dead() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, "sleep 600 & echo $!; echo done", &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let ended = database.wait_for_run("job", "ends", |run| run.is_final());
    assert_eq!((ended.state.as_str(), ended.exit_code), ("succeeded", Some(0)));
    let lines = output_of(&fleet, &ended.id, 2);
    assert_eq!(lines[1], "done");
    assert!(!is_alive(lines[0].parse().unwrap()), "what it left behind lives");
    assert_eq!(ended.row["output_tail"], format!("{}\ndone\n", lines[0]));
    // It would be 600 s otherwise; the next trigger has had the lock since.
    database.wait_for_run("job", "runs again", |run| run.token > ended.token && run.is_final());
}

#[test]
fn a_missing_program_has_failed_with_its_path_and_the_cause() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let missing = "command = [\"/opt/backup/no-such-program\", \"--full\"]";
    let schedule = Schedule::new(&fleet, &database).table("program", EVERY_SECOND, &[missing]).table(
        "directory",
        EVERY_SECOND,
        &["command = [\"true\"]", "directory = \"/no/such/folder\""],
    );
    fleet.start(&["a"], |host| schedule.on(host));
    for (job, path) in [("program", "/opt/backup/no-such-program"), ("directory", "/no/such/folder")] {
        let failed = database.wait_for_run(job, "fails", |run| run.is_final());
        assert_eq!((failed.state.as_str(), failed.exit_code, failed.signal), ("failed", None, None), "{failed:#?}");
        let reason = failed.reason.unwrap();
        assert!(reason.contains(path) && reason.contains("No such file or directory"), "{reason}");
        let said = fleet["a"].wait_for_event("run.failed", |event| event["run"] == failed.id.as_str());
        assert_eq!(said["reason"], reason.as_str());
        assert!(failed.row["started_at"].is_null());
    }
    assert_eq!(fleet["a"].log().stray_lines(), Vec::<String>::new());
}

#[test]
fn an_exit_code_other_than_zero_and_a_signal_of_somebody_else_have_failed() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job("code", EVERY_SECOND, "echo so far; exit 3", &[]).job(
        "signal",
        EVERY_SECOND,
        "kill -s USR1 $$",
        &[],
    );
    fleet.start(&["a"], |host| schedule.on(host));
    for (job, code, signal) in [("code", Some(3), None), ("signal", None, Some(10))] {
        let failed = database.wait_for_run(job, "fails", |run| run.is_final());
        assert_eq!((failed.state.as_str(), failed.exit_code, failed.signal), ("failed", code, signal), "{failed:#?}");
        fleet["a"].wait_for_event("run.failed", |event| event["run"] == failed.id.as_str());
    }
}

#[test]
fn a_job_is_told_which_run_it_is_and_not_what_the_daemon_knows() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job(
        "job",
        EVERY_SECOND,
        "env; echo directory=$PWD; umask",
        &["lock = \"its lock\"", "env = { COLOUR = \"blue\", HOME = \"/nowhere\" }"],
    );
    fleet.configure("a", &schedule.on("a"));
    fleet.launch_with("a", &[("PGPASSWORD", "secret"), ("TZ", "Asia/Tokyo"), ("CRONLATCH_RUN_ID", "odd")]);
    let ended = database.wait_for_run("job", "ends", |run| run.is_final());
    let lines = output_of(&fleet, &ended.id, 16);
    let told: BTreeMap<_, _> = lines.iter().filter_map(|line| line.split_once('=')).collect();
    let at = ended.scheduled_at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
    let token = ended.token.unwrap().to_string();
    let folder = fleet.folder().to_string_lossy().into_owned();
    for (name, value) in [
        ("CRONLATCH_JOB", "job"),
        ("CRONLATCH_RUN_ID", &ended.id),
        ("CRONLATCH_SCHEDULED_AT", &at),
        ("CRONLATCH_ATTEMPT", "1"),
        ("CRONLATCH_HOST", "a"),
        ("CRONLATCH_LOCK", "its lock"),
        ("CRONLATCH_FENCING_TOKEN", &token),
        ("COLOUR", "blue"),
        ("HOME", "/nowhere"),
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("SHELL", "/bin/sh"),
        ("LANG", "C.UTF-8"),
        ("directory", &folder),
    ] {
        assert_eq!(told.get(name).copied(), Some(value), "{name} in {told:#?}");
    }
    assert_eq!(told.get("USER"), told.get("LOGNAME"));
    for name in ["PGPASSWORD", "TZ", "CRONLATCH_LOG_FORMAT", "CRONLATCH_CONFIG"] {
        assert!(!told.contains_key(name), "{name} leaks: {told:#?}");
    }
    assert!(lines.iter().any(|line| line == "0022"), "{lines:?}");
}

/// The lines that a run on host `a` wrote, once there are so many.
#[track_caller]
fn output_of(fleet: &Fleet, run: &str, count: usize) -> Vec<String> {
    let lines = || {
        let events = fleet["a"].log().events("run.output").into_iter().filter(|event| event["run"] == run);
        let lines: Vec<_> = events.map(|event| event["line"].as_str().unwrap().to_owned()).collect();
        (lines.len() >= count).then_some(lines)
    };
    eventually_some(format!("{count} lines of run {run}"), PATIENCE, lines)
}

//! What becomes of what jobs write, and what a job that writes without end costs others: nothing.

use std::fs;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::support::daemon::Daemon;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually};

/// How much a flood writes: more than the daemon's memory may grow, many times over.
const FLOOD: u64 = 120_000_000;

/// How much the daemon may grow by it, in KiB.
const GROWTH: u64 = 8 * 1024;

#[test]
fn a_flood_of_output_is_bounded_and_counted_and_takes_nothing_from_other_jobs() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database)
        .timing(3_000, 500, 300)
        .log_all()
        // It begins when the long job has its lock, and the long job ends after it.
        .job("flood", EVERY_SECOND, &first_run(&format!("yes | head -c {FLOOD}; touch flooded"), "held"), &[])
        .job("long", EVERY_SECOND, &first_run("touch held; until test -e flooded; do sleep 0.1; done", "."), &[])
        .job("quiet", EVERY_SECOND, "echo a word", &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    fleet.wait_until_up();
    let before = resident(&fleet["a"]);
    let mut most = before;
    eventually("the flood is over", PATIENCE * 4, || {
        most = most.max(resident(&fleet["a"]));
        fleet.folder().join("flooded").exists()
    });
    let flood = database.wait_for_run("flood", "succeeds", |run| run.state == "succeeded");
    database.wait_for_run("long", "succeeds", |run| run.state == "succeeded");
    assert!(most - before < GROWTH, "the daemon grew from {before} to {most} KiB");
    let tail = flood.row["output_tail"].as_str().unwrap();
    assert!(tail.len() <= 8_192 && tail.len() > 8_000 && tail.lines().all(|line| line == "y"));
    fleet.drain_and_keep(PATIENCE);

    let log = fleet["a"].log();
    assert_eq!(log.events("lock.lost"), Vec::<Value>::new());
    let lines = log.lines();
    let is_flood = |line: &&Value, event: &str| line["run"] == flood.id.as_str() && line["event"] == event;
    let during = lines.iter().skip_while(|line| !is_flood(line, "run.started"));
    let during = during.take_while(|line| !is_flood(line, "run.succeeded"));
    let renewals = during.filter(|line| line["event"] == "lock.renewed" && line["lock"] == "job:long").count();
    assert!(renewals >= 2, "another job's lock was renewed {renewals} times meanwhile");
    assert_accounted_for(&fleet["a"], &flood);
    for run in database.runs_of("quiet").iter().filter(|run| run.state == "succeeded") {
        assert_eq!(lines_of(&fleet["a"], run), ["a word"], "{run:#?}");
        for event in ["run.started", "run.succeeded"] {
            assert_eq!(of_run(&fleet["a"], event, run).len(), 1, "{event} of {run:#?}");
        }
    }
}

/// Each line that a flood wrote is in the log, or counted as dropped, which is said once a second at most.
#[track_caller]
fn assert_accounted_for(daemon: &Daemon, flood: &Run) {
    let logged = lines_of(daemon, flood).len() as u64;
    let dropped = of_run(daemon, "run.output_dropped", flood);
    let sum = |field: &str| dropped.iter().map(|event| event[field].as_u64().unwrap()).sum::<u64>();
    assert!(!dropped.is_empty() && logged > 1_000, "{logged} lines are logged");
    assert_eq!((logged + sum("count"), 2 * logged + sum("bytes")), (FLOOD / 2, FLOOD), "{dropped:#?}");
    let said: Vec<DateTime<Utc>> =
        dropped.iter().map(|event| event["timestamp"].as_str().unwrap().parse().unwrap()).collect();
    // The last one is said at the end, whenever that is.
    let gaps: Vec<_> = said[..said.len() - 1].windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps.iter().all(|gap| *gap >= TimeDelta::milliseconds(999)), "{gaps:?}");
}

#[test]
fn odd_bytes_a_huge_line_and_a_last_line_without_end_are_logged() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    // 24,001 bytes: the cut at 16 KiB would part the two bytes of a character.
    let huge = "printf x; yes é | head -n 12000 | tr -d '\\n'; echo";
    let line = format!("printf 'a\\033[2Jb\\000\\377 \\342\\200\\256c\\r\\n'; {huge}; echo word >&2; printf 'no end'");
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &line, &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let ended = database.wait_for_run("job", "ends", |run| run.is_final());
    fleet.drain_and_keep(PATIENCE);
    let (odd, huge) = ("a\\u{1b}[2Jb\\u{0}\u{fffd} \\u{202e}c", format!("x{}", "é".repeat(12_000)));
    let events = of_run(&fleet["a"], "run.output", &ended);
    let said = |stream: &str| -> Vec<(&str, bool)> {
        let events = events.iter().filter(|event| event["stream"] == stream);
        events.map(|event| (event["line"].as_str().unwrap(), event["cut"].as_bool().unwrap())).collect()
    };
    let (first, rest) = huge.split_at(16_383);
    assert_eq!(said("stdout"), [(odd, false), (first, true), (rest, false), ("no end", false)]);
    assert_eq!(said("stderr"), [("word", false)]);
    let is_said = |event: &Value| event["message"].as_str().unwrap().ends_with("[cut: the line goes on]");
    assert_eq!(events.iter().filter(|event| is_said(event)).count(), 1);
    let tail = ended.row["output_tail"].as_str().unwrap();
    assert!(tail.len() <= 8_192 && tail.contains("no end\n"), "{tail}");
}

#[test]
fn a_log_that_nobody_reads_stops_no_job() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job("flood", EVERY_SECOND, "yes | head -c 20000000", &[]);
    fleet.configure("a", &schedule.on("a"));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = std::process::Command::new(crate::support::daemon::BINARY);
    command.args(["daemon", "--config"]).arg(fleet.config_path("a")).current_dir(fleet.folder());
    command.stdout(std::process::Stdio::null()).stderr(writer);
    let mut daemon = command.spawn().unwrap();
    let ended = |count| database.runs_of("flood").iter().filter(|run| run.state == "succeeded").count() >= count;
    eventually("two floods are over", PATIENCE, || ended(2));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    drop(reader);
}

/// A line whose first run waits for a file and does something; the others do nothing.
fn first_run(does: &str, after: &str) -> String {
    format!("if mkdir $CRONLATCH_JOB.first; then until test -e {after}; do sleep 0.1; done; {does}; fi 2>/dev/null")
}

fn of_run(daemon: &Daemon, event: &str, run: &Run) -> Vec<Value> {
    daemon.log().events(event).into_iter().filter(|event| event["run"] == run.id.as_str()).collect()
}

fn lines_of(daemon: &Daemon, run: &Run) -> Vec<String> {
    let events = of_run(daemon, "run.output", run);
    events.iter().map(|event| event["line"].as_str().unwrap().to_owned()).collect()
}

/// How much memory a daemon has, in KiB.
fn resident(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn output_goes_to_files_of_the_jobs_own_user_that_are_rotated_while_it_runs() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let folder = fleet.folder().join("logs");
    std::fs::create_dir(&folder).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        let nobody = 65534;
        std::os::unix::fs::chown(&folder, Some(nobody), None).unwrap();
    }
    let output = format!("output = \"{}/{{job}}.log\"", folder.display());
    let mut keys = vec![output.as_str(), "output_keep = { size = \"10K\", files = 2 }"];
    if is_root {
        keys.extend(["user = \"nobody\"", "directory = \"/\""]);
    }
    let line = "i=0; while test $i -lt 1000; do echo line $i of the output; i=$((i+1)); done; echo last >&2";
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, line, &keys);
    fleet.start(&["a"], |host| schedule.on(host));
    let ended = database.wait_for_run("job", "ends", |run| run.is_final());
    assert_eq!(ended.state, "succeeded", "{ended:#?}");
    assert!(ended.row["output_tail"].as_str().unwrap().contains("line 999 of the output\n"), "the tail is kept");
    let said = fleet["a"].wait_for_event("run.output_to_file", |_| true);
    assert_eq!(said["path"], folder.join("job.log").display().to_string());
    assert!(fleet["a"].log().events("run.output").is_empty(), "lines in files are not logged too");
    fleet.drain(PATIENCE);
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names.retain(|name| name.starts_with("job.log"));
    assert_eq!(names, ["job.log", "job.log.1", "job.log.2"]);
    for name in &names {
        let metadata = std::fs::metadata(folder.join(name)).unwrap();
        assert!(metadata.len() <= 10 * 1024, "{name}: {}", metadata.len());
        assert!(!is_root || std::os::unix::fs::MetadataExt::uid(&metadata) == 65534, "{name}");
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.ends_with('\n') && text.lines().all(|line| line == "last" || line.starts_with("line ")), "{name}");
    }
}

//! The commands that ask: their JSON, their tables, their exit codes.

use std::path::Path;
use std::process::{Command, Stdio};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::jobs::{first_run_holds, short, wait_for_beat};
use crate::support::answer::Answer;
use crate::support::daemon::BINARY;
use crate::support::fleet::Fleet;
use crate::support::postgres::{Cluster, Shutdown};
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;

/// Runs a command with a configuration.
pub fn cronlatch(config: &Path, arguments: &[&str]) -> Answer {
    let mut command = Command::new(BINARY);
    command.arg("--config").arg(config).args(arguments).stdin(Stdio::null());
    command.output().unwrap().into()
}

/// The objects of a command that has nothing to complain about.
#[track_caller]
fn objects(answer: &Answer) -> Vec<Value> {
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
    answer.objects()
}

#[test]
fn locks_and_runs_tell_what_the_daemons_are_at() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database)
        .job("holder", EVERY_SECOND, &first_run_holds(&fleet, "holder"), &["lock = \"shared\""])
        .job("tick", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let held = wait_for_beat(&fleet, "holder");
    database.wait_for_run("holder", "is held off", |run| run.state == "skipped");
    let ticked = database.wait_for_run("tick", "ends", |run| run.state == "succeeded");
    let config = fleet.config_path("a");
    let ask = |arguments: &[&str]| cronlatch(&config, arguments);

    let locks = objects(&ask(&["locks", "shared", "--json"]));
    let lock = &locks[0];
    assert_eq!((locks.len(), &lock["resource"], &lock["host"]), (1, &"shared".into(), &"a".into()));
    assert_eq!(
        (&lock["state"], &lock["token"], &lock["run"]),
        (&"held".into(), &held.token.into(), &held.run.as_str().into())
    );
    let (held_ms, remaining_ms) = (lock["held_ms"].as_u64().unwrap(), lock["remaining_ms"].as_u64().unwrap());
    assert!(held_ms > 0 && remaining_ms > 0 && remaining_ms <= 4_000, "{lock}");
    for name in ["acquired_at", "renewed_at", "expires_at"] {
        is_instant(&lock[name]);
    }
    assert!(objects(&ask(&["locks", "--json"])).iter().any(|lock| lock["resource"] == "shared"));
    assert_eq!(objects(&ask(&["locks", "another", "--json"])), Vec::<Value>::new());
    assert_eq!(ask(&["locks", "another"]).stdout, "no lock is held\n");
    let table = ask(&["locks", "shared"]).stdout;
    assert!(table.starts_with("LOCK") && table.contains("shared") && !table.contains('\x1b'), "{table}");

    let runs = objects(&ask(&["runs", "tick", "--json", "-n", "1000"]));
    let run = runs.iter().find(|run| run["id"] == ticked.id.as_str()).unwrap();
    assert_eq!((&run["job"], &run["state"], &run["host"]), (&"tick".into(), &"succeeded".into(), &"a".into()));
    assert_eq!((&run["attempt"], &run["exit_code"], &run["trigger"]), (&1.into(), &0.into(), &"schedule".into()));
    assert_eq!(is_instant(&run["scheduled_at"]), ticked.scheduled_at);
    assert!(runs.iter().all(|run| run["job"] == "tick"));
    assert!(runs.is_sorted_by(|a, b| a["id"].as_str() > b["id"].as_str()), "newest first");
    let skipped = objects(&ask(&["runs", "--state", "skipped", "--json"]));
    assert!(!skipped.is_empty() && skipped.iter().all(|run| run["blocked_by"] == held.run.as_str()), "{skipped:?}");
    assert_eq!(objects(&ask(&["runs", "--json", "-n", "2"])).len(), 2);
    assert_eq!(objects(&ask(&["runs", "tick", "--since", "2999-01-01T00:00:00Z", "--json"])), Vec::<Value>::new());
    assert!(ask(&["runs"]).stdout.starts_with("JOB"));
    assert_eq!(ask(&["runs", "--state", "odd"]).code, 64);
}

#[test]
fn next_tells_coming_instants_with_a_file_and_without() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, "true", &[]).job(
        "daily",
        "0 3 * * *",
        "true",
        &["timezone = \"Europe/Berlin\""],
    );
    fleet.configure("a", &schedule.on("a"));
    let ask = |arguments: &[&str]| cronlatch(&fleet.config_path("a"), arguments);

    let before = Utc::now();
    let ticks = objects(&ask(&["next", "tick", "-n", "3", "--json"]));
    let instants: Vec<_> = ticks.iter().map(|tick| is_instant(&tick["at"])).collect();
    assert_eq!(instants.len(), 3);
    assert!(instants[0] > before && instants[0] <= Utc::now() + TimeDelta::seconds(1), "{instants:?}");
    assert!(instants.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::seconds(1)), "{instants:?}");
    let from = ["next", "daily", "-n", "1", "--from", "2026-07-01T12:00:00Z", "--json"];
    assert_eq!(objects(&ask(&from))[0]["at"], "2026-07-02T01:00:00Z");
    let expression = ["next", "--expr", "30 4 * * 1", "--from", "2026-12-02T00:00:00Z", "-n", "1", "--json"];
    assert_eq!(objects(&cronlatch(Path::new("/no/such/file"), &expression))[0]["at"], "2026-12-07T04:30:00Z");
    for wrong in [&["next", "unknown"][..], &["next", "--expr", "61 * * * *"], &["next", "-n", "0"]] {
        let said = ask(wrong);
        assert_eq!((said.code, said.stdout.as_str()), (64, ""), "{wrong:?}: {said:?}");
        assert!(!said.stderr.is_empty());
    }
}

#[test]
fn check_tells_all_problems_and_needs_no_database() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let good = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, "true", &[]);
    fleet.configure("a", &good.on("a"));
    let good = fleet.config_path("a");
    let said = cronlatch(&good, &["check"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    assert!(said.stdout.contains("1 job, no problem"), "{said:?}");
    let said = objects(&cronlatch(&good, &["check", "--json"]));
    assert!(said.iter().all(|object| object["severity"] == "info") && said.len() == 1, "{said:?}");

    fleet.configure("b", "[jobs.one]\nschedule = \"61 * * * *\"\ncomand = [\"true\"]\n");
    for config in [fleet.config_path("b"), fleet.folder().join("missing.toml")] {
        let said = cronlatch(&config, &["check", "--json"]);
        assert_eq!(said.code, 78, "{said:?}");
        let problems = said.objects();
        assert!(!problems.is_empty() && problems.iter().all(|problem| problem["problem"].is_string()), "{said:?}");
        let text = cronlatch(&config, &["check"]);
        assert_eq!((text.code, text.stdout.lines().count()), (78, problems.len()), "{text:?}");
        assert_eq!(cronlatch(&config, &["runs"]).code, 78);
    }
    assert!(!fleet.folder().join("cronlatch.db").exists(), "nobody needed the database");
}

#[test]
fn migrate_makes_the_tables_of_postgresql_once_and_says_what_it_did() {
    migrate_twice(&Fleet::new(), &Database::postgres());
}

#[test]
fn migrate_makes_the_tables_of_sqlite_once_and_says_what_it_did() {
    let fleet = Fleet::new();
    migrate_twice(&fleet, &Database::sqlite_in(fleet.folder()));
}

fn migrate_twice(fleet: &Fleet, database: &Database) {
    let schedule = Schedule::new(fleet, database).job("tick", EVERY_SECOND, "true", &[]);
    fleet.configure("a", &schedule.on("a"));
    let ask = |arguments: &[&str]| cronlatch(&fleet.config_path("a"), arguments);
    let without_tables = ask(&["runs"]);
    assert_eq!(without_tables.code, 69, "{without_tables:?}");
    assert!(without_tables.stderr.contains("cronlatch migrate"), "{without_tables:?}");
    let first = ask(&["migrate"]);
    assert_eq!((first.code, first.stderr.as_str()), (0, ""), "{first:?}");
    assert!(first.stdout.contains("from version 0 to 3"), "{first:?}");
    assert!(ask(&["migrate"]).stdout.contains("already"));
    assert_eq!(objects(&ask(&["runs", "--json"])), Vec::<Value>::new());
}

#[test]
fn commands_that_need_the_database_say_so_when_it_is_away() {
    let mut cluster = Cluster::start();
    let fleet = Fleet::new();
    let database = Database::postgres_in(&cluster);
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, "true", &[]);
    fleet.configure("a", &schedule.on("a"));
    let ask = |arguments: &[&str]| cronlatch(&fleet.config_path("a"), arguments);
    cluster.stop(Shutdown::Fast);
    for arguments in [&["locks", "--json"][..], &["runs", "--json"], &["migrate"]] {
        let said = ask(arguments);
        assert_eq!((said.code, said.stdout.as_str()), (69, ""), "{arguments:?}: {said:?}");
        assert!(said.stderr.starts_with("cronlatch: "), "{said:?}");
    }
    assert_eq!(ask(&["next", "--json"]).code, 0);
    assert_eq!(ask(&["check", "--json"]).code, 0);
    assert_eq!(ask(&["no-such-command"]).code, 64);
    assert_eq!(ask(&["--version"]).code, 0);
}

/// An instant in UTC, as RFC 3339 has it.
#[track_caller]
fn is_instant(value: &Value) -> DateTime<Utc> {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is no text"));
    assert!(text.ends_with('Z'), "{text}");
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

//! What the commands say when they are called as scripts and people call them: the real binary, with
//! one daemon on a SQLite file where a history is needed.
#![allow(clippy::unwrap_used)]

#[path = "cli/check.rs"]
mod check;
#[path = "cli/next.rs"]
mod next;
mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use support::answer::Answer;
use support::daemon::BINARY;
use support::fleet::Fleet;
use support::schedule::{EVERY_SECOND, Schedule};
use support::tables::Database;

fn command(config: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--config").arg(config).stdin(Stdio::null());
    command
}

fn ask(config: &Path, arguments: &[&str]) -> Answer {
    command(config, arguments).output().unwrap().into()
}

const LONG_NAME: &str = "copy-the-warehouse-of-the-north-to-the-archive-of-the-south-every-night";

#[test]
fn piped_tables_have_one_line_a_row_and_one_run_is_shown_whole() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let fails = "echo first; printf 'last\\033[2J'; exit 3";
    let schedule = Schedule::new(&fleet, &database).job(LONG_NAME, EVERY_SECOND, fails, &[]).job(
        "slow",
        EVERY_SECOND,
        "sleep 60",
        &[],
    );
    fleet.start(&["a"], |host| schedule.on(host));
    let ended = database.wait_for_run(LONG_NAME, "ends", |run| run.state == "failed");
    let held_off = database.wait_for_run("slow", "is held off", |run| run.state == "skipped");
    let config = fleet.config_path("a");

    let runs = ask(&config, &["runs", "-n", "1000"]);
    let row = runs.stdout.lines().find(|line| line.ends_with(&ended.id)).unwrap_or_else(|| panic!("{runs:?}"));
    let at = ended.scheduled_at.format("%Y-%m-%d %H:%M:%SZ").to_string();
    assert!(row.starts_with(&format!("{LONG_NAME}  {at}  ")) && row.contains("  exit code 3  "), "{row}");
    assert!(runs.stdout.starts_with("JOB "), "{runs:?}");

    let locks = ask(&config, &["locks"]).stdout;
    let lock = locks.lines().find(|line| line.starts_with("job:slow ")).unwrap_or_else(|| panic!("{locks}"));
    assert_eq!(lock.split_whitespace().nth(1), Some("slow"), "{lock}");
    let locks = ask(&config, &["locks", "job:slow", "--json"]).objects();
    assert_eq!(locks[0]["job"], "slow");

    let shown = ask(&config, &["runs", "show", &ended.id]).stdout;
    for part in [&ended.id, LONG_NAME, &at, "failed", "exit code 3", "job:", "first\nlast\\u{1b}[2J\n"] {
        assert!(shown.contains(part), "{part} is missing in:\n{shown}");
    }
    let shown = ask(&config, &["runs", "show", &held_off.id]).stdout;
    let blocker = held_off.blocked_by.as_deref().unwrap();
    assert!(shown.contains(&format!("blocked by   {blocker} (slow on a, ")), "{shown}");
    let whole = ask(&config, &["runs", "show", &ended.id, "--json"]).objects();
    assert_eq!((whole.len(), &whole[0]["id"], &whole[0]["exit_code"]), (1, &ended.id.as_str().into(), &3.into()));
    assert_eq!(ask(&config, &["runs", "show", "slow", "--json"]).objects()[0]["job"], "slow");
    let none = ask(&config, &["runs", "show", "00000000-0000-7000-8000-000000000000"]);
    assert_eq!((none.code, none.stdout.as_str()), (64, ""), "{none:?}");

    // Of the schedule, of the history alone, and of neither.
    let other = schedule.clone().on("a").replace(LONG_NAME, "new");
    fleet.configure("other", &other);
    let other = fleet.config_path("other");
    assert_eq!(ask(&other, &["runs", "new"]).stdout, "no runs\n");
    assert_eq!(ask(&other, &["runs", LONG_NAME, "--since", "2999-01-01"]).stdout, "no runs\n");
    let typo = ask(&other, &["runs", "slwo"]);
    assert_eq!((typo.code, typo.stdout.as_str()), (64, ""), "{typo:?}");
    assert!(typo.stderr.contains("\"slwo\""), "{typo:?}");
    assert!(!ask(&other, &["runs", "slow", "--since", "2020-01-01", "--json"]).objects().is_empty());
}

#[test]
fn commands_that_ask_make_no_file_of_sqlite() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    fleet.configure("a", &Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, "true", &[]).on("a"));
    let config = fleet.config_path("a");
    let file = fleet.folder().join("cronlatch.db");
    for arguments in [&["runs"][..], &["locks"], &["runs", "show", "tick"]] {
        let said = ask(&config, arguments);
        assert_eq!((said.code, said.stdout.as_str()), (69, ""), "{said:?}");
        let names = [file.to_str().unwrap(), "cronlatch migrate"];
        assert!(names.iter().all(|name| said.stderr.contains(name)), "{said:?}");
        assert!(!file.exists());
    }
    assert_eq!(ask(&config, &["migrate"]).code, 0);
    assert_eq!(ask(&config, &["runs"]).stdout, "no runs\n");
}

#[test]
fn output_that_cannot_be_written_is_exit_74() {
    let fleet = Fleet::new();
    fleet.configure("a", "[jobs.a]\n");
    for arguments in [&["--version"][..], &["--help"], &["runs", "--help"], &["check"], &["next", "--expr", "@daily"]] {
        let mut command = command(&fleet.config_path("a"), arguments);
        let said: Answer = command.stdout(File::create("/dev/full").unwrap()).output().unwrap().into();
        assert_eq!(said.code, 74, "{arguments:?}: {said:?}");
        assert!(said.stderr.contains("standard output can't be written"), "{said:?}");
    }
}

#[test]
fn an_empty_variable_names_no_file() {
    let said = Command::new(BINARY).arg("check").env("CRONLATCH_CONFIG", "").output().unwrap();
    let said = Answer::from(said);
    assert!(said.stdout.starts_with("/etc/cronlatch/"), "{said:?}");
    let said = Command::new(BINARY).arg("check").env("CRONLATCH_CONFIG", "/no/such/file").output().unwrap();
    assert!(Answer::from(said).stdout.starts_with("/no/such/file: "));
}

#[test]
fn a_reload_with_a_bad_job_file_keeps_all_and_one_with_new_settings_says_what_it_did_not_take() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, "true", &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    database.wait_for_run("tick", "ends", |run| run.is_final());

    let job_file = fleet.config_path("a").with_file_name("jobs.d").join("bad.toml");
    fs::create_dir_all(job_file.parent().unwrap()).unwrap();
    fs::write(&job_file, "[jobs.new]\nschedule = \"@daily\"\n").unwrap();
    let more = schedule.clone().job("more", EVERY_SECOND, "true", &[]);
    fleet.configure("a", &more.on("a"));
    fleet["a"].signal(Signal::HUP);
    let refused = fleet["a"].wait_for_event("daemon.reload_refused", |_| true);
    assert_eq!(refused["problems"], 1, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("1 problem;"), "{refused}");

    fs::remove_file(&job_file).unwrap();
    let changed = more
        .on("a")
        .replace("[log]", "[history]\nkeep = \"1d\"\n[log]")
        .replace("drain = \"2000ms\"", "drain = \"3s\"");
    fleet.configure("a", &changed);
    fleet["a"].signal(Signal::HUP);
    let ignored = fleet["a"].wait_for_event("daemon.reload_ignored", |_| true);
    assert_eq!((&ignored["sections"], &ignored["level"]), (&"[daemon], [history]".into(), &"WARN".into()), "{ignored}");
    fleet["a"].wait_for_event("daemon.reloaded", |event| event["jobs"] == 2);
    database.wait_for_run("more", "by the new schedule", |run| run.is_final());
}

#[test]
fn many_reloads_are_few_and_hold_no_term_back() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let mut schedule = Schedule::new(&fleet, &database).job("tick", "0 0 1 1 *", "true", &[]);
    for n in 0..500 {
        schedule = schedule.job(&format!("job-{n}"), "0 0 1 1 *", "true", &[]);
    }
    fleet.start(&["a"], |host| schedule.on(host));
    let daemon = &mut fleet["a"];
    daemon.wait_for_event("daemon.started", |_| true);
    const ASKED: usize = 200;
    for _ in 0..ASKED {
        daemon.signal(Signal::HUP);
    }
    daemon.signal(Signal::TERM);
    assert!(daemon.wait_exit(Duration::from_secs(5)).success());
    let reloads = daemon.log().events("daemon.reloaded").len();
    assert!(reloads < ASKED / 4, "{reloads} of {ASKED} were done one by one");
}

#[test]
fn missed_triggers_stand_in_the_history_among_the_runs() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    fleet.configure("a", &Schedule::new(&fleet, &database).job("tick", EVERY_SECOND, "true", &[]).on("a"));
    let config = fleet.config_path("a");
    assert_eq!(ask(&config, &["migrate"]).code, 0);
    let file = format!("sqlite://{}", fleet.folder().join("cronlatch.db").display());
    let missed = "INSERT INTO trigger_ranges (job, kind, reason, range_from, range_to, count, recorded_at) \
                  VALUES ('tick', 'missed', 'superseded', '2026-12-01T08:00:00.000Z', '2026-12-01T09:59:59.000Z', \
                          7200, '2026-12-01T10:00:06.000Z')";
    insert(&file, missed);

    for arguments in [&["runs"][..], &["runs", "tick"], &["runs", "--state", "missed"]] {
        let said = ask(&config, arguments).stdout;
        let row = said.lines().nth(1).unwrap_or_else(|| panic!("{said}"));
        assert!(row.starts_with("tick  2026-12-01 09:59:59Z  "), "{row}");
        assert!(row.contains("  missed  "), "{row}");
        assert!(row.contains("  superseded (the last of 7200 from 2026-12-01 08:00:00Z on)  "), "{row}");
    }
    let objects = ask(&config, &["runs", "--state", "missed", "--json"]).objects();
    assert_eq!((&objects[0]["count"], &objects[0]["id"]), (&7200.into(), &Value::Null));
    assert_eq!(ask(&config, &["runs", "--state", "failed"]).stdout, "no runs\n");
    assert_eq!(ask(&config, &["runs", "--since", "2026-12-02"]).stdout, "no runs\n");
}

fn insert(url: &str, sql: &'static str) {
    use sqlx::{Connection, SqliteConnection};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        sqlx::query(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

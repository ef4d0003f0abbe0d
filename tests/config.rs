//! The schedule files: what is told about bad ones, what a bad job file puts out of use, and that the
//! files in `config/` are in step with the code.
#![allow(clippy::unwrap_used)]

#[path = "config/account.rs"]
mod account;
#[path = "config/after.rs"]
mod after;
#[path = "config/catch_up.rs"]
mod catch_up;
#[path = "config/digest.rs"]
mod digest;
#[path = "config/doubts.rs"]
mod doubts;
#[path = "config/fixtures.rs"]
mod fixtures;
#[path = "config/notices.rs"]
mod notices;
#[path = "config/outcome.rs"]
mod outcome;
#[path = "config/output.rs"]
mod output;
#[path = "config/placement.rs"]
mod placement;
#[path = "config/process.rs"]
mod process;
#[path = "config/sample.rs"]
mod sample;
#[path = "config/ticking.rs"]
mod ticking;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use cronlatch::config::{self, Scope};
use cronlatch::job::{Command, OnCrash, Overlap};
use cronlatch::lock::LeaseTiming;
use rustix::fs::{CWD, Mode, mkfifoat};

use fixtures::{GOOD, HEAD, folder, good, job, lines, lines_of, load, names, secs, warnings, write};

#[test]
fn each_fault_of_a_job_is_told_with_its_place_and_its_remedy() {
    let cases = [
        (
            r#"overlap = "always""#,
            r#"jobs.a.overlap = "always": not one of "skip", "wait", "replace"; write overlap = "skip" or "wait" or "replace""#,
        ),
        (
            "overlap = 1",
            r#"jobs.a.overlap = 1: expected a string, not a whole number; write overlap = "skip" or "wait" or "replace""#,
        ),
        ("timeout = 30", r#"jobs.a.timeout = 30: a duration without a unit; write "30s" if seconds are meant"#),
        (
            r#"timeout = "30""#,
            r#"jobs.a.timeout = "30": not a duration: time unit needed, for example 30sec or 30ms; write it like timeout = "30s""#,
        ),
        (
            r#"timeout = "5M""#,
            r#"jobs.a.timeout = "5M": "M" would be months, minutes are "m"; write it like timeout = "30s""#,
        ),
        (r#"timeout = "0s""#, r#"jobs.a.timeout = "0s": too short: at least 1s; write it like timeout = "30s""#),
        ("timeout = []", r#"jobs.a.timeout = []: expected a duration, not a list; write it like timeout = "30s""#),
        (r#"ttl = "8d""#, r#"jobs.a.ttl = "8d": a TTL is at most 7d, this one is 8d; write it like ttl = "3m""#),
        ("parameters = 1", "jobs.a.parameters: not supported by this version yet; remove it"),
        ("time_zone = 1", r#"jobs.a.time_zone: unknown key; did you mean "timezone"?"#),
        ("max_age = 1", r#"jobs.a.max_age: unknown key; did you mean "catch_up_max_age"?"#),
        ("keep_runs = 1", "jobs.a.keep_runs: unknown key in a job; it belongs in [history]"),
        (
            r#"wait_for = "3s""#,
            r#"jobs.a.wait_for = "3s": means nothing without overlap = "wait" or "replace"; write overlap = "wait" or "replace", or remove wait_for"#,
        ),
        (
            "max_reruns = 3",
            r#"jobs.a.max_reruns = 3: means nothing without on_crash = "rerun"; write on_crash = "rerun", or remove max_reruns"#,
        ),
        (r#"shell = "a | b""#, r#"jobs.a.shell = "a | b": command is there too; keep one of the two"#),
        (r#"directory = "a/b""#, r#"jobs.a.directory = "a/b": not an absolute path; write directory = "/...""#),
        (
            r#"enabled = "yes""#,
            r#"jobs.a.enabled = "yes": expected true or false, not a string; write enabled = true or enabled = false"#,
        ),
        (r#"lock = " ""#, r#"jobs.a.lock = " ": a resource name can't be blank; choose another"#),
        (
            r#"catch_up = "most""#,
            r#"jobs.a.catch_up = "most": not one of "latest", "none", "all"; write catch_up = "latest" or "none" or "all""#,
        ),
        ("description = [\n1]", "jobs.a.description = [...: expected a string, not a list; write one text in quotes"),
    ];
    for (keys, message) in cases {
        assert_eq!(lines_of(&job(keys)), [format!("cronlatch.toml:6:1: {message}")], "{keys}");
    }
}

#[test]
fn a_timing_without_room_is_told_at_the_key_that_set_it_with_the_origin_of_all_three() {
    let main = format!("{GOOD}heartbeat = \"2m\"\n[lock]\nttl = \"5m\"\n");
    assert_eq!(
        lines_of(&main),
        ["cronlatch.toml:6:1: jobs.a.heartbeat = \"2m\": 3 * heartbeat (2m) + kill_grace (15s) + ttl / 12 (25s) = \
          6m 40s is more than ttl (5m): raise ttl to 6m 50s or more, or shorten heartbeat or kill_grace \
          (ttl: line 8, heartbeat: line 6, kill_grace: default)"]
    );
}

#[test]
fn a_bad_timing_of_all_jobs_is_told_once_and_not_for_each_job() {
    let more = "[jobs.b]\nschedule = \"0 3 * * *\"\nshell = \"true\"\n";
    for table in ["lock", "defaults"] {
        let told = lines_of(&format!("{GOOD}{more}[{table}]\nttl = \"1m\"\n"));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(&format!("cronlatch.toml:10:1: {table}.ttl = \"1m\": ")), "{told:?}");
    }
}

#[test]
fn all_problems_of_all_files_are_told_at_once_in_their_order() {
    let main = r#"
[database]
url = "mysql://u:hunter2@h/d"
max_connections = 2
[daemon]
labels = ["web", 3, ""]
drain = "never"
max_running = 5
[log]
level = "loud"
[http]
listen = "127.0.0.1:8470"
[jobs.a]
comand = ["true"]
[jobs."b c"]
schedule = 1
command = "/bin/true --verbose"
[jobs.c]
when_unreachable = "run"
every = 300
command = [""]
"#;
    let files =
        [("cronlatch.toml", main), ("jobs.d/z.toml", "[lock]\nttl = \"3m\"\n"), ("jobs.d/y.toml", "[jobs]\nd = 1\n")];
    let folder = folder(&files);
    let loaded = load(&folder);
    assert_eq!(
        lines(&folder, &loaded),
        [
            r#"cronlatch.toml:3:1: database.url = "mysql://u:***@h/d": not a URL of PostgreSQL or SQLite; write "postgres://USER@HOST/DATABASE" or "sqlite:///PATH/TO/FILE.db""#,
            "cronlatch.toml:4:1: database.max_connections = 2: out of range; write a whole number from 3 to 1000",
            "cronlatch.toml:6:18: daemon.labels[1] = 3: expected a string, not a whole number; put it in quotes",
            r#"cronlatch.toml:6:21: daemon.labels[2] = "": a label has 1 to 64 characters, this one has 0; choose another"#,
            r#"cronlatch.toml:7:1: daemon.drain = "never": not a duration: expected number at 0; write it like drain = "30s", or drain = "infinite""#,
            r#"cronlatch.toml:8:1: daemon.max_running: unknown key; did you mean "max_running_jobs"?"#,
            r#"cronlatch.toml:10:1: log.level = "loud": not one of "error", "warn", "info", "debug", "trace"; write level = "error" or "warn" or "info" or "debug" or "trace""#,
            "cronlatch.toml:11:2: http: not supported by this version yet; remove it",
            r#"cronlatch.toml:14:1: jobs.a.comand: unknown key; did you mean "command"?"#,
            r#"cronlatch.toml:16:1: jobs."b c".schedule = 1: expected a string or a list of strings, not a whole number; write schedule = "...""#,
            r#"cronlatch.toml:17:1: jobs."b c".command = "/bin/true --verbose": expected a list of strings, not a string; write command = ["PROGRAM", "ARGUMENT"], or shell = "..." for a line of /bin/sh"#,
            "cronlatch.toml:19:1: jobs.c.when_unreachable: not supported by this version yet; remove it",
            r#"cronlatch.toml:20:1: jobs.c.every = 300: a duration without a unit; write "300s" if seconds are meant"#,
            r#"cronlatch.toml:21:1: jobs.c.command = [""]: names no program; write command = ["/PATH/TO/PROGRAM", "ARGUMENT"]"#,
            "jobs.d/y.toml:2:1: jobs.d: expected a table, not a whole number; write [jobs.d] and its keys below",
            "jobs.d/z.toml:1:2: lock: unknown key at the top of a file of jobs.d; it belongs at the top of the main file",
        ]
    );
    assert!(loaded.settings.is_none() && !loaded.is_usable());
}

#[test]
fn a_blank_expression_is_refused() {
    let main = format!("{HEAD}[jobs.a]\nschedule = [\"0 3 * * *\", \"\"]\ncommand = [\"true\"]\n");
    let told = lines_of(&main);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("cronlatch.toml:4:26: jobs.a.schedule[1] = \"\": "), "{told:?}");
}

#[test]
fn variables_are_checked_and_their_values_are_never_shown() {
    let told = lines_of(&job(r#"env = { "A=B" = "hunter2", CRONLATCH_JOB = "hunter2", N = 12345, "" = "hunter2" }"#));
    assert_eq!(
        told,
        [
            r#"cronlatch.toml:6:9: jobs.a.env."A=B": a variable's name can't hold '=' or NUL; rename it"#,
            "cronlatch.toml:6:28: jobs.a.env.CRONLATCH_JOB: names that start with CRONLATCH_ are set by cronlatch; rename it",
            "cronlatch.toml:6:55: jobs.a.env.N: expected a string, not a whole number; put it in quotes",
            r#"cronlatch.toml:6:66: jobs.a.env."": a variable without a name; name it"#,
        ]
    );
}

#[test]
fn no_password_is_shown_wherever_it_was_typed() {
    for main in [
        "database = \"postgres://u:hunter2@h/d\"",
        "[database]\nurl = [\"postgres://u:hunter2@h/d\"]",
        "[database]\nurl = \"postgres://u:hun#ter2hunter2@h/d\"",
        "[database]\nurl = \"postgres:u:hunter2@h/d\"",
        "[database]\npassword = \"hunter2\"",
        "[database]\nurl = \"postgres://u:hunter2@h/d",
        "[database]\nurl = postgres://u:hunter2@h/d",
    ] {
        let told = lines_of(main);
        assert!(!told.is_empty() && !told.concat().contains("hunter2"), "{told:?}");
    }
    let folder = folder(&[("cronlatch.toml", &GOOD.replace("sqlite:///tmp/a.db", "postgres://u:hunter2@h/d"))]);
    let loaded = load(&folder);
    assert!(loaded.is_usable());
    assert!(!format!("{loaded:?}").contains("hunter2"));
}

#[test]
fn what_is_not_toml_is_told_by_line_and_hides_no_fault_before_it() {
    let main = "[database]\nurl = \"sqlite:///a.db\"\nmigrate = \"never\"\n[lock]\nttl = 3m\nheartbeat = \"a\"\n[jobs.a\nschedule = 1\n";
    assert_eq!(
        lines_of(main),
        [
            r#"cronlatch.toml:3:1: database.migrate = "never": not one of "auto", "manual"; write migrate = "auto" or "manual""#,
            "cronlatch.toml:5:7: not valid TOML: a value that is no number needs quotes; write \"...\"",
            r#"cronlatch.toml:6:1: lock.heartbeat = "a": not a duration: expected number at 0; write it like heartbeat = "30s""#,
            "cronlatch.toml:7:8: not valid TOML: unclosed table, expected `]`; mend this line or the one before",
        ]
    );
    assert_eq!(
        lines_of(&format!("{GOOD}[jobs.a]\n")),
        ["cronlatch.toml:6:7: the key a is there twice; rename or remove one of the two"]
    );
}

#[test]
fn a_file_that_is_no_text_is_told() {
    let folder = folder(&[("cronlatch.toml", GOOD)]);
    write(folder.path(), "jobs.d/b.toml", b"[jobs.b]\n# \xc3\xbc \xff\n");
    write(folder.path(), "jobs.d/c.toml", b"");
    fs::create_dir(folder.path().join("jobs.d/d.toml")).unwrap();
    let loaded = load(&folder);
    assert_eq!(
        lines(&folder, &loaded),
        [
            "jobs.d/b.toml:2:5: not UTF-8 from here on; save the file as UTF-8",
            "jobs.d/d.toml: can't be read: not a regular file; replace it by a TOML file, or remove it",
        ]
    );
    assert!(loaded.is_usable());
}

#[test]
fn a_missing_main_file_is_told_alone() {
    let folder = folder(&[("jobs.d/b.toml", "[jobs.b]\n")]);
    let loaded = load(&folder);
    assert_eq!(
        lines(&folder, &loaded),
        [
            "cronlatch.toml: can't be read: No such file or directory (os error 2); create it, or name another with --config FILE"
        ]
    );
    assert!(!loaded.is_usable());
}

#[test]
fn an_empty_main_file_lacks_a_database_and_a_job() {
    let folder = folder(&[("cronlatch.toml", "")]);
    let told: Vec<String> = lines(&folder, &load(&folder));
    assert_eq!(
        told,
        [
            "cronlatch.toml: database.url: missing; write url = \"postgres://USER@HOST/DATABASE\" in [database]; all hosts share it",
            "cronlatch.toml: no job is defined; write [jobs.NAME] with schedule and command, here or in jobs.d/NAME.toml",
        ]
    );
}

#[test]
fn one_bad_file_of_fifty_takes_away_its_own_jobs_only() {
    let folder = folder(&[("cronlatch.toml", GOOD)]);
    for n in 0..50 {
        let text = format!(
            "[jobs.j{n}]\nschedule = \"0 3 * * *\"\ncommand = [\"true\"]\n[jobs.k{n}]\nschedule = \"@daily\"\nshell = \"true\"\n"
        );
        write(folder.path(), &format!("jobs.d/{n:02}.toml"), text.as_bytes());
    }
    write(folder.path(), "jobs.d/.half.toml", b"[jobs");
    write(folder.path(), "jobs.d/readme.txt", b"not TOML");
    assert_eq!(load(&folder).jobs.len(), 101);
    let bad = "[jobs.j7]\nschedule = \"0 3 * * *\"\ncommand = [\"true\"]\n[jobs.k7]\nschedule = \"@daily\"\nshel = \"true\"\n";
    write(folder.path(), "jobs.d/07.toml", bad.as_bytes());
    let loaded = load(&folder);
    assert_eq!(lines(&folder, &loaded), ["jobs.d/07.toml:6:1: jobs.k7.shel: unknown key; did you mean \"shell\"?"]);
    assert_eq!(loaded.problems[0].scope, Scope::JobFile(folder.path().join("jobs.d/07.toml")));
    assert_eq!(loaded.jobs.len(), 99);
    assert!(!names(&loaded).contains(&"j7"), "a bad file's good jobs are left out with it");
    assert!(loaded.is_usable());
}

#[test]
fn a_name_in_two_files_is_told_with_both_places_and_the_first_stays() {
    let second =
        "[jobs.b]\nschedule = \"@daily\"\nshell = \"true\"\n\n[jobs.a]\nschedule = \"@daily\"\nshell = \"true\"\n";
    let third = "[jobs.b]\nschedule = \"@daily\"\nshell = \"true\"\n";
    let folder = folder(&[("cronlatch.toml", GOOD), ("jobs.d/2.toml", second), ("jobs.d/3.toml", third)]);
    let loaded = load(&folder);
    let main = folder.path().join("cronlatch.toml");
    let told: Vec<String> = loaded.problems.iter().map(|problem| problem.wrong.clone()).collect();
    assert_eq!(told[0], format!("a job of this name is also at {}:3", main.display()));
    assert_eq!(told[1], format!("a job of this name is also at {}:1", folder.path().join("jobs.d/2.toml").display()));
    assert!(lines(&folder, &loaded)[0].starts_with("jobs.d/2.toml:5:7: jobs.a: a job of this name is also at "));
    assert_eq!(names(&loaded), ["a"]);
}

#[test]
fn nothing_is_usable_when_every_job_is_in_a_bad_file() {
    let folder = folder(&[("cronlatch.toml", HEAD), ("jobs.d/a.toml", "[jobs.a]\n")]);
    let loaded = load(&folder);
    assert!(loaded.settings.is_some(), "commands that need the database alone go on working");
    assert!(loaded.problems.iter().all(|problem| problem.scope != Scope::Settings));
    assert!(!loaded.is_usable());
}

#[test]
fn as_root_files_that_others_can_write_are_refused() {
    let root = rustix::process::geteuid().is_root();
    let folder =
        folder(&[("cronlatch.toml", GOOD), ("jobs.d/b.toml", "[jobs.b]\nschedule = \"@daily\"\nshell = \"true\"\n")]);
    let job_file = folder.path().join("jobs.d/b.toml");
    fs::set_permissions(&job_file, fs::Permissions::from_mode(0o664)).unwrap();
    let loaded = load(&folder);
    if !root {
        assert_eq!(names(&loaded), ["a", "b"]);
        return;
    }
    assert_eq!(names(&loaded), ["a"]);
    assert_eq!(loaded.problems[0].remedy, Some(format!("chmod go-w {}", job_file.display())));
    let main = folder.path().join("cronlatch.toml");
    fs::set_permissions(&main, fs::Permissions::from_mode(0o646)).unwrap();
    assert!(!load(&folder).is_usable());
}

#[test]
fn as_root_files_of_another_owner_are_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder =
        folder(&[("cronlatch.toml", GOOD), ("jobs.d/b.toml", "[jobs.b]\nschedule = \"@daily\"\nshell = \"true\"\n")]);
    let job_file = folder.path().join("jobs.d/b.toml");
    chown(&job_file, Some(65_534), None).unwrap();
    let loaded = load(&folder);
    assert_eq!(
        lines(&folder, &loaded)[0].split("; ").next().unwrap(),
        "jobs.d/b.toml: owned by user 65534, and its jobs would run as root"
    );
    assert_eq!(loaded.problems[0].remedy, Some(format!("chown root {}", job_file.display())));
    assert_eq!(names(&loaded), ["a"]);
    chown(folder.path().join("cronlatch.toml"), Some(65_534), None).unwrap();
    assert!(!load(&folder).is_usable());
}

#[test]
fn a_named_pipe_as_the_main_file_is_refused_without_waiting_for_a_writer() {
    let folder = folder(&[]);
    let pipe = folder.path().join("cronlatch.toml");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
    let told = lines(&folder, &load(&folder));
    assert_eq!(told, ["cronlatch.toml: can't be read: not a regular file; name a schedule file with --config FILE"]);
}

#[test]
fn parameters_of_the_url_that_would_be_ignored_are_told_without_their_values() {
    let main = GOOD.replace("sqlite:///tmp/a.db", "postgres://u:hunter2@h/d?ssl_mode=verify-full&x=hunter2");
    assert_eq!(
        lines_of(&main),
        [
            r#"cronlatch.toml:2:1: database.url = "postgres://u:***@h/d?ssl_mode=***&x=***": unknown parameter "ssl_mode"; did you mean "sslmode"?"#
        ]
    );
    let told = lines_of(&GOOD.replace("sqlite:///tmp/a.db", "postgres://u:hun@ter2@h/d")).concat();
    assert!(told.contains("percent-encode it") && !told.contains("ter2"), "{told}");
    let told = lines_of(&GOOD.replace("sqlite:///tmp/a.db", "sqlite://a.db")).concat();
    assert!(told.contains("not an absolute path; write three slashes"), "{told}");
}

#[test]
fn a_password_file_that_is_not_fit_is_found_by_a_check() {
    let folder = folder(&[("db-password", "hunter2\n")]);
    let password = folder.path().join("db-password");
    let url = format!("postgres://u@h/d\"\npassword_file = \"{}", password.display());
    write(folder.path(), "cronlatch.toml", GOOD.replace("sqlite:///tmp/a.db", &url).as_bytes());
    let check = || config::check(&folder.path().join("cronlatch.toml"));
    let wrong = || check().problems.first().map(|problem| (problem.wrong.clone(), problem.remedy.clone().unwrap()));
    let open = ("readable or writable by others (mode 0644)".to_owned(), format!("chmod 640 {}", password.display()));
    assert_eq!(wrong(), Some(open));
    fs::set_permissions(&password, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(wrong(), None);
    fs::write(&password, "\n").unwrap();
    assert_eq!(wrong().unwrap().0, "its first line is empty");
    fs::remove_file(&password).unwrap();
    assert!(wrong().unwrap().0.starts_with("can't be read: No such file"));
    assert!(load(&folder).is_usable(), "only a check looks around");
}

#[test]
fn a_check_warns_about_what_is_not_on_this_host_and_about_unequal_locks() {
    let main = format!(
        "{HEAD}[defaults]\ndirectory = \"/no/such/folder\"\n\
         [jobs.a]\nschedule = \"@daily\"\ncommand = [\"/no/such/program\"]\nlock = \"x\"\n\
         [jobs.b]\nschedule = \"@daily\"\ncommand = [\"/etc/passwd\"]\nlock = \"x\"\nttl = \"5m\"\ndirectory = \"/\"\n\
         [jobs.c]\nschedule = \"@daily\"\ncommand = [\"true\"]\nuser = \"no-such-user\"\ngroup = \"no-such-group\"\n\
         env_file = \"/no/such/file\"\nstdin = {{ file = \"/etc\" }}\non_failure = [\"/no/such/program\"]\n\
         on_recovery = \"no-such-program\"\n"
    );
    assert_eq!(
        warnings(&main),
        [
            r#"4:1: defaults.directory = "/no/such/folder": doesn't exist on this host; make it before the job is due, or mend the path"#,
            r#"7:1: jobs.a.command = ["/no/such/program"]: /no/such/program doesn't exist on this host; install it before the job is due, or mend the path"#,
            r#"11:1: jobs.b.command = ["/etc/passwd"]: /etc/passwd is not executable on this host; install it before the job is due, or mend the path"#,
            r#"12:1: jobs.b.lock = "x": job a (line 8) has this lock with a ttl of 3m, this one has it with 5m; give both the same ttl"#,
            r#"18:1: jobs.c.user = "no-such-user": no user of this name on this host; make it before the job is due, or mend the name"#,
            r#"19:1: jobs.c.group = "no-such-group": no group of this name on this host; make it before the job is due, or mend the name"#,
            r#"20:1: jobs.c.env_file = "/no/such/file": /no/such/file doesn't exist on this host; make it before the job is due, or mend the path"#,
            "21:1: jobs.c.stdin: /etc is a directory on this host; make it before the job is due, or mend the path",
            r#"22:1: jobs.c.on_failure = ["/no/such/program"]: /no/such/program doesn't exist on this host; install it before the job is due, or mend the path"#,
        ]
        .map(|line| format!("cronlatch.toml:{line}"))
    );
}

#[test]
fn no_mutilated_file_brings_more_than_problems() {
    let folder = folder(&[]);
    let whole = include_str!("../config/demo.toml");
    let ends = (0..whole.len()).filter(|end| whole.is_char_boundary(*end));
    let cut = ends.map(|end| whole[..end].to_owned());
    let marks = ['[', ']', '"', '=', '.', '#', '\n'];
    let without = marks.map(|mark| whole.replace(mark, " "));
    let twice = marks.map(|mark| whole.replace(mark, &format!("{mark}{mark}")));
    for text in cut.chain(without).chain(twice) {
        write(folder.path(), "cronlatch.toml", text.as_bytes());
        let loaded = load(&folder);
        assert_eq!(loaded.is_usable(), loaded.problems.is_empty(), "{text}\n{:?}", lines(&folder, &loaded));
    }
}

#[test]
fn a_jobs_own_keys_win_over_the_defaults_and_those_over_the_lock() {
    let main = r#"
[database]
url = "sqlite:///a.db"
[daemon]
timezone = "Europe/Berlin"
[lock]
ttl = "5m"
heartbeat = "20s"
[defaults]
heartbeat = "40s"
wait_for = "10s"
max_reruns = 7
shell = "true"
env = { A = "default", B = "default" }
[jobs.a]
schedule = "0 3 * * *"
[jobs.b]
schedule = "0 3 * * *"
timezone = "Asia/Tokyo"
kill_grace = "5s"
overlap = "wait"
on_crash = "rerun"
command = ["true"]
env = { B = "own" }
"#;
    let loaded = good(main);
    let [a, b] = &loaded.jobs[..] else { panic!("two jobs") };
    assert_eq!(a.schedule.zone(), chrono_tz::Europe::Berlin);
    assert_eq!(a.timing, LeaseTiming::new(secs(300), secs(40), secs(15)).unwrap());
    assert_eq!((a.overlap, a.on_crash), (Overlap::Skip, OnCrash::Record));
    assert_eq!(a.command, Command::Shell("true".to_owned()));
    assert_eq!(a.resource.as_str(), "job:a");
    assert_eq!(b.schedule.zone(), chrono_tz::Asia::Tokyo);
    assert_eq!(b.timing, LeaseTiming::new(secs(300), secs(40), secs(5)).unwrap());
    assert_eq!((b.overlap, b.on_crash), (Overlap::Wait(secs(10)), OnCrash::Rerun { max: 7 }));
    assert_eq!(b.command, Command::Argv(vec!["true".to_owned()]));
    assert_eq!(format!("{:?}", b.env), r#"{"A": "default", "B": "own"}"#);
    assert_eq!(loaded.settings.unwrap().lock, LeaseTiming::new(secs(300), secs(20), secs(15)).unwrap());
}

#[test]
fn a_job_that_waits_or_replaces_does_so_as_long_as_it_may_be_late() {
    let loaded = good(&job("overlap = \"wait\"\nstart_deadline = \"7m\""));
    assert_eq!(loaded.jobs[0].overlap, Overlap::Wait(secs(420)));
    assert_eq!(good(&job("overlap = \"wait\"")).jobs[0].overlap, Overlap::Wait(secs(300)));
    let replacing = |keys: &str| good(&job(&format!("overlap = \"replace\"\n{keys}"))).jobs[0].overlap;
    assert_eq!(replacing("start_deadline = \"7m\""), Overlap::Replace(secs(420)));
    assert_eq!(replacing("wait_for = \"20s\""), Overlap::Replace(secs(20)));
}

#[test]
fn the_longest_ttl_is_that_of_the_jobs() {
    let loaded = good(&job("ttl = \"10m\"\n[jobs.b]\nschedule = \"@daily\"\nshell = \"true\""));
    assert_eq!(loaded.longest_ttl().map(|ttl| ttl.get()), Some(secs(600)));
}

//! As whom jobs run: what the daemon refuses, and what `check` says of it anywhere.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use cronlatch::config;
use rustix::process::geteuid;

use crate::fixtures::{HEAD, folder, lines, names};

/// `nobody` and `nogroup`.
const NOBODY: u32 = 65_534;

#[test]
fn a_daemon_that_runs_as_root_refuses_jobs_that_do_not_say_as_whom_they_run() {
    if !geteuid().is_root() {
        return;
    }
    let job = |name: &str, user: &str| format!("[jobs.{name}]\nschedule = \"@daily\"\nshell = \"true\"\n{user}\n");
    let main = format!("{HEAD}{}{}", job("root", "user = \"root\""), job("own", "user = \"@daemon\""));
    let careless = job("a", "user = \"no-such-user\"") + &job("careless", "");
    let folder = folder(&[("cronlatch.toml", &main), ("jobs.d/a.toml", &careless)]);
    let path = folder.path().join("cronlatch.toml");

    let loaded = config::load_to_run(&path);
    assert_eq!(
        lines(&folder, &loaded),
        [
            r#"jobs.d/a.toml:5:7: jobs.careless.user: missing, and the daemon runs as root; write user = "NAME", or user = "root" if the job needs that"#
        ]
    );
    assert_eq!(names(&loaded), ["own", "root"], "a file with such a job is out of use, the others are not");
    assert_eq!(config::load(&path).problems, [], "whoever only reads starts nothing");
    assert_eq!(config::check(&path).problems, [], "as root a check may run where no daemon does");

    std::fs::write(&path, format!("{HEAD}{}", job("a", ""))).unwrap();
    assert!(!config::load_to_run(&path).is_usable());
    std::fs::write(&path, format!("{HEAD}{}[defaults]\nuser = \"root\"\n", job("b", ""))).unwrap();
    assert_eq!(names(&config::load_to_run(&path)), ["a", "b", "careless"], "the defaults say it for all");
}

#[test]
fn a_daemon_that_is_not_root_refuses_to_start_jobs_as_anybody_else() {
    let keys = ["", "user = \"@daemon\"", "user = \"root\"", "user = \"no-such-user\"", "group = \"root\""];
    let jobs = keys.iter().enumerate();
    let jobs: String =
        jobs.map(|(n, keys)| format!("[jobs.j{n}]\nevery = \"1h\"\nshell = \"true\"\n{keys}\n")).collect();
    let own = if geteuid().is_root() {
        "[jobs.own]\nuser = \"nobody\"\ngroup = \"nogroup\"\nevery = \"1h\"\nshell = \"true\"\n"
    } else {
        ""
    };
    let main = format!("{HEAD}{jobs}{own}");
    let folder = folder(&[("cronlatch.toml", &main)]);
    // A daemon that refuses nothing would run for ever.
    let mut daemon = Command::new("timeout");
    daemon.args(["--kill-after=1", "20", env!("CARGO_BIN_EXE_cronlatch"), "daemon", "--config", "cronlatch.toml"]);
    daemon.current_dir(folder.path()).stdin(Stdio::null());
    let mut uid = geteuid().as_raw();
    if geteuid().is_root() {
        uid = NOBODY;
        daemon.uid(uid).gid(uid);
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let said = daemon.output().unwrap();
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(78), "{stderr}");
    let refused: Vec<&str> = stderr.lines().filter(|line| line.contains("jobs.")).collect();
    let other = format!("the daemon runs as user {uid}, and only root starts jobs as somebody else");
    let remedy = "remove it, or run the daemon as root";
    assert_eq!(refused.len(), 3, "{stderr}");
    for (told, (place, key)) in
        refused.iter().zip([("14:1", r#"jobs.j2.user = "root""#), ("18:1", r#"jobs.j3.user = "no-such-user""#)])
    {
        assert!(told.ends_with(&format!("cronlatch.toml:{place}: {key}: {other}; {remedy}")), "{stderr}");
    }
    assert!(
        refused[2].contains(r#"cronlatch.toml:22:1: jobs.j4.group = "root": the daemon runs as group "#),
        "{stderr}"
    );
}

#[test]
fn a_check_by_anybody_warns_about_jobs_that_do_not_say_as_whom_they_run() {
    let main = format!("{HEAD}[jobs.a]\nevery = \"1h\"\nshell = \"true\"\n");
    let checked = |main: &str| config::check(&folder(&[("cronlatch.toml", main)]).path().join("cronlatch.toml"));
    let told = checked(&main);
    assert!(told.problems.is_empty() && told.warnings.len() == 1, "{told:?}");
    assert_eq!(told.warnings[0].key.as_deref(), Some("jobs.a.user"));
    assert_eq!(told.warnings[0].wrong, "missing, so a daemon that runs as root refuses the job");
    for user in ["root", "@daemon"] {
        assert_eq!(checked(&format!("{main}user = \"{user}\"\n")).warnings, []);
    }
}

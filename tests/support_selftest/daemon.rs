use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::support::daemon::Daemon;
use crate::support::fleet::Fleet;
use crate::support::wait::{PATIENCE, eventually};

/// A daemon played by a shell.
fn played(script: &str) -> Daemon {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    Daemon::from_command("web-1", command)
}

#[test]
fn events_are_found_by_name_and_fields_whenever_they_were_said() {
    let mut daemon = played(
        r#"echo '{"event":"run.started","job":"a"}'; echo '{"event":"run.started","job":"b","run":7}' >&2; echo oops"#,
    );
    let found = daemon.wait_for_event("run.started", |event| event["job"] == "b");
    assert_eq!(found["run"], json!(7));
    assert!(daemon.wait_exit(PATIENCE).success());
    assert_eq!(daemon.log().events("run.started").len(), 2);
    assert_eq!(daemon.log().stray_lines(), ["oops"]);
    assert!(daemon.log().events_after(1, "run.started").iter().all(|event| event["job"] == "b"));
}

#[test]
fn a_daemon_takes_signals_and_tells_how_it_ended() {
    let mut daemon = played(r#"trap 'exit 5' HUP; echo '{"event":"daemon.started"}'; while :; do sleep 0.01; done"#);
    daemon.wait_for_event("daemon.started", |_| true);
    daemon.signal(Signal::HUP);
    assert_eq!(daemon.wait_exit(PATIENCE).code(), Some(5));
}

#[test]
fn a_wait_in_vain_shows_what_the_daemon_said() {
    let mut daemon = played("echo '{\"event\":\"daemon.stopped\"}'; exec sleep 600");
    daemon.wait_for_event("daemon.stopped", |_| true);
    let wait = || daemon.wait_exit(Duration::from_millis(50));
    let said = catch_unwind(AssertUnwindSafe(wait)).unwrap_err().downcast::<String>().unwrap();
    assert!(said.contains("web-1") && said.contains("daemon.stopped"), "{said}");
}

#[test]
fn a_dropped_daemon_is_dead() {
    let daemon = played("exec sleep 600");
    let proc = format!("/proc/{}", daemon.pid());
    assert!(std::path::Path::new(&proc).exists());
    drop(daemon);
    assert!(!std::path::Path::new(&proc).exists());
}

#[test]
fn a_fleet_writes_a_configuration_for_each_host_and_runs_the_real_binary() {
    let mut fleet = Fleet::new();
    fleet.start(&["a", "b"], |host| format!("[daemon]\nhost = {host:?}\n"));
    for host in ["a", "b"] {
        let config = std::fs::read_to_string(fleet.config_path(host)).unwrap();
        assert_eq!(config, format!("[daemon]\nhost = \"{host}\"\n"));
        assert_eq!(fleet[host].host(), host);
        fleet[host].kill9();
    }
}

#[test]
fn what_a_fleet_left_running_in_its_folder_ends_with_it() {
    let fleet = Fleet::new();
    let mut left = Command::new("sleep").arg("600").current_dir(fleet.folder()).spawn().unwrap();
    drop(fleet);
    eventually("it has ended", PATIENCE, || left.try_wait().unwrap().is_some());
}

//! Where the service manager has delegated a cgroup, each run has one, and the kernel kills it whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;

use crate::jobs::wait_for_beat;
use crate::support::daemon::{BINARY, Daemon};
use crate::support::fleet::Fleet;
use crate::support::machine::is_alive;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually};

/// A cgroup that is marked as delegated, as systemd does with `Delegate=yes`; gone when dropped.
struct Cgroup {
    mounted: Option<PathBuf>,
    path: PathBuf,
}

impl Cgroup {
    fn new(folder: &Path) -> Self {
        let unified = Path::new("/sys/fs/cgroup");
        let (mounted, root) = if unified.join("cgroup.procs").exists() {
            (None, unified.to_owned())
        } else {
            let point = folder.join("cgroup2");
            fs::create_dir(&point).unwrap();
            mount("none", &point, "cgroup2", MountFlags::empty(), None).unwrap();
            (Some(point.clone()), point)
        };
        let path = root.join(format!("cronlatch-test-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        rustix::fs::setxattr(&path, "user.delegate", b"1", rustix::fs::XattrFlags::empty()).unwrap();
        Self { mounted, path }
    }

    /// The groups of shims.
    fn groups(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).unwrap().filter_map(Result::ok);
        entries.map(|entry| entry.file_name().into_string().unwrap()).filter(|name| name.starts_with("shim-")).collect()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // What is left of them ends with the test's folder; a mount of its own can go before.
        fs::remove_dir(&self.path).ok();
        if let Some(point) = &self.mounted {
            unmount(point, UnmountFlags::DETACH).ok();
        }
    }
}

#[test]
fn each_run_has_a_cgroup_that_is_gone_with_the_daemon() {
    if !rustix::process::geteuid().is_root() {
        // Only root can delegate a cgroup to this test; the walk over the tree is tested without.
        return;
    }
    let fleet = Fleet::new();
    let cgroup = Cgroup::new(fleet.folder());
    let database = Database::sqlite_in(fleet.folder());
    let line = format!("{}; mark start; offspring; endure", fleet.ledger().prelude());
    let schedule = Schedule::new(&fleet, &database).job(
        "job",
        EVERY_SECOND,
        &line,
        &["timeout = \"1s\"", "kill_grace = \"200ms\""],
    );
    fleet.configure("a", &schedule.on("a"));
    let mut command = Command::new("/bin/sh");
    let config = fleet.config_path("a");
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec {BINARY} daemon --config {}",
        cgroup.path.display(),
        config.display()
    );
    command.args(["-c", &script]).current_dir(fleet.folder());
    let mut daemon = Daemon::from_command("a", command);
    let running = wait_for_beat(&fleet, "job");
    let group = fs::read_to_string(format!("/proc/{}/cgroup", running.pid)).unwrap();
    assert!(group.contains("/shim-"), "{group}");
    let ended = database.wait_for_run("job", "is stopped", |run| run.id == running.run && run.is_final());
    assert_eq!((ended.reason.as_deref(), ended.signal), (Some("timeout"), Some(9)));
    assert!(!is_alive(running.pid));
    // A shim that is killed leaves its group's processes to the fork server.
    let next = || fleet.ledger().read().iter().find(|entry| entry.run != running.run && is_alive(entry.pid)).cloned();
    let next = crate::support::wait::eventually_some("another run", PATIENCE, next);
    let shim = fs::read_to_string(format!("/proc/{}/cgroup", next.pid)).unwrap();
    let shim = shim.trim().rsplit_once("shim-").unwrap().1.parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(shim).unwrap(), Signal::KILL).unwrap();
    eventually("its tree is dead", PATIENCE, || !is_alive(next.pid));
    daemon.signal(Signal::TERM);
    assert!(daemon.wait_exit(PATIENCE).success());
    eventually("the groups are gone", PATIENCE, || cgroup.groups().is_empty());
}

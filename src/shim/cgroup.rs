//! Cgroups, where the service manager has delegated one (`Delegate=yes`, `systemd.resource-control(5)`): a group for
//! the processes of each run, which the kernel kills whole, however they fork and whoever they have become
//! (`cgroup.kill`, Linux 5.14). It is a second means: the end of a tree is known by its reaper in any case.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::process::Pid;

/// By which a manager says that what is below is somebody else's; the first needs no privilege to be read.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// The cgroup of this process, if it is delegated.
#[derive(Debug)]
pub(super) struct Delegated(OwnedFd);

/// The cgroup of one shim's run.
#[derive(Debug)]
pub(super) struct RunGroup {
    parent: OwnedFd,
    name: String,
    itself: OwnedFd,
    /// Whether it was killed. Some kernels kill whatever is born in such a group later (seen on 6.12), so it is not
    /// used again.
    was_killed: bool,
}

impl Delegated {
    /// `None` where there is none, or the kernel can't kill a group.
    pub(super) fn find() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let path = path_of(&own, &mounts)?;
        let is_marked = MARKS.iter().any(|mark| {
            let mut value = [0; 2];
            matches!(rustix::fs::getxattr(&path, *mark, &mut value), Ok(1) if value[0] == b'1')
        });
        (is_marked && path.join("cgroup.kill").exists()).then(|| open(&path).ok().map(Self)).flatten()
    }

    /// Makes the group of a shim.
    pub(super) fn make(&self, shim: Pid) -> io::Result<RunGroup> {
        let name = name_of(shim);
        match rustix::fs::mkdirat(&self.0, &name, Mode::from_raw_mode(0o755)) {
            // Of an earlier process of this number, which had no time to remove it.
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.open(name)
    }

    /// Kills what a dead shim has left, and removes its group once that is gone.
    pub(super) fn clear(&self, shim: Pid) {
        // Without it there is no group, or no right to it: the tree is killed by walking it, too.
        if let Ok(mut group) = self.open(name_of(shim)) {
            group.kill();
        }
    }

    fn open(&self, name: String) -> io::Result<RunGroup> {
        let itself = rustix::fs::openat(&self.0, &name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(RunGroup { parent: self.0.try_clone()?, name, itself, was_killed: false })
    }
}

impl RunGroup {
    /// Kills every process of the group.
    pub(super) fn kill(&mut self) {
        self.was_killed = true;
        let file = rustix::fs::openat(&self.itself, "cgroup.kill", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        // Where it can't, walking the tree does.
        if let Ok(file) = file {
            rustix::io::write(file, b"1").ok();
        }
    }
}

impl RunGroup {
    /// Whether another run can have it.
    pub(super) fn is_fresh(&self) -> bool {
        !self.was_killed
    }
}

impl AsFd for RunGroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.itself.as_fd()
    }
}

impl Drop for RunGroup {
    /// Not while processes are in it: then it stays for the next shim of this number, or for the manager.
    fn drop(&mut self) {
        rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR).ok();
    }
}

fn name_of(shim: Pid) -> String {
    format!("shim-{}", shim.as_raw_nonzero())
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Where the group of the unified hierarchy is (`cgroups(7)`, `proc_pid_mountinfo(5)`).
fn path_of(own: &str, mounts: &str) -> Option<PathBuf> {
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let is_unified = after.split(' ').next() == Some("cgroup2");
        let below = if root == "/" { group } else { group.strip_prefix(root)? };
        is_unified.then(|| Path::new(point).join(below.trim_start_matches('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_below_its_mount() {
        let own = "2:cpu:/odd\n0::/system.slice/cronlatch.service\n";
        let mounts = "30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = path_of(own, mounts).unwrap();
        assert_eq!(found, Path::new("/sys/fs/cgroup/system.slice/cronlatch.service"));
        let inside = mounts.replace("0:28 / ", "0:28 /system.slice ");
        assert_eq!(path_of(own, &inside).unwrap(), Path::new("/sys/fs/cgroup/cronlatch.service"));
        assert_eq!(path_of("2:cpu:/odd\n", mounts), None);
    }
}

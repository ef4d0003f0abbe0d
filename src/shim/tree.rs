//! The descendants of a process that is their reaper: finding them and signalling them.
//!
//! Who has made a session of its own, has forked twice or has lost its parent is still a descendant:
//! a *subreaper* inherits it (`PR_SET_CHILD_SUBREAPER`, `prctl(2)`). When the subreaper has no child any
//! more (`ECHILD`, `wait(2)`), nothing of the tree is left; until then killing is done again, for what
//! forks meanwhile is seen by the next walk.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::libc;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal};

use super::wire::{Exit, Survivors};

/// How many survivors are named.
const NAMED: usize = 5;

/// A process as `/proc/PID/stat` has it (`proc_pid_stat(5)`).
#[derive(Debug)]
struct Stat {
    name: String,
    is_zombie: bool,
    parent: i32,
    group: i32,
    session: i32,
}

/// A child that has ended and is reaped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reaped {
    pub(super) pid: Pid,
    pub(super) exit: Exit,
    pub(super) usage: Usage,
}

/// What processes used, those included that they have reaped themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Time of the processor, in user and system mode.
    pub(super) cpu: Duration,
    /// The most memory that one of them had resident.
    pub(super) memory_peak_kib: u64,
}

/// What reaping found.
#[derive(Debug)]
pub(super) struct Reaping {
    pub(super) ended: Vec<Reaped>,
    /// Whether any child is left.
    pub(super) is_alone: bool,
}

impl Usage {
    pub(super) fn add(&mut self, other: &Self) {
        self.cpu += other.cpu;
        self.memory_peak_kib = self.memory_peak_kib.max(other.memory_peak_kib);
    }

    fn of(raw: &libc::rusage) -> Self {
        let time = |time: libc::timeval| {
            let micros = time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_usec);
            Duration::from_micros(u64::try_from(micros).unwrap_or_default())
        };
        let memory_peak_kib = u64::try_from(raw.ru_maxrss).unwrap_or_default();
        Self { cpu: time(raw.ru_utime) + time(raw.ru_stime), memory_peak_kib }
    }
}

/// Reaps every child that has ended.
pub(super) fn reap() -> io::Result<Reaping> {
    let mut ended = Vec::new();
    loop {
        match wait_any() {
            Ok(Some(reaped)) => ended.push(reaped),
            Ok(None) => return Ok(Reaping { ended, is_alone: false }),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Reaping { ended, is_alone: true }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// One child that has ended, with what it used (`wait4(2)`); `None` if none has.
fn wait_any() -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers lead to values of the right type that outlive the call, and all zeros are a
    // valid `rusage`.
    #[expect(unsafe_code, reason = "no safe call tells what a child used")]
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => {
            let status = ExitStatus::from_raw(status);
            let exit = status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code);
            let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("a child without a number"))?;
            Ok(Some(Reaped { pid, exit, usage: Usage::of(&usage) }))
        }
    }
}

/// Signals every descendant of this process but those below `spared`, which are its own children.
///
/// Each is signalled by a descriptor, and only after it was seen to be a descendant once the descriptor
/// was there: its number may have become somebody else's meanwhile.
pub(super) fn signal(signal: Signal, spared: &HashSet<Pid>) {
    let tree = descendants(spared);
    let own_session = read_stat(own_pid()).map_or(0, |stat| stat.session);
    let mut groups = HashSet::new();
    for pid in &tree {
        let Some((descriptor, stat)) = open(*pid, &tree) else { continue };
        // ESRCH: it is gone already. EPERM: it has become another user's, which only that one's can kill.
        pidfd_send_signal(&descriptor, signal).ok();
        if stat.session != own_session && stat.group > 1 {
            groups.insert(stat.group);
        }
    }
    if signal == Signal::KILL {
        // All of a group at once, so that none of it forks away from the walk. A group of a session that
        // isn't ours was made below us, and has just been seen with a member.
        for group in groups.into_iter().filter_map(Pid::from_raw) {
            kill_process_group(group, signal).ok();
        }
    }
}

/// The descendants that live.
pub(super) fn survivors(spared: &HashSet<Pid>) -> Survivors {
    let alive: Vec<_> = descendants(spared)
        .into_iter()
        .filter_map(read_stat)
        .filter(|stat| !stat.is_zombie)
        .map(|stat| stat.name)
        .collect();
    Survivors { count: alive.len(), names: alive.into_iter().take(NAMED).collect() }
}

/// A descriptor of a process that is a descendant.
fn open(pid: i32, tree: &HashSet<i32>) -> Option<(std::os::fd::OwnedFd, Stat)> {
    let descriptor = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let stat = read_stat(pid)?;
    let is_ours = stat.parent == own_pid() || tree.contains(&stat.parent);
    is_ours.then_some((descriptor, stat))
}

fn descendants(spared: &HashSet<Pid>) -> HashSet<i32> {
    let children = children_lookup();
    let mut found = HashSet::new();
    let mut left = children(own_pid());
    left.retain(|pid| Pid::from_raw(*pid).is_none_or(|pid| !spared.contains(&pid)));
    while let Some(pid) = left.pop() {
        if found.insert(pid) {
            left.extend(children(pid));
        }
    }
    found
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// How children are found: by the kernel's lists, or, where it was built without them
/// (`CONFIG_PROC_CHILDREN`), by the parents of all processes.
fn children_lookup() -> Box<dyn Fn(i32) -> Vec<i32>> {
    let own = own_pid();
    if fs::exists(format!("/proc/{own}/task/{own}/children")).unwrap_or(false) {
        return Box::new(listed_children);
    }
    let mut by_parent: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in numbers_in("/proc") {
        if let Some(stat) = read_stat(pid) {
            by_parent.entry(stat.parent).or_default().push(pid);
        }
    }
    Box::new(move |pid| by_parent.get(&pid).cloned().unwrap_or_default())
}

fn listed_children(pid: i32) -> Vec<i32> {
    let of_thread = |thread: i32| {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
        list.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<i32>>()
    };
    numbers_in(&format!("/proc/{pid}/task")).into_iter().flat_map(of_thread).collect()
}

/// The entries of a folder that are numbers; none if it is gone.
fn numbers_in(folder: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn read_stat(pid: i32) -> Option<Stat> {
    // A name is any bytes.
    parse_stat(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// The name stands in parentheses and may hold some itself.
fn parse_stat(line: &str) -> Option<Stat> {
    let (head, tail) = line.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = tail.split_whitespace();
    let state = fields.next()?;
    let mut number = || fields.next()?.parse().ok();
    Some(Stat { name, is_zombie: matches!(state, "Z" | "X"), parent: number()?, group: number()?, session: number()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = parse_stat("7 (a) R (b c) S 5 6 4 0 -1 4194560").unwrap();
        assert_eq!((stat.name.as_str(), stat.is_zombie), ("a) R (b c", false));
        assert_eq!((stat.parent, stat.group, stat.session), (5, 6, 4));
        assert!(parse_stat("7 (a) Z 5 6 4").unwrap().is_zombie);
        assert!(parse_stat("").is_none());
    }

    #[test]
    fn this_process_is_found_by_its_parent_both_ways() {
        let parent = read_stat(own_pid()).unwrap().parent;
        assert!(listed_children(parent).contains(&own_pid()) || parent == 0);
    }
}

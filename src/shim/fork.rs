//! Forking, for the processes that have one thread.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::libc;
use nix::unistd::ForkResult;
use rustix::process::Pid;

/// `CLONE_INTO_CGROUP` of `linux/sched.h`.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The exit code of a forked process that panicked, which is a bug.
pub(super) const PANICKED: i32 = 101;

/// Forks a child that runs `main` and ends with its code, whatever becomes of the stack above.
///
/// Only processes with one thread may call this: no other thread can then hold a lock, of the allocator
/// for one, that nobody would ever free in the child.
///
/// With a cgroup the child is born in it (`CLONE_INTO_CGROUP`, `clone(2)`): moving a process there later waits for all
/// forks of the machine.
pub(super) fn fork(cgroup: Option<BorrowedFd<'_>>, main: impl FnOnce() -> i32) -> io::Result<Pid> {
    let forked = match cgroup {
        Some(cgroup) => clone_into(cgroup).or_else(|_| plain()),
        None => plain(),
    };
    if let Some(child) = forked? {
        return Ok(child);
    }
    let code = catch_unwind(AssertUnwindSafe(main)).unwrap_or(PANICKED);
    // SAFETY: it ends this process and touches nothing of it.
    #[expect(unsafe_code, reason = "exit(3) would run what the parent has registered for its own end")]
    unsafe {
        libc::_exit(code)
    }
}

/// The child; `None` in the child.
fn plain() -> io::Result<Option<Pid>> {
    // SAFETY: the caller's process has one thread, so the child may do what the parent may.
    #[expect(unsafe_code, reason = "there is no safe fork")]
    let forked = unsafe { nix::unistd::fork() };
    match forked? {
        ForkResult::Parent { child } => Ok(Pid::from_raw(child.as_raw())),
        ForkResult::Child => Ok(None),
    }
}

fn clone_into(cgroup: BorrowedFd<'_>) -> io::Result<Option<Pid>> {
    // SAFETY: all zeros are valid for it.
    #[expect(unsafe_code, reason = "a plain structure of numbers")]
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = u64::try_from(libc::SIGCHLD).expect("signals are positive");
    args.cgroup = u64::try_from(cgroup.as_raw_fd()).expect("descriptors are positive");
    // SAFETY: without a stack and shared memory it is a fork, which the one thread of the caller's process may
    // do; the structure outlives the call and its size is told.
    #[expect(unsafe_code, reason = "the C library has no function for it")]
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(i32::try_from(pid).ok().and_then(Pid::from_raw)),
    }
}

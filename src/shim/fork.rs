//! Forking, for the processes that have one thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::unistd::ForkResult;
use rustix::process::Pid;

/// The exit code of a forked process that panicked, which is a bug.
pub(super) const PANICKED: i32 = 101;

/// Forks a child that runs `main` and ends with its code, whatever becomes of the stack above.
///
/// Only processes with one thread may call this: no other thread can then hold a lock, of the allocator
/// for one, that nobody would ever free in the child.
pub(super) fn fork(main: impl FnOnce() -> i32) -> std::io::Result<Pid> {
    // SAFETY: the caller's process has one thread, so the child may do what the parent may.
    #[expect(unsafe_code, reason = "there is no safe fork")]
    let forked = unsafe { nix::unistd::fork() };
    match forked.map_err(std::io::Error::from)? {
        ForkResult::Parent { child } => Ok(Pid::from_raw(child.as_raw()).expect("a child's number is not zero")),
        ForkResult::Child => {
            let code = catch_unwind(AssertUnwindSafe(main)).unwrap_or(PANICKED);
            // SAFETY: it ends this process and touches nothing of it.
            #[expect(unsafe_code, reason = "exit(3) would run what the parent has registered for its own end")]
            unsafe {
                nix::libc::_exit(code)
            }
        }
    }
}

//! What the shim's processes do about signals.

use std::io;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Blocks every signal that can be blocked, for good, and gives a descriptor that is readable when a
/// child has ended: neither a terminal's interrupt nor a service manager's TERM ends a guard before its job.
pub(super) fn block_all_but_children() -> io::Result<SignalFd> {
    SigSet::all().thread_block()?;
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    Ok(SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// Takes what the descriptor has, so that it becomes readable with the next one.
pub(super) fn drain(children: &SignalFd) {
    while let Ok(Some(_)) = children.read_signal() {}
}

/// Undoes what this process and those before it did about signals: a program starts with the defaults,
/// also if the daemon was started by `nohup`.
pub(super) fn reset() -> io::Result<()> {
    for number in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
        // SAFETY: the default action runs no code of ours.
        #[expect(unsafe_code, reason = "a handler could do anything; the default does not")]
        unsafe {
            signal(number, SigHandler::SigDfl)?;
        }
    }
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

//! What the shim's processes do about signals.

use std::io;

use nix::sys::signal::{SigHandler, SigSet, Signal};
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

/// Undoes what this process's runtime and those who started it did about signals: a program starts with the
/// defaults, also if the daemon was started by `nohup`. Done once, for what is forked inherits it; nothing here
/// relies on any handler.
pub(super) fn reset() -> io::Result<()> {
    for number in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
        handle(number, SigHandler::SigDfl)?;
    }
    Ok(())
}

/// Lets all signals through again, for the program that is executed next.
pub(super) fn unblock() -> io::Result<()> {
    Ok(SigSet::empty().thread_set_mask()?)
}

/// Makes writing to a pipe without a reader an error instead of an end.
pub(super) fn ignore_broken_pipes() {
    // It can't fail for a signal that exists.
    handle(Signal::SIGPIPE, SigHandler::SigIgn).ok();
}

fn handle(signal: Signal, handler: SigHandler) -> io::Result<()> {
    // SAFETY: neither the default action nor ignoring runs code of ours.
    #[expect(unsafe_code, reason = "a handler could do anything; these two do not")]
    unsafe {
        nix::sys::signal::signal(signal, handler)?;
    }
    Ok(())
}

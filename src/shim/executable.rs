use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};

use super::fork_server;

/// The argument that makes this executable a fork server, and nothing else.
pub(super) const ENTRY: &str = "fork-server-of-a-daemon";

/// An executable file, kept open: after an upgrade its path names another version, whose messages this one
/// may not understand.
#[derive(Debug)]
pub struct Executable(OwnedFd);

impl Executable {
    /// The one of this process.
    ///
    /// # Errors
    /// When `/proc` is not mounted, or no descriptor is left.
    pub fn own() -> io::Result<Self> {
        Self::at(Path::new("/proc/self/exe"))
    }

    /// The one at a path, which must be a `cronlatch` of this version.
    ///
    /// # Errors
    /// When it can't be opened.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// The path by which a child of this process executes it.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// If this process was executed as a fork server: its whole life. To be called before anything else is
/// done, for a fork server has one thread and no descriptors of others.
pub fn enter() -> Option<ExitCode> {
    if std::env::args_os().nth(1).as_deref() != Some(OsStr::new(ENTRY)) {
        return None;
    }
    close_inherited();
    let served = take_socket().and_then(fork_server::main);
    // There is nowhere to tell: the daemon notices that it is gone.
    Some(if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The socket comes as standard input, which no job is to have.
fn take_socket() -> io::Result<OwnedFd> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(null.as_fd())?;
    Ok(socket)
}

/// Closes what whoever started the daemon left open. Before Linux 5.9 it stays.
fn close_inherited() {
    // SAFETY: this process has just been executed and has opened nothing: no value owns any of these.
    #[expect(unsafe_code, reason = "the C library of some systems has no function for it")]
    unsafe {
        nix::libc::syscall(nix::libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
    }
}

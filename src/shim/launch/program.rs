use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::execve;

use super::environment::c_string;
use super::{Failed, refused};

/// What reads a script without an interpreter line, as `execvp(3)` has it.
const SHELL: &std::ffi::CStr = c"/bin/sh";

/// Executes a program; comes back only if that fails.
pub(super) fn execute(argv: &[CString], env: &[(String, String)]) -> Failed {
    let Some(name) = argv.first() else {
        return refused("execute it".to_owned(), "it names no program");
    };
    let env_strings = env.iter().map(|(name, value)| c_string(&format!("{name}={value}")));
    let env_strings: Vec<CString> = match env_strings.collect() {
        Ok(strings) => strings,
        Err(failed) => return failed,
    };
    close_all_but_streams();
    let shown = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    if name.as_bytes().contains(&b'/') {
        let error = try_one(name, argv, &env_strings);
        return Failed { what: format!("execute {shown:?}{}", hint(error, shown)), error: error.into() };
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, value)| value);
    let error = search(path, argv, &env_strings);
    Failed { what: format!("execute {shown:?}, searched for in PATH={path:?}"), error }
}

/// Tries the folders of `PATH` in order, as `execvp(3)` does: not allowed is said only if it is found
/// nowhere else.
fn search(path: &str, argv: &[CString], env: &[CString]) -> io::Error {
    let mut refused = None;
    for folder in path.split(':') {
        let candidate = PathBuf::from(if folder.is_empty() { "." } else { folder })
            .join(std::ffi::OsStr::from_bytes(argv[0].as_bytes()));
        let Ok(candidate) = CString::new(candidate.as_os_str().as_bytes()) else { continue };
        match try_one(&candidate, argv, env) {
            Errno::ENOENT | Errno::ENOTDIR | Errno::ENODEV | Errno::ESTALE | Errno::ETIMEDOUT => {}
            Errno::EACCES => refused = Some(Errno::EACCES),
            other => return other.into(),
        }
    }
    refused.unwrap_or(Errno::ENOENT).into()
}

fn try_one(program: &CString, argv: &[CString], env: &[CString]) -> Errno {
    let Err(error) = execve(program, argv, env);
    if error != Errno::ENOEXEC {
        return error;
    }
    // A script without an interpreter line.
    let mut shell_argv = vec![SHELL.to_owned(), program.clone()];
    shell_argv.extend(argv.iter().skip(1).cloned());
    let Err(error) = execve(SHELL, &shell_argv, env);
    error
}

/// What `ENOENT` means for a file that is there: its interpreter is not.
fn hint(error: Errno, program: &Path) -> &'static str {
    if error == Errno::ENOENT && program.exists() { " (it is there; its interpreter is not)" } else { "" }
}

/// Lets the kernel close everything but the three streams on exec: what the daemon was started with
/// (`close_range(2)`, Linux 5.11; before that all of ours is closed, for it was opened so).
fn close_all_but_streams() {
    // SAFETY: it marks descriptors for the exec that follows and closes nothing now.
    #[expect(unsafe_code, reason = "the C library of some systems has no function for it")]
    unsafe {
        nix::libc::syscall(nix::libc::SYS_close_range, 3_u32, u32::MAX, nix::libc::CLOSE_RANGE_CLOEXEC);
    }
}

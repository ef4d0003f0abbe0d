//! Folders and processes that are gone when the test process is, however it ended.
//!
//! A destructor does not run for statics, on abort or on SIGKILL. So each [`Scratch`] has a guard:
//! a small shell outside the test's process group that reads from a pipe whose other end only the
//! test process holds. At end-of-file it ends every process whose working directory lies in the
//! folder, then removes the folder. What shall be cleaned up so is started *in* the folder.

use std::io::PipeWriter;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

/// Says that folders stay for a look at them; their processes end all the same.
const KEEP: &str = "CRONLATCH_TEST_KEEP";

/// `$1` the folder, `$2` the first signal, `$3` not empty: the folder stays. The signal goes to
/// stopped processes too (CONT); what is still there after two seconds is killed.
const GUARD: &str = r#"
read -r _ || :
signal=$2 rounds=0
while [ $rounds -lt 400 ]; do
    pids=$(find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$1" -o -lname "$1/*" \) 2>/dev/null | cut -d / -f 3)
    [ -n "$pids" ] || break
    [ $rounds -lt 100 ] || signal=KILL
    case $signal$rounds in QUIT0|KILL*) kill -s $signal $pids; kill -s CONT $pids ;; esac
    rounds=$((rounds + 1))
    sleep 0.02
done
[ -n "$3" ] || rm -rf -- "$1"
"#;

/// How the guard ends the processes of a folder.
#[derive(Clone, Copy, Debug)]
pub enum Farewell {
    /// SIGKILL at once.
    Kill,
    /// SIGQUIT first: PostgreSQL's immediate shutdown, which gives its shared memory back.
    Quit,
}

/// A folder of its own for one test or one server, with a guard.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The test's end of the guard's pipe; `None` once let go.
    lifeline: Option<PipeWriter>,
    guard: Child,
}

impl Scratch {
    /// Makes an empty folder, readable by all, whose name begins with `prefix`.
    pub fn new(prefix: &str, farewell: Farewell) -> Self {
        let path = fresh_folder(prefix);
        let (reader, lifeline) = io::pipe().expect("a pipe can be made");
        let signal = match farewell {
            Farewell::Kill => "KILL",
            Farewell::Quit => "QUIT",
        };
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "cronlatch-test-guard"])
            .arg(&path)
            .args([signal, env::var(KEEP).as_deref().unwrap_or_default()])
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()
            .expect("/bin/sh can be started");
        Self { path, lifeline: Some(lifeline), guard }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let gone = self.guard.wait();
        assert!(gone.is_ok() || std::thread::panicking(), "the guard of {} is lost", self.path.display());
    }
}

/// `/var/tmp/cronlatch-test-UID`: where all folders of the suite are, and what it keeps between
/// two runs. Not under the target folder, because another user's server must be able to reach it.
pub fn base() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    let base = PathBuf::from(format!("/var/tmp/cronlatch-test-{uid}"));
    if let Err(e) = fs::create_dir(&base) {
        assert!(e.kind() == io::ErrorKind::AlreadyExists, "can't make {}: {e}", base.display());
    }
    let found = fs::symlink_metadata(&base).expect("the folder is there");
    assert!(found.is_dir() && found.uid() == uid, "{} belongs to somebody else: remove it", base.display());
    open_to_readers(&base);
    base
}

/// Lets every user read and enter `folder`, whatever the umask is.
pub fn open_to_readers(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("the folder is our own");
}

fn fresh_folder(prefix: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = base();
    loop {
        let path = base.join(format!("{prefix}-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        match fs::create_dir(&path) {
            Ok(()) => {
                open_to_readers(&path);
                return path;
            }
            // Left by a process of the same id whose guard was killed too.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => panic!("can't make {}: {e}", path.display()),
        }
    }
}

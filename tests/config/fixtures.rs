//! Folders with schedule files, and what is said about them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use cronlatch::config::{self, Loaded};
use tempfile::TempDir;

/// A main file without a fault.
pub const GOOD: &str =
    "[database]\nurl = \"sqlite:///tmp/a.db\"\n[jobs.a]\nschedule = \"0 3 * * *\"\ncommand = [\"true\"]\n";

/// The head of a main file whose jobs follow.
pub const HEAD: &str = "[database]\nurl = \"sqlite:///tmp/a.db\"\n";

/// A folder with these files.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(folder.path(), name, text.as_bytes());
    }
    folder
}

/// Modes are set, so that the tests don't hang on whoever runs them.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    let parent = path.parent().unwrap();
    fs::create_dir_all(parent).unwrap();
    fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// Loads the main file of a folder.
pub fn load(folder: &TempDir) -> Loaded {
    config::load(&folder.path().join("cronlatch.toml"))
}

/// The messages, without the name of the folder.
pub fn lines(folder: &TempDir, loaded: &Loaded) -> Vec<String> {
    let prefix = format!("{}/", folder.path().display());
    loaded.problems.iter().map(|problem| problem.to_string().replace(&prefix, "")).collect()
}

/// The messages about a main file.
pub fn lines_of(main: &str) -> Vec<String> {
    let folder = folder(&[("cronlatch.toml", main)]);
    lines(&folder, &load(&folder))
}

/// A main file with one job that has a schedule, a command and these keys, from line 6 on.
pub fn job(keys: &str) -> String {
    format!("{HEAD}[jobs.a]\nschedule = \"0 3 * * *\"\ncommand = [\"true\"]\n{keys}\n")
}

/// So many seconds.
pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The names of the jobs.
pub fn names(loaded: &Loaded) -> Vec<&str> {
    loaded.jobs.iter().map(|job| job.name.as_str()).collect()
}

/// Loads a main file that must be without a fault.
pub fn good(main: &str) -> Loaded {
    let folder = folder(&[("cronlatch.toml", main)]);
    let loaded = load(&folder);
    assert_eq!(lines(&folder, &loaded), Vec::<String>::new(), "{main}");
    assert!(loaded.is_usable());
    loaded
}

//! Folders with schedule files, and what is said about them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use chrono::SecondsFormat;
use cronlatch::config::{self, Loaded, Problem};
use cronlatch::job::Job;
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

/// A main file with one job that has a command and these keys, from line 5 on.
pub fn bare(keys: &str) -> String {
    format!("{HEAD}[jobs.a]\ncommand = [\"true\"]\n{keys}\n")
}

/// The warnings of a check-up of a main file without a fault, without the name of the folder. That a job has
/// no `user` is left out: hardly one of those in these tests has.
#[track_caller]
pub fn warnings(main: &str) -> Vec<String> {
    let folder = folder(&[("cronlatch.toml", main)]);
    let checked = config::check(&folder.path().join("cronlatch.toml"));
    assert_eq!(lines(&folder, &checked), Vec::<String>::new(), "{main}");
    assert!(load(&folder).warnings.is_empty() && load(&folder).words.is_empty(), "only a check-up looks for them");
    let prefix = format!("{}/", folder.path().display());
    let has_no_user = |warning: &&Problem| {
        warning.key.as_ref().is_some_and(|key| key.ends_with(".user")) && warning.wrong.starts_with("missing")
    };
    checked
        .warnings
        .iter()
        .filter(|warning| !has_no_user(warning))
        .map(|warning| warning.to_string().replace(&prefix, ""))
        .collect()
}

/// The next instants of a job after the start of a day in UTC.
pub fn instants(job: &Job, from: &str, number: usize) -> Vec<String> {
    let mut at = format!("{from}T00:00:00Z").parse().unwrap();
    let next = || {
        at = job.schedule.next_after(at)?;
        Some(at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    };
    std::iter::from_fn(next).take(number).collect()
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
#[track_caller]
pub fn good(main: &str) -> Loaded {
    let folder = folder(&[("cronlatch.toml", main)]);
    let loaded = load(&folder);
    assert_eq!(lines(&folder, &loaded), Vec::<String>::new(), "{main}");
    assert!(loaded.is_usable());
    loaded
}

//! What can be found out on this host alone: only `cronlatch check` asks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::document::{Field, Place};
use super::password_file::read_password;
use super::problem::Problem;
use super::typed_job::TypedJob;
use crate::clock::human;
use crate::job::{Command, Job, JobName, Stdin};
use crate::lock::{Resource, Ttl};

/// Where systemd puts a unit's credentials, from its start to its end.
const CREDENTIALS: &str = "/run/credentials";

/// A password file that could not be used.
pub fn unfit_password_file(file: &Field<PathBuf>) -> Option<Problem> {
    let file = file.typed()?;
    if file.value.starts_with(CREDENTIALS) && !file.value.exists() {
        return None;
    }
    let unfit = read_password(&file.value).err()?;
    Some(file.place.problem(unfit.to_string(), unfit.remedy(&file.value)))
}

/// A program, a file or a folder that is not there.
pub fn of_job(keys: &TypedJob) -> Vec<Problem> {
    const REMEDY: &str = "make it before the job is due, or mend the path";
    let notices = [&keys.notices.on_failure, &keys.notices.on_recovery];
    let notices = notices.into_iter().filter_map(|notice| notice.typed());
    let notices = notices.filter_map(|notice| absent_program(notice.value.as_ref()?, &notice.place));
    let command = keys.command.typed().and_then(|command| absent_program(&command.value, &command.place));
    let directory = keys.directory.typed().and_then(|directory| {
        let wrong = no_directory(&directory.value)?;
        Some(directory.place.problem(wrong, REMEDY))
    });
    let env_file = keys.process.env_file.typed().map(|file| (&file.value, &file.place));
    let stdin = keys.process.stdin.typed().and_then(|stdin| match &stdin.value {
        Stdin::File(file) => Some((file, &stdin.place)),
        Stdin::Empty | Stdin::Text(_) => None,
    });
    let files = env_file.into_iter().chain(stdin).filter_map(|(file, place)| {
        let wrong = no_file(file)?;
        Some(place.problem(wrong, REMEDY))
    });
    command.into_iter().chain(directory).chain(files).chain(notices).collect()
}

fn absent_program(command: &Command, place: &Place) -> Option<Problem> {
    let wrong = match command {
        Command::Argv(argv) => no_program(Path::new(argv.first()?))?,
        Command::Shell(_) => return None,
    };
    Some(place.problem(wrong, "install it before the job is due, or mend the path"))
}

/// What can't be looked at may be there.
fn no_program(path: &Path) -> Option<String> {
    if !path.is_absolute() {
        return None;
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => None,
        Ok(_) => Some(format!("{} is not executable on this host", path.display())),
        Err(error) => is_absent(&error).then(|| format!("{} doesn't exist on this host", path.display())),
    }
}

fn no_directory(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Ok(found) => (!found.is_dir()).then(|| "not a directory on this host".to_owned()),
        Err(error) => is_absent(&error).then(|| "doesn't exist on this host".to_owned()),
    }
}

/// It may well be a pipe or a device.
fn no_file(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Ok(found) => found.is_dir().then(|| format!("{} is a directory on this host", path.display())),
        Err(error) => is_absent(&error).then(|| format!("{} doesn't exist on this host", path.display())),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Which job names each lock first, and with what TTL.
#[derive(Default)]
pub struct Locks(BTreeMap<Resource, (JobName, Place, Ttl)>);

impl Locks {
    /// Takes a job in; a warning if another has the same lock with another TTL: how long the lock
    /// outlives a dead host then depends on which of the two held it.
    pub fn add(&mut self, job: &Job, place: &Place) -> Option<Problem> {
        let ttl = job.timing.ttl();
        let Some((first, there, other)) = self.0.get(&job.resource) else {
            self.0.insert(job.resource.clone(), (job.name.clone(), place.clone(), ttl));
            return None;
        };
        (*other != ttl).then(|| {
            let (own, other) = (human(ttl.get()), human(other.get()));
            let wrong = format!(
                "job {first} ({}) has this lock with a ttl of {other}, this one has it with {own}",
                there.seen_from(place)
            );
            place.problem(wrong, "give both the same ttl")
        })
    }
}

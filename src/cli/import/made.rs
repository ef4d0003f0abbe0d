//! From an entry to a job's table.

use std::path::Path;

use chrono_tz::Tz;

use super::crontab::Entry;
use super::document::Table;
use super::entry::When;
use super::hints::{is_carried_over, is_supported, shortened};
use super::name::Names;
use super::note::{Kind, Note};
use super::shell;
use super::times::Read;
use crate::job::schedule::Schedule;

/// What became of an entry.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// The job; `None` if the entry was not carried over.
    pub job: Option<Job>,
    /// All that is to be said, the entry's own notes included.
    pub notes: Vec<Note>,
}

/// A job that was made.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub name: String,
    pub toml: String,
    pub zone: Tz,
    pub read: Read,
}

/// cron's own.
const PATH: &str = "/usr/bin:/bin";

/// What holds for all entries of a file.
pub(super) struct Making<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// The zone of entries that have none.
    pub zone: Tz,
    pub names: &'a mut Names,
}

impl Making<'_> {
    /// Makes the job of an entry.
    pub(super) fn of(&mut self, entry: &Entry) -> Made {
        let mut notes = entry.notes.clone();
        let zone = entry.zone.unwrap_or(self.zone);
        let read = match &entry.when {
            When::Times(read) => read,
            When::Reboot => {
                let what = "a boot is no instant that several hosts share, so @reboot is no schedule";
                notes.push(Note::new(
                    entry.line,
                    Kind::Dropped,
                    what,
                    "start it from a systemd unit, or leave the line to cron",
                ));
                return Made { job: None, notes };
            }
        };
        if let Err(error) = Schedule::parse(&read.text, zone) {
            notes.push(Note::new(entry.line, Kind::Dropped, error.to_string(), ""));
            return Made { job: None, notes };
        }
        notes.extend(of_user(entry));
        let name = self.names.give(&entry.parts.command);
        let toml = self.table(&name, entry, read, zone);
        Made { job: Some(Job { name, toml, zone, read: read.clone() }), notes }
    }

    fn table(&self, name: &str, entry: &Entry, read: &Read, zone: Tz) -> String {
        let above = format!("{}:{}: {}", self.file, entry.line, shortened(&entry.typed));
        let mut table = Table::job(name, &above);
        if let Some(description) = &entry.description {
            table.text("description", description);
        }
        table.text("schedule", &read.text);
        table.text("timezone", zone.name());
        let value =
            |name: &str| entry.variables.iter().find(|known| known.name == name).map(|known| known.value.as_str());
        table.command(&shell::command(value("SHELL"), &entry.parts));
        if let Some(uncut) = &entry.uncut {
            table.remark(&format!("if percent signs are meant: shell = {}", super::document::string(uncut)));
        }
        table.texts("env", &environment(entry));
        if let Some(home) = value("HOME").filter(|home| Path::new(home).is_absolute()) {
            table.text("directory", home);
        }
        match &entry.user {
            Some(user) if is_supported("user") => table.text("user", user),
            Some(user) => table.remark(&format!("user = {}", super::document::string(user))),
            None => {}
        }
        if let Some(address) = value("MAILTO").filter(|address| !address.is_empty()) {
            table.remark(&format!("on_failure: cron mailed all output to {address}"));
        }
        table.finish()
    }
}

/// The variables of the crontab, and cron's PATH where it sets none.
fn environment(entry: &Entry) -> Vec<(String, String)> {
    let carried = entry.variables.iter().filter(|variable| is_carried_over(variable, &entry.parts.command));
    let mut env: Vec<(String, String)> =
        carried.map(|variable| (variable.name.clone(), variable.value.clone())).collect();
    if !env.iter().any(|(name, _)| name == "PATH") {
        env.insert(0, ("PATH".to_owned(), PATH.to_owned()));
    }
    env
}

/// A user other than root, whom the daemon is as a rule.
fn of_user(entry: &Entry) -> Option<Note> {
    let user = entry.user.as_deref().filter(|user| *user != "root" && !is_supported("user"))?;
    let what = format!("it ran as {user}, and would run as the user of the daemon: this version has no key user yet");
    Some(Note::new(entry.line, Kind::Differs, what, format!("put \"runuser -u {user} --\" before the command")))
}

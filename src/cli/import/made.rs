//! From an entry to a job's table.

use std::path::Path;

use chrono_tz::Tz;

use super::crontab::Entry;
use super::document::{Table, string};
use super::entry::When;
use super::hints::{is_carried_over, shortened};
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
    /// All that is to be said of it.
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
    /// Makes the job of an entry. One that has none has no other notes either.
    pub(super) fn of(&mut self, entry: &Entry) -> Made {
        let zone = entry.zone.unwrap_or(self.zone);
        let dropped = |what: String, remedy: &str| Made {
            job: None,
            notes: vec![Note::new(entry.line, Kind::Dropped, what, remedy)],
        };
        let read = match &entry.when {
            When::Times(read) => read,
            When::Reboot => {
                let what = "a boot is no instant that several hosts share, so @reboot is no schedule".to_owned();
                return dropped(what, "start it from a systemd unit, or leave the line to cron");
            }
        };
        if entry.parts.command.trim().is_empty() {
            let what = "the first % ends the command before it begins, so cron ran nothing".to_owned();
            return dropped(what, "write \\% where a percent sign is meant");
        }
        if let Err(error) = Schedule::parse(&read.text, zone) {
            return dropped(error.to_string(), "");
        }
        let name = self.names.give(&entry.parts.command);
        let toml = self.table(&name, entry, read, zone);
        Made { job: Some(Job { name, toml, zone, read: read.clone() }), notes: entry.notes.clone() }
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
        table.command(&shell::command(value("SHELL"), &entry.parts.command));
        if let Some(uncut) = &entry.uncut {
            table.remark(&format!("if percent signs are meant: shell = {}", string(uncut)));
        }
        if let Some(input) = &entry.parts.input {
            table.text("stdin", input);
        }
        if let Some(user) = &entry.user {
            table.text("user", user);
        }
        table.texts("env", &environment(entry));
        if let Some(home) = value("HOME").filter(|home| Path::new(home).is_absolute()) {
            table.text("directory", home);
        }
        if let Some(address) = value("MAILTO").filter(|address| !address.is_empty()) {
            let words = ["mail", "-s", &format!("{name} failed"), address].map(string);
            table.remark(&format!("cron mailed all output; for failures: on_failure = [{}]", words.join(", ")));
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

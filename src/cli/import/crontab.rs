//! A crontab from its first line to its last: each entry with what holds for it.

use chrono_tz::Tz;

use super::comments::Comments;
use super::entry::{self, When};
use super::hints;
use super::note::{Kind, Note};
use super::percent::{self, Parts};
use super::source::{Form, Source};
use super::variable::{self, Variable};
use crate::job::schedule::parse_zone;

/// An entry with what the lines above it say.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub line: usize,
    /// The line as it was typed.
    pub typed: String,
    pub description: Option<String>,
    pub when: When,
    pub user: Option<String>,
    pub parts: Parts,
    /// The whole command, as if no percent sign had a meaning; where cron cut it short.
    pub uncut: Option<String>,
    /// All that the lines above set, the last of each name.
    pub variables: Vec<Variable>,
    /// `CRON_TZ`.
    pub zone: Option<Tz>,
    pub notes: Vec<Note>,
}

/// What was read of a file.
#[derive(Debug, Default)]
pub(super) struct Crontab {
    pub entries: Vec<Entry>,
    /// What concerns no entry: lines that can't be read, variables, the file.
    pub notes: Vec<Note>,
}

/// The longest line of a command and of a variable that Debian's cron takes, in bytes.
const DEBIANS_LONGEST: usize = 998;

impl Crontab {
    /// Reads all lines.
    pub(super) fn read(source: &Source) -> Self {
        let mut reading = Reading {
            form: source.form,
            owner: source.owner.clone(),
            comments: Comments::default(),
            variables: Vec::new(),
            zone: None,
            crontab: Self { notes: source.notes(), ..Self::default() },
        };
        for (number, line) in source.lines() {
            reading.line(number, line);
        }
        let mut crontab = reading.crontab;
        hints::duplicates(&mut crontab.entries);
        hints::of_owner(source, &mut crontab);
        crontab.notes.sort_by_key(|note| note.line);
        crontab
    }
}

struct Reading {
    form: Form,
    owner: Option<String>,
    comments: Comments,
    variables: Vec<Variable>,
    zone: Option<Tz>,
    crontab: Crontab,
}

impl Reading {
    fn line(&mut self, number: usize, line: Result<&str, &'static str>) {
        let line = match line {
            Ok(line) => line,
            Err(wrong) => return self.unreadable(number, wrong),
        };
        let text = line.trim_start_matches([' ', '\t']);
        if text.is_empty() {
            self.comments.end();
        } else if let Some(comment) = text.strip_prefix('#') {
            self.comments.add(comment, self.form);
        } else if let Some(variable) = variable::read(text) {
            self.comments.end();
            self.variable(number, text, variable);
        } else {
            match entry::read(text, self.form) {
                Ok(entry) => self.entry(number, text, &entry),
                Err(wrong) => self.unreadable(number, &wrong),
            }
        }
    }

    fn unreadable(&mut self, number: usize, wrong: &str) {
        self.comments.end();
        self.note(number, Kind::Unreadable, wrong, "");
    }

    fn note(&mut self, number: usize, kind: Kind, what: impl Into<String>, remedy: impl Into<String>) {
        self.crontab.notes.push(Note::new(number, kind, what, remedy));
    }

    fn entry(&mut self, number: usize, text: &str, entry: &entry::Entry<'_>) {
        let parts = percent::cut(entry.command);
        let mut notes = hints::of_entry(number, self.form, entry, &parts);
        if entry.command.len() > DEBIANS_LONGEST {
            let what =
                format!("Debian's cron refuses a command of more than {DEBIANS_LONGEST} bytes, and with it the file");
            notes.push(Note::new(number, Kind::Differs, what, "it was carried over"));
        }
        self.crontab.entries.push(Entry {
            line: number,
            typed: text.to_owned(),
            description: self.comments.take(),
            when: entry.when.clone(),
            user: entry.user.map(str::to_owned).or_else(|| self.owner.clone()),
            uncut: hints::is_cut_short(&parts).then(|| entry.command.replace("\\%", "%")),
            parts,
            variables: self.variables.clone(),
            zone: self.zone,
            notes,
        });
    }

    fn variable(&mut self, number: usize, text: &str, variable: Variable) {
        if text.len() > DEBIANS_LONGEST {
            let what = format!("Debian's cron cuts a variable off after {DEBIANS_LONGEST} bytes");
            self.note(number, Kind::Differs, what, "it was carried over whole");
        }
        if text.trim_end().ends_with('=') && variable.value.is_empty() {
            let what = "Debian's cron refuses a variable without a value, and with it the whole file";
            self.note(number, Kind::Differs, what, format!("read as {}=\"\"", variable.name));
        }
        if variable.name == "CRON_TZ" {
            self.cron_tz(number, &variable.value);
        } else if let Some(note) = hints::of_variable(number, &variable) {
            self.crontab.notes.push(note);
        }
        self.variables.retain(|known| known.name != variable.name);
        self.variables.push(variable);
    }

    fn cron_tz(&mut self, number: usize, value: &str) {
        if value.is_empty() {
            self.zone = None;
            return;
        }
        match parse_zone(value) {
            Ok(zone) => {
                self.zone = Some(zone);
                let what = format!("cronie reads the entries below in {zone}, Debian's cron ignores CRON_TZ");
                self.note(
                    number,
                    Kind::Differs,
                    what,
                    "their jobs are in that zone; change timezone if it isn't wanted",
                );
            }
            Err(error) => {
                self.zone = None;
                self.note(
                    number,
                    Kind::Unreadable,
                    format!("CRON_TZ: {error}"),
                    "the jobs below are in the zone of all",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(text: &str, name: &str) -> Crontab {
        Crontab::read(&Source::of_text(Path::new(name), text))
    }

    #[test]
    fn variables_hold_for_the_entries_below_them() {
        let crontab =
            read("@daily a\nA=1\nB=2\n@daily b\nA=3\nCRON_TZ=Asia/Tokyo\n@daily c\nCRON_TZ=\n@daily d\n", "x");
        let values = |entry: &Entry| {
            let all = entry.variables.iter().filter(|variable| variable.name != "CRON_TZ");
            all.map(|variable| format!("{}={}", variable.name, variable.value)).collect::<Vec<_>>().join(" ")
        };
        let of: Vec<_> = crontab.entries.iter().map(|entry| (values(entry), entry.zone)).collect();
        let expected = [("", None), ("A=1 B=2", None), ("B=2 A=3", Some(Tz::Asia__Tokyo)), ("B=2 A=3", None)];
        assert_eq!(of, expected.map(|(values, zone)| (values.to_owned(), zone)));
    }

    #[test]
    fn a_line_that_cannot_be_read_hides_no_other() {
        let crontab = read("61 * * * * a\n* * * * * b\nnonsense\nCRON_TZ=CET\n@daily c\n", "x");
        assert_eq!(crontab.entries.len(), 2);
        let unreadable = |note: &&Note| note.kind == Kind::Unreadable;
        let lines: Vec<_> = crontab.notes.iter().filter(unreadable).map(|note| note.line).collect();
        assert_eq!(lines, [Some(1), Some(3), Some(4)]);
    }

    #[test]
    fn the_owner_of_a_spool_file_is_the_user_of_its_entries() {
        assert_eq!(read("@daily a\n", "/var/spool/cron/crontabs/joe").entries[0].user.as_deref(), Some("joe"));
        assert_eq!(read("@daily joe a\n", "/etc/crontab").entries[0].user.as_deref(), Some("joe"));
        assert_eq!(read("@daily joe a\n", "x").entries[0].user, None);
    }

    #[test]
    fn a_command_that_was_cut_short_keeps_its_whole_text_beside_it() {
        let crontab = read("@daily tar czf b-$(date +%F).tgz /srv\n@daily date +\\%F\n", "x");
        assert_eq!(crontab.entries[0].uncut.as_deref(), Some("tar czf b-$(date +%F).tgz /srv"));
        assert_eq!(crontab.entries[1].uncut, None);
    }
}

//! What people trip over: lines that cron takes otherwise than they were meant, and commands whose
//! surroundings are others under cronlatch.

use std::path::Path;

use super::crontab::{Crontab, Entry};
use super::document;
use super::entry::{self, When, looks_like_a_field};
use super::note::{Kind, Note};
use super::percent::Parts;
use super::source::{Form, Source};
use super::variable::Variable;
use super::words;

/// Users that a system crontab names, and that are no programs.
const USERS: [&str; 9] = ["root", "daemon", "nobody", "www-data", "apache", "nginx", "postgres", "mysql", "ubuntu"];

/// What is cron's own business and goes no further.
const FOR_MAIL: [&str; 4] = ["MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"];

/// Whether a variable goes into the environment of the jobs.
pub(super) fn is_carried_over(variable: &Variable, command: &str) -> bool {
    let is_crons_own = variable.name == "CRON_TZ" || FOR_MAIL.contains(&variable.name.as_str());
    let is_refused = variable.name.is_empty() || variable.name.starts_with("CRONLATCH_") || variable.name == "LOGNAME";
    let is_empty_shell = variable.name == "SHELL" && variable.value.is_empty();
    !is_refused && !is_empty_shell && (!is_crons_own || command.contains(&variable.name))
}

/// What is to be said of a variable.
pub(super) fn of_variable(line: usize, variable: &Variable) -> Option<Note> {
    let value = variable.value.as_str();
    let is_relative = !Path::new(value).is_absolute();
    let (kind, what, remedy) = match variable.name.as_str() {
        name if FOR_MAIL.contains(&name) => of_mail(name, value),
        "TZ" => {
            let what = "TZ changes what commands see, not when they run; it went into env".to_owned();
            (Kind::Doubtful, what, "change timezone of the jobs below if another time was meant")
        }
        "RANDOM_DELAY" => {
            let what = format!("cronie delays each job by up to {value} minutes, cronlatch does not");
            (Kind::Differs, what, "write splay into the jobs")
        }
        "LOGNAME" => (Kind::Dropped, "cron ignores LOGNAME in a crontab".to_owned(), "it was left out"),
        "SHELL" if is_relative => {
            let what = format!("SHELL={value:?} is no path, so cron could not start any command below");
            (Kind::Differs, what, "write its whole path")
        }
        "HOME" if is_relative => {
            let what = format!("HOME={value:?} is no absolute path, so the jobs below have no directory from it");
            (Kind::Differs, what, "write directory = \"/...\" into them")
        }
        "" => (Kind::Dropped, "a variable without a name".to_owned(), "it was left out"),
        name if name.starts_with("CRONLATCH_") => {
            (Kind::Dropped, format!("{name}: such names are set by cronlatch"), "rename it in crontab and commands")
        }
        _ => return None,
    };
    Some(Note::new(line, kind, what, remedy))
}

fn of_mail(name: &str, value: &str) -> (Kind, String, &'static str) {
    match (name, value) {
        ("MAILTO", "") => {
            let what = "MAILTO=\"\" threw the output away; cronlatch keeps it in the log, and its end with the run";
            (Kind::Differs, what.to_owned(), "append >/dev/null to a command whose output nobody wants")
        }
        ("MAILTO", address) => {
            let what =
                format!("no mail goes to {address}: cronlatch keeps output in the log, and its end with the run");
            (
                Kind::Differs,
                what,
                "see it with cronlatch runs show JOB; the jobs show an on_failure that mails failures",
            )
        }
        _ => (Kind::Dropped, format!("{name} is for the mails of cron, and there are none"), ""),
    }
}

/// What is to be said of an entry.
pub(super) fn of_entry(line: usize, form: Form, entry: &entry::Entry<'_>, parts: &Parts) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |kind, what: String, remedy: String| notes.push(Note::new(line, kind, what, remedy));
    if entry.is_quiet {
        let what = "the - before the minute, which Debian's cron refuses, kept it out of cron's log".to_owned();
        note(Kind::Differs, what, "cronlatch logs each run".to_owned());
    }
    if let When::Times(read) = &entry.when {
        if read.debian.is_none() {
            let what = format!("Debian's cron refuses {:?}, and with it the whole file", read.typed);
            note(Kind::Differs, what, format!("read as {:?}", read.text));
        } else if read.is_misread() {
            let what = format!("Debian's cron reads no time from the backward range in {:?}", read.typed);
            note(Kind::Differs, what, format!("read as {:?}; remove the job if it isn't wanted", read.text));
        }
    }
    let first = parts.command.split_whitespace().next().unwrap_or_default();
    if form == Form::User && USERS.contains(&first) {
        let what = format!("the command begins with {first:?}, as if there were a user column");
        note(Kind::Doubtful, what, "read the file with --system if there is one".to_owned());
    }
    if looks_like_a_field(first) {
        let what = format!("the command begins with {first:?}, as if there were six fields; a crontab has five");
        note(Kind::Doubtful, what, "remove it from the job if it is a field".to_owned());
    }
    of_command(parts, entry.command, &mut note);
    notes
}

fn of_command(parts: &Parts, typed: &str, note: &mut impl FnMut(Kind, String, String)) {
    let command = &parts.command;
    if is_cut_short(parts) {
        let what = format!("the first % ends the command, so cron ran {}", shortened(command));
        let meant = document::string(&shortened(&typed.replace("\\%", "%")));
        note(Kind::Doubtful, what, format!("if percent signs are meant, write shell = {meant}"));
    }
    if parts.halved {
        let what = r"Debian's cron makes \ of \\ in a command, others don't".to_owned();
        note(Kind::Doubtful, what, r"the job has \; check it".to_owned());
    }
    let bare = command.trim_end();
    if bare.ends_with('&') && !bare.ends_with("&&") {
        let what = "it leaves a process in the background, which cronlatch ends with the job".to_owned();
        note(Kind::Differs, what, "remove the & at the end".to_owned());
    }
    if command.contains("/usr/sbin/anacron") {
        let what = "on a host with anacron it does nothing, for anacron does it there".to_owned();
        note(Kind::Doubtful, what, "leave the line to cron, or switch anacron off".to_owned());
    }
    if command.contains("run-parts") {
        let what = "it runs a folder of programs, on one host each time".to_owned();
        note(Kind::Differs, what, "write run_on = \"every\" if each host needs it".to_owned());
    }
}

/// Whether a percent sign that was meant as one ended a command: a quote or `$(` is open, or a format of `date`.
pub(super) fn is_cut_short(parts: &Parts) -> bool {
    parts.input.is_some() && (parts.command.ends_with('+') || words::cut(&parts.command).is_open)
}

/// Says of a crontab without a user column whose it may be, if nobody knows.
pub(super) fn of_owner(source: &Source, crontab: &mut Crontab) {
    let is_unknown = source.form == Form::User && source.owner.is_none();
    if is_unknown && !crontab.entries.is_empty() {
        let what = "cron ran the entries as the owner of the crontab, whom it does not name, and the jobs have no user";
        crontab.notes.push(Note::new(None, Kind::Differs, what, "import it with --user NAME, or write user into them"));
    }
}

/// Says of each entry that is there twice where the first is.
pub(super) fn duplicates(entries: &mut [Entry]) {
    for later in 1..entries.len() {
        let (before, rest) = entries.split_at_mut(later);
        let entry = &mut rest[0];
        let is_same = |first: &&Entry| {
            (&first.when, &first.user, &first.parts, first.zone) == (&entry.when, &entry.user, &entry.parts, entry.zone)
        };
        if let Some(line) = before.iter().find(is_same).map(|first| first.line) {
            let what = format!("the same as line {line}, so cron runs it twice");
            entry.notes.push(Note::new(entry.line, Kind::Doubtful, what, "remove one of the two jobs"));
        }
    }
}

/// The beginning of a text.
pub(super) fn shortened(text: &str) -> String {
    const MOST_CHARS: usize = 200;
    match text.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::percent;
    use super::*;

    fn of(line: &str, form: Form) -> String {
        let entry = entry::read(line, form).unwrap_or_else(|wrong| panic!("{line}: {wrong}"));
        let notes = of_entry(1, form, &entry, &percent::cut(entry.command));
        notes.iter().map(Note::text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_people_trip_over_is_said_of_its_line() {
        for (line, part) in [
            ("*/5 * * * * root /usr/bin/x", "begins with \"root\""),
            ("0 0 3 * * 1 /usr/bin/x", "begins with \"1\""),
            ("0 4 * * * tar czf b-$(date +%F).tgz x", "write shell = \"tar czf b-$(date +%F).tgz x\""),
            ("0 4 * * * date +%F > x", "cron ran date +;"),
            (r"0 5 * * * echo a\\b", r"makes \ of \\"),
            ("@hourly /opt/daemon &", "in the background"),
            ("@daily cd / && run-parts /etc/cron.daily", "on one host each time"),
            ("@daily test -x /usr/sbin/anacron || run-parts /etc/cron.daily", "anacron does it there"),
            ("5/15 * * * * x", "read as \"5-59/15 * * * *\""),
            ("@Daily x", "Debian's cron refuses \"@Daily\""),
            ("0 22-2 * * * x", "read as \"0 22-23,0-2 * * *\""),
            ("-0 5 * * * x", "kept it out of cron's log"),
        ] {
            let said = of(line, Form::User);
            assert!(said.contains(part), "{line}: {said}");
        }
    }

    #[test]
    fn an_ordinary_line_has_no_notes() {
        for line in [
            "15 2 * * 1-5 /usr/local/bin/backup",
            "0 5 * * * mail joe%Hello",
            r"0 4 * * * date +\%F",
            "@daily a && b",
            "0 5 * * * a & wait",
        ] {
            assert_eq!(of(line, Form::User), "", "{line}");
        }
        assert_eq!(of("*/5 * * * * root /usr/bin/x", Form::System), "");
    }

    #[test]
    fn what_is_for_cron_alone_does_not_go_into_the_environment() {
        let variable = |name: &str, value: &str| Variable { name: name.to_owned(), value: value.to_owned() };
        for (name, value, carried) in [
            ("A", "1", true),
            ("TZ", "Asia/Tokyo", true),
            ("SHELL", "/bin/bash", true),
            ("SHELL", "", false),
            ("MAILTO", "joe", false),
            ("CRON_TZ", "Asia/Tokyo", false),
            ("LOGNAME", "joe", false),
            ("CRONLATCH_JOB", "x", false),
            ("", "x", false),
        ] {
            assert_eq!(is_carried_over(&variable(name, value), "/bin/x"), carried, "{name}={value}");
        }
        assert!(is_carried_over(&variable("MAILTO", "joe"), "mail \"$MAILTO\""), "the command asks for it");
    }

    #[test]
    fn each_variable_with_a_meaning_of_its_own_is_explained() {
        for (name, value, part) in [
            ("MAILTO", "joe", "no mail goes to joe"),
            ("MAILTO", "", ">/dev/null"),
            ("MAILFROM", "joe", "there are none"),
            ("TZ", "Asia/Tokyo", "not when they run"),
            ("RANDOM_DELAY", "45", "up to 45 minutes"),
            ("SHELL", "bash", "its whole path"),
            ("HOME", "data", "no absolute path"),
            ("LOGNAME", "joe", "left out"),
            ("CRONLATCH_JOB", "x", "rename it"),
        ] {
            let note = of_variable(1, &Variable { name: name.to_owned(), value: value.to_owned() });
            let said = note.map(|note| note.text()).unwrap_or_default();
            assert!(said.contains(part), "{name}={value}: {said}");
        }
        assert_eq!(of_variable(1, &Variable { name: "PATH".to_owned(), value: "/bin".to_owned() }), None);
    }
}

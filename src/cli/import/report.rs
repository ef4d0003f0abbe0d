//! What people read on standard error while the TOML goes into a file.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::compare::{Difference, Span, Starts};
use super::note::{Kind, Note};
use super::{Compared, Imported};
use crate::cli::table::{Column, Fit, table};

/// What differs for every job, and is no line's fault.
const FOR_ALL: [&str; 7] = [
    "each time runs on one host, whichever is first (run_on = \"every\": on each)",
    "cron starts a second copy of a job that still runs when it is due again; cronlatch leaves that time out \
     (overlap = \"skip\"), or lets it wait (overlap = \"wait\")",
    "cron forgets a time at which the host was down; cronlatch runs the newest one late (catch_up = \"none\" doesn't)",
    "cron mails the output; cronlatch writes it to the log, and keeps its end with the run (cronlatch runs show JOB)",
    "what a job leaves behind in its process group is ended with it",
    "commands find LANG=C.UTF-8, not what PAM sets for those of cron",
    "remove the lines from the crontabs of all hosts before the daemons start, or both will run them",
];

/// The whole report. `width` is the terminal's, if there is one.
pub(super) fn text(files: &[Imported], span: Span, zone: Tz, width: Option<usize>) -> String {
    let mut text: String = files.iter().map(|file| format!("{}\n", file.taken_for)).collect();
    for kind in [Kind::Unreadable, Kind::Dropped, Kind::Differs, Kind::Doubtful] {
        text += &section(files, kind);
    }
    let compared: Vec<(&Imported, &Compared)> =
        files.iter().flat_map(|file| file.entries.iter().map(move |entry| (file, entry))).collect();
    let jobs: Vec<_> = compared.into_iter().filter(|(_, entry)| entry.job.is_some()).collect();
    if jobs.is_empty() {
        return text + "\nno job was made\n";
    }
    let local = |at: DateTime<Utc>| at.with_timezone(&zone).format("%Y-%m-%d %H:%M %:z");
    text += &format!("\nold and new times from {} to {} ({zone}):\n", local(span.from), local(span.until));
    text += &times(&jobs, files.len() > 1, zone, width);
    text += &differences(&jobs);
    text += "\nfor all jobs:\n";
    text += &FOR_ALL.map(|line| format!("- {line}\n")).concat();
    text
}

/// The notes of a kind, with equal ones of a file in one line.
fn section(files: &[Imported], kind: Kind) -> String {
    let mut lines = String::new();
    for file in files {
        let mut told: Vec<(String, Vec<usize>)> = Vec::new();
        for note in file.notes().filter(|note| note.kind == kind) {
            let known = told.iter_mut().find(|(text, _)| *text == note.text());
            match known {
                Some((_, places)) => places.extend(note.line),
                None => told.push((note.text(), note.line.into_iter().collect())),
            }
        }
        lines.extend(told.iter().map(|(text, places)| said(&file.name, text, places)));
    }
    if lines.is_empty() { lines } else { format!("\n{}:\n{lines}", kind.heading()) }
}

fn said(file: &str, text: &str, places: &[usize]) -> String {
    const MOST: usize = 10;
    let clean: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let Some((first, others)) = places.split_first() else { return format!("{file}: {clean}\n") };
    let listed: Vec<String> = others.iter().take(MOST).map(usize::to_string).collect();
    let more = if others.len() > MOST { " .." } else { "" };
    let also = match others {
        [] => String::new(),
        [other] => format!(" (line {other} too)"),
        _ => format!(" (lines {}{more} too)", listed.join(", ")),
    };
    format!("{file}:{first}: {clean}{also}\n")
}

fn times(jobs: &[(&Imported, &Compared)], has_files: bool, zone: Tz, width: Option<usize>) -> String {
    let columns: [Column<'_>; 6] = [
        ("JOB", Fit::Whole),
        ("LINE", Fit::Whole),
        ("OLD", Fit::Whole),
        ("NEW", Fit::Whole),
        ("IN CRON", Fit::Wraps),
        ("IN CRONLATCH", Fit::Wraps),
    ];
    let row = |(file, entry): &(&Imported, &Compared)| {
        let job = entry.job.as_ref()?;
        let comparison = &entry.comparison;
        let place = if has_files { format!("{}:{}", file.name, entry.line) } else { entry.line.to_string() };
        let foreign = if job.zone == zone { String::new() } else { format!(" ({})", job.zone) };
        let shown = |starts: &Starts| match starts.count {
            0 => "none".to_owned(),
            _ => first(starts, job.zone) + &foreign,
        };
        let is_same = comparison.differences.is_empty();
        let new = if is_same { "the same".to_owned() } else { shown(&comparison.new) };
        let counts = [comparison.old.count.to_string(), comparison.new.count.to_string()];
        Some([vec![job.name.clone(), place], counts.to_vec(), vec![shown(&comparison.old), new]].concat())
    };
    table(&columns, &jobs.iter().filter_map(row).collect::<Vec<_>>(), width)
}

fn first(starts: &Starts, zone: Tz) -> String {
    let shown: Vec<String> =
        starts.first.iter().map(|at| at.with_timezone(&zone).format("%a %m-%d %H:%M").to_string()).collect();
    let more = if starts.count > starts.first.len() { ", .." } else { "" };
    shown.join(", ") + more
}

fn differences(jobs: &[(&Imported, &Compared)]) -> String {
    let mut text = String::new();
    for (file, entry) in jobs {
        let (Some(job), differences) = (&entry.job, &entry.comparison.differences) else { continue };
        let mut cause = "";
        for difference in differences {
            if difference.cause != cause {
                cause = &difference.cause;
                text += &format!("{}:{}: {}: {cause}\n", file.name, entry.line, job.name);
            }
            text += &format!("    {}\n", instants(difference, job.zone));
        }
    }
    if text.is_empty() { "\nno time differs\n".to_owned() } else { format!("\ntimes that differ:\n{text}") }
}

fn instants(difference: &Difference, zone: Tz) -> String {
    let one = |(at, times): &(DateTime<Utc>, usize)| {
        let at = at.with_timezone(&zone).format("%a %Y-%m-%d %H:%M %:z");
        if *times == 1 { at.to_string() } else { format!("{at} ({times} times)") }
    };
    let named: Vec<String> = difference.first.iter().map(one).collect();
    let more = if difference.count > named.len() { ", .." } else { "" };
    format!("more often in {} ({}): {}{more}", difference.who.as_str(), difference.count, named.join(", "))
}

impl Imported {
    /// Its own notes and those of its entries, by line.
    fn notes(&self) -> impl Iterator<Item = &Note> {
        let mut notes: Vec<&Note> =
            self.notes.iter().chain(self.entries.iter().flat_map(|entry| &entry.notes)).collect();
        notes.sort_by_key(|note| note.line);
        notes.into_iter()
    }
}

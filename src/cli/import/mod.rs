//! `cronlatch import`: crontabs become jobs, and all that is not as before is said.
//!
//! # The way of a line
//! ```text
//! source.rs     bytes, lines; user or system form
//! crontab.rs    line by line, with what the lines above say (variable.rs, comments.rs)
//! entry.rs      fields (times.rs, field.rs), user, command (percent.rs)
//! made.rs       a table of TOML (name.rs, program.rs, words.rs; shell.rs; document.rs)
//! compare.rs    old times (clock.rs) beside new ones (job::schedule)
//! report.rs     what people read; hints.rs knows what they trip over
//! ```
//!
//! # What it promises
//! - What it emits has passed the same reading as `cronlatch check`; a refusal is told as a fault of
//!   cronlatch, and nothing is emitted.
//! - The old times come from a simulation of Debian cron's main loop that shares nothing with
//!   `job::schedule`, so that a fault of one shows as a difference.
//! - A line that can't be read hides no other, and no line is left out in silence.
//!
//! # What it does not do
//! It runs nothing, asks no database and looks up no user: each job runs as the one that the crontab names. What Debian's cron makes of a text whose
//! meaning is not clear (`*5`) is named and refused, not imitated.

mod clock;
mod comments;
mod compare;
mod crontab;
mod document;
mod emitted;
mod entry;
mod field;
mod hints;
mod json;
mod made;
mod name;
mod note;
mod percent;
mod program;
mod report;
mod shell;
mod source;
mod times;
mod variable;
mod words;

use std::collections::BTreeMap;

use chrono::{Datelike, TimeDelta, Utc};
use chrono_tz::Tz;
use clap::Args;

use super::failure::tell;
use super::table::width_of;
use super::{Failure, print, print_json, when};
use crate::job::Moment;
use crate::job::schedule::{Schedule, parse_zone};
use compare::{Clocks, Comparison, Span};
use crontab::Crontab;
use made::{Job, Making};
use name::Names;
use note::{Kind, Note};
use source::Source;

#[derive(Args, Debug)]
pub(super) struct Import {
    /// The crontabs; - is standard input, as in crontab -l | cronlatch import -
    #[arg(value_name = "CRONTAB", required = true)]
    files: Vec<String>,
    /// There is a user column; known by itself of /etc/crontab and of files in /etc/cron.d
    #[arg(long)]
    system: bool,
    /// Whose crontabs they are, where they have no user column: their jobs run as this user
    #[arg(long, value_name = "NAME", conflicts_with = "system", value_parser = entry::user)]
    user: Option<String>,
    /// The time zone of the jobs [default: this host's]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Where the comparison of old and new times starts [default: now]
    #[arg(long, value_name = "INSTANT", value_parser = when::moment)]
    from: Option<Moment>,
    /// One JSON array with an object an entry instead of TOML
    #[arg(long)]
    json: bool,
}

/// What became of a file.
struct Imported {
    name: String,
    taken_for: String,
    entries: Vec<Compared>,
    notes: Vec<Note>,
}

/// What became of an entry.
struct Compared {
    line: usize,
    job: Option<Job>,
    notes: Vec<Note>,
    comparison: Comparison,
}

/// The next month.
const DAYS: i64 = 31;

impl Import {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let zone = self.zone()?;
        let mut files = self.read(zone)?;
        let span = self.span(zone)?;
        let toml = emitted::text(&files);
        let loaded = emitted::verified(&toml)?;
        let by_name: BTreeMap<&str, &Schedule> =
            loaded.jobs.iter().map(|job| (job.name.as_str(), &job.schedule)).collect();
        let mut clocks = Clocks::new(zone, span);
        for entry in files.iter_mut().flat_map(|file| &mut file.entries) {
            if let Some(job) = &entry.job {
                entry.comparison = clocks.compare(job, by_name[job.name.as_str()]);
            }
        }
        if self.json {
            print_json(&json::objects(&files))?;
        } else {
            print(&toml)?;
            tell(&report::text(&files, span, zone, width_of(&std::io::stderr())));
        }
        let all_notes = files.iter().flat_map(|file| &file.notes);
        match all_notes.filter(|note| note.kind == Kind::Unreadable).count() {
            0 => Ok(()),
            1 => Err(Failure::config("1 line can't be read")),
            lines => Err(Failure::config(format!("{lines} lines can't be read"))),
        }
    }

    /// What is compared; schedules know the years 1970 to 2100.
    fn span(&self, zone: Tz) -> Result<Span, Failure> {
        let from = match self.from {
            None => Utc::now(),
            Some(from) => from.start_in(zone).map_err(|error| Failure::usage(format!("--from: {error}")))?,
        };
        if !(1970..2100).contains(&from.year()) {
            return Err(Failure::usage("--from lies outside of the years 1970 to 2099; choose an instant in them"));
        }
        Ok(Span { from, until: from + TimeDelta::days(DAYS) })
    }

    /// The zone as jobs may name it.
    fn zone(&self) -> Result<Tz, Failure> {
        let name = self.timezone.as_deref().unwrap_or("local");
        let zone = parse_zone(name).and_then(|zone| parse_zone(zone.name()));
        zone.map_err(|error| {
            let remedy = if self.timezone.is_some() { "" } else { "; write --timezone" };
            Failure::usage(format!("{error}{remedy}"))
        })
    }

    fn read(&self, zone: Tz) -> Result<Vec<Imported>, Failure> {
        if self.files.iter().filter(|name| *name == "-").count() > 1 {
            return Err(Failure::usage("standard input can be read once only; write - once"));
        }
        let open = |name: &String| Source::open(name, self.system, self.user.as_deref());
        let sources = self.files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut names = Names::default();
        let import = |source: Source| {
            let crontab = Crontab::read(&source);
            let mut making = Making { file: &source.name, zone, names: &mut names };
            let entries = crontab.entries.iter().map(|entry| {
                let made = making.of(entry);
                Compared { line: entry.line, job: made.job, notes: made.notes, comparison: Comparison::default() }
            });
            let entries = entries.collect();
            Imported { taken_for: source.taken_for(), name: source.name, entries, notes: crontab.notes }
        };
        Ok(sources.into_iter().map(import).collect())
    }
}

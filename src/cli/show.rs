use std::path::Path;

use chrono::{DateTime, Utc};
use clap::Args;
use uuid::Uuid;

use super::history::{Found, find as by_beginning, newest_of, run_of};
use super::runs::{object, took, why};
use super::store::Opened;
use super::{Failure, print, print_json, when};
use crate::clock::human;
use crate::job::JobName;
use crate::store::{RunRow, SharedStore, StoreError};
use crate::trigger::RunId;

#[derive(Args, Debug)]
pub(super) struct Show {
    /// The run's id, as `runs` and the log have it, or its beginning; or a job, for its newest run
    #[arg(value_name = "ID")]
    run: String,
    /// One JSON array with one object instead of text
    #[arg(long)]
    json: bool,
}

/// Which run is asked for.
enum Wanted {
    Id(RunId),
    NewestOf(JobName),
}

impl Show {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let wanted = self.wanted()?;
        let opened = Opened::new(path)?;
        let found = opened.ask_known(async |store| find(store, &wanted).await)?;
        let Some((row, blocker)) = found else {
            return Err(Failure::usage(format!("no run {:?} in the history", self.run)));
        };
        if self.json {
            return print_json(&[object(&row)]);
        }
        print(&text(&row, blocker.as_ref(), Utc::now()))
    }

    fn wanted(&self) -> Result<Wanted, Failure> {
        if let Ok(id) = Uuid::parse_str(&self.run) {
            return Ok(Wanted::Id(RunId::from_uuid(id)));
        }
        JobName::new(&self.run).map(Wanted::NewestOf).map_err(|error| Failure::usage(error.to_string()))
    }
}

/// The run, and the one that held it off.
async fn find(store: &SharedStore, wanted: &Wanted) -> Result<Option<(RunRow, Option<RunRow>)>, StoreError> {
    let row = match wanted {
        Wanted::Id(run) => run_of(store, *run).await?,
        Wanted::NewestOf(job) => match newest_of(store, job).await? {
            // A job's name may look like the beginning of an id, and comes first.
            None => match by_beginning(store, job.as_str()).await? {
                Found::One(row) => Some(*row),
                Found::None | Found::Many => None,
            },
            row => row,
        },
    };
    let Some(row) = row else { return Ok(None) };
    let blocker = match row.blocked_by {
        Some(run) => run_of(store, run).await?,
        None => None,
    };
    Ok(Some((row, blocker)))
}

fn text(row: &RunRow, blocker: Option<&RunRow>, now: DateTime<Utc>) -> String {
    let at = |at: DateTime<Utc>| format!("{} ({})", when::people(at), when::relative(at, now));
    let blocked_by = row.blocked_by.map(|run| match blocker {
        Some(blocker) => {
            let host = blocker.host.as_deref().map(|host| format!(" on {host}")).unwrap_or_default();
            format!("{run} ({}{host}, {})", blocker.job, blocker.state)
        }
        None => run.to_string(),
    });
    let fields = [
        ("id", Some(row.run.to_string())),
        ("job", Some(row.job.clone())),
        ("scheduled", Some(at(row.scheduled_at))),
        ("trigger", Some(row.kind.to_string())),
        ("attempt", Some(row.attempt.to_string())),
        ("state", Some(row.state.to_string())),
        ("why", why(row)),
        ("host", row.host.clone()),
        ("lock", Some(row.resource.clone())),
        ("token", row.token.map(|token| token.to_string())),
        ("blocked by", blocked_by),
        ("waits until", row.wait_until.map(at)),
        ("claimed", row.claimed_at.map(at)),
        ("started", row.started_at.map(at)),
        ("finished", row.finished_at.map(at)),
        ("took", took(row)),
        ("cpu time", row.cpu.map(human)),
        ("memory", row.memory_peak_kib.map(memory)),
        ("exit code", row.exit_code.map(|code| code.to_string())),
        ("signal", row.signal.map(|signal| signal.to_string())),
    ];
    let line = |(name, value): (&str, Option<String>)| value.map(|value| format!("{name:<12} {value}\n"));
    let mut text: String = fields.into_iter().filter_map(line).collect();
    if let Some(output) = row.output_tail.as_deref().filter(|output| !output.is_empty()) {
        text.push_str("\nthe end of its output:\n");
        text.push_str(&printable(output));
        text.push_str(if output.ends_with('\n') { "" } else { "\n" });
    }
    text
}

/// KiB as people read them.
fn memory(kib: u64) -> String {
    const MIB: u64 = 1_024;
    match kib {
        0..MIB => format!("{kib} KiB"),
        _ => format!("{}.{} MiB", kib / MIB, kib % MIB * 10 / MIB),
    }
}

/// Without control characters but tab and line feed: a job's output must not drive the terminal.
fn printable(output: &str) -> String {
    let shown = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    output.chars().filter(|c| *c != '\r').map(shown).collect()
}

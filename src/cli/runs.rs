use std::path::Path;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::json;

use super::history::{newest, newest_of};
use super::show::Show;
use super::store::Opened;
use super::table::{Column, Fit, table, width};
use super::{Failure, print, print_json, when};
use crate::clock::human;
use crate::job::JobName;
use crate::store::{MissedRow, RunFilter, RunRow, SharedStore, StoreError};
use crate::trigger::{RangeKind, RunState};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(super) struct Runs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// Only this job
    job: Option<String>,
    /// Only runs in this state, or what pauses or blackouts took
    #[arg(long, value_parser = shown_state)]
    state: Option<ShownState>,
    /// Only triggers from this instant or date on, or from so long ago on (24h)
    #[arg(long, value_parser = when::since)]
    since: Option<DateTime<Utc>>,
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// One JSON array instead of a table
    #[arg(long)]
    json: bool,
}

/// What the column of states can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownState {
    Run(RunState),
    /// Triggers without a row each that nobody missed.
    Range(RangeKind),
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// Show one run whole, with the end of its output
    Show(Show),
}

const COLUMNS: [Column<'static>; 8] = [
    ("JOB", Fit::Wraps),
    ("SCHEDULED", Fit::Whole),
    ("AGO", Fit::Whole),
    ("STATE", Fit::Whole),
    ("HOST", Fit::Wraps),
    ("TOOK", Fit::Whole),
    ("WHY", Fit::Wraps),
    ("ID", Fit::IfRoom),
];

impl Runs {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        if let Some(RunsCommand::Show(show)) = &self.command {
            return show.run(path);
        }
        let job = self.job.as_deref().map(JobName::new).transpose();
        let job = job.map_err(|error| Failure::usage(error.to_string()))?;
        let (state, kind) = match self.state {
            Some(ShownState::Run(state)) => (Some(state), None),
            Some(ShownState::Range(kind)) => (None, Some(kind)),
            None => (None, None),
        };
        let filter = RunFilter { job, state, since: self.since, ..newest(self.limit) };
        let opened = Opened::new(path)?;
        let entries = opened.ask_known(async |store| entries(store, &filter, kind).await)?;
        if let (Some(job), true) = (&filter.job, entries.is_empty()) {
            require_known(&opened, job, path)?;
        }
        if self.json {
            return print_json(&entries.iter().map(Entry::object).collect::<Vec<_>>());
        }
        if entries.is_empty() {
            return print("no runs\n");
        }
        let now = Utc::now();
        let cells: Vec<_> = entries.iter().map(|entry| entry.cells(now)).collect();
        print(&table(&COLUMNS, &cells, width()))
    }
}

/// A line of the history: a run, or triggers that are over without one: missed, paused, blacked out.
enum Entry {
    Run(Box<RunRow>),
    Range(MissedRow),
}

/// How many ranges are looked through for those of one kind.
const MOST_RANGES: u32 = 10_000;

/// The newest runs and missed triggers, by their instants; of one kind only what is of that.
async fn entries(store: &SharedStore, filter: &RunFilter, kind: Option<RangeKind>) -> Result<Vec<Entry>, StoreError> {
    if let Some(kind) = kind {
        let all = store.missed(&RunFilter { limit: MOST_RANGES, ..filter.clone() }).await?;
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        return Ok(all.into_iter().filter(|range| range.kind == kind).take(limit).map(Entry::Range).collect());
    }
    let runs = store.history(filter).await?;
    let ranges = store.missed(filter).await?;
    let runs = runs.into_iter().map(|run| Entry::Run(Box::new(run)));
    let mut entries: Vec<_> = runs.chain(ranges.into_iter().map(Entry::Range)).collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at()));
    entries.truncate(usize::try_from(filter.limit).unwrap_or(usize::MAX));
    Ok(entries)
}

impl Entry {
    /// Where it stands in the history.
    fn at(&self) -> DateTime<Utc> {
        match self {
            Self::Run(run) => run.scheduled_at,
            Self::Range(missed) => missed.to,
        }
    }

    fn cells(&self, now: DateTime<Utc>) -> Vec<String> {
        match self {
            Self::Run(run) => cells(run, now),
            Self::Range(missed) => vec![
                missed.job.clone(),
                when::people(missed.to),
                when::ago(missed.to, now),
                missed.kind.to_string(),
                missed.target.as_str().to_owned(),
                String::new(),
                missed_why(missed),
                String::new(),
            ],
        }
    }

    fn object(&self) -> serde_json::Value {
        match self {
            Self::Run(run) => object(run),
            Self::Range(missed) => json!({
                "id": null,
                "job": missed.job,
                "scheduled_at": when::json(missed.from),
                "scheduled_until": when::json(missed.to),
                "target": missed.target.as_str(),
                "count": missed.count,
                "state": missed.kind.as_str(),
                "reason": missed.reason,
                "finished_at": when::json(missed.recorded_at),
            }),
        }
    }
}

/// Why triggers have no run; how many, if there are more than one.
fn missed_why(missed: &MissedRow) -> String {
    if missed.count == 1 {
        return missed.reason.clone();
    }
    format!("{} (the last of {} from {} on)", missed.reason, missed.count, when::people(missed.from))
}

/// Refuses a job that neither the schedule nor the history knows; where a file of the schedule can't be
/// read, nobody can say so.
fn require_known(opened: &Opened, job: &JobName, path: &Path) -> Result<(), Failure> {
    let loaded = opened.loaded();
    if !loaded.problems.is_empty() || loaded.jobs.iter().any(|known| known.name == *job) {
        return Ok(());
    }
    let ran = opened.ask(async |store| newest_of(store, job).await)?.is_some();
    let unknown = || Failure::usage(format!("no job {:?} in {} or in the history", job.as_str(), path.display()));
    if ran { Ok(()) } else { Err(unknown()) }
}

fn shown_state(word: &str) -> Result<ShownState, String> {
    if let Some(state) = RunState::from_column(word) {
        return Ok(ShownState::Run(state));
    }
    match RangeKind::from_column(word) {
        Some(kind @ (RangeKind::Paused | RangeKind::Blackout)) => Ok(ShownState::Range(kind)),
        _ => {
            let words: Vec<_> = RunState::ALL.iter().map(|state| state.as_str()).collect();
            Err(format!("not one of {}, paused, blackout", words.join(", ")))
        }
    }
}

/// How long its process took, if it is over.
pub(super) fn took(row: &RunRow) -> Option<String> {
    let (started, finished) = (row.started_at?, row.finished_at?);
    Some(human((finished - started).to_std().unwrap_or_default()))
}

/// Why it is in its state, where that doesn't go without saying.
pub(super) fn why(row: &RunRow) -> Option<String> {
    match (&row.reason, row.exit_code, row.signal) {
        (Some(reason), ..) => Some(reason.clone()),
        (None, Some(code), _) if code != 0 => Some(format!("exit code {code}")),
        (None, None, Some(signal)) => Some(format!("signal {signal}")),
        _ => None,
    }
}

/// The same with the attempt, of those after the first: each is a line of its own.
fn why_of_attempt(row: &RunRow) -> String {
    match (why(row), row.attempt) {
        (why, 1) => why.unwrap_or_default(),
        (Some(why), attempt) => format!("{why} (attempt {attempt})"),
        (None, attempt) => format!("attempt {attempt}"),
    }
}

fn cells(row: &RunRow, now: DateTime<Utc>) -> Vec<String> {
    vec![
        row.job.clone(),
        when::people(row.scheduled_at),
        when::ago(row.scheduled_at, now),
        row.state.to_string(),
        row.host.clone().unwrap_or_default(),
        took(row).unwrap_or_default(),
        why_of_attempt(row),
        row.run.to_string(),
    ]
}

/// All of a run, for programs.
pub(super) fn object(row: &RunRow) -> serde_json::Value {
    json!({
        "id": row.run.to_string(),
        "job": row.job,
        "scheduled_at": when::json(row.scheduled_at),
        "target": row.target.as_str(),
        "attempt": row.attempt,
        "trigger": row.kind.as_str(),
        "state": row.state.as_str(),
        "host": row.host,
        "lock": row.resource,
        "token": row.token.map(crate::lock::FencingToken::get),
        "claimed_at": row.claimed_at.map(when::json),
        "started_at": row.started_at.map(when::json),
        "finished_at": row.finished_at.map(when::json),
        "wait_until": row.wait_until.map(when::json),
        "exit_code": row.exit_code,
        "signal": row.signal,
        "reason": row.reason,
        "blocked_by": row.blocked_by.map(|run| run.to_string()),
        "cpu_ms": row.cpu.map(|cpu| u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX)),
        "memory_peak_kib": row.memory_peak_kib,
        "output_tail": row.output_tail,
    })
}

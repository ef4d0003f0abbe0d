use std::path::Path;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;

use super::store::Opened;
use super::table::table;
use super::{Failure, print, print_json, when};
use crate::clock::human;
use crate::job::JobName;
use crate::store::{RunFilter, RunRow};
use crate::trigger::RunState;

#[derive(Args, Debug)]
pub(super) struct Runs {
    /// Only this job
    job: Option<String>,
    /// Only runs in this state
    #[arg(long, value_parser = state)]
    state: Option<RunState>,
    /// Only triggers from this instant on, or from so long ago on (24h)
    #[arg(long, value_parser = when::instant)]
    since: Option<DateTime<Utc>>,
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
    /// One JSON array instead of a table
    #[arg(long)]
    json: bool,
}

impl Runs {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let job = self.job.as_deref().map(JobName::new).transpose();
        let filter = RunFilter {
            job: job.map_err(|error| Failure::usage(error.to_string()))?,
            state: self.state,
            since: self.since,
            before: None,
            limit: self.limit,
        };
        let rows = Opened::new(path)?.ask_known(async |store| store.history(&filter).await)?;
        if self.json {
            return print_json(&rows.iter().map(object).collect::<Vec<_>>());
        }
        if rows.is_empty() {
            return print("no runs\n");
        }
        let now = Utc::now();
        let heading = ["job", "scheduled", "state", "host", "took", "why"];
        print(&table(&heading, rows.iter().map(|row| cells(row, now))))
    }
}

fn state(word: &str) -> Result<RunState, String> {
    RunState::from_column(word).ok_or_else(|| {
        let words: Vec<_> = RunState::ALL.iter().map(|state| state.as_str()).collect();
        format!("not one of {}", words.join(", "))
    })
}

fn cells(row: &RunRow, now: DateTime<Utc>) -> Vec<String> {
    let took = match (row.started_at, row.finished_at) {
        (Some(started), Some(finished)) => human((finished - started).to_std().unwrap_or_default()),
        _ => String::new(),
    };
    let why = match (&row.reason, row.exit_code, row.signal) {
        (Some(reason), ..) => reason.clone(),
        (None, Some(code), _) if code != 0 => format!("exit code {code}"),
        (None, None, Some(signal)) => format!("signal {signal}"),
        _ => String::new(),
    };
    vec![
        row.job.clone(),
        when::people(row.scheduled_at, now),
        row.state.to_string(),
        row.host.clone().unwrap_or_default(),
        took,
        why,
    ]
}

fn object(row: &RunRow) -> serde_json::Value {
    json!({
        "id": row.run.to_string(),
        "job": row.job,
        "scheduled_at": when::json(row.scheduled_at),
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
        "output_tail": row.output_tail,
    })
}

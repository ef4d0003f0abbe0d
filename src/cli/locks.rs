use std::path::Path;

use chrono::{TimeDelta, Utc};
use clap::Args;
use serde::Serialize;

use super::history::run_of;
use super::store::Opened;
use super::table::{Column, Fit, table, width};
use super::{Failure, print, print_json, when};
use crate::clock::human;
use crate::lock::Resource;
use crate::store::{LockRow, SharedStore, StoreError};

const COLUMNS: [Column<'static>; 7] = [
    ("LOCK", Fit::Wraps),
    ("JOB", Fit::Wraps),
    ("HOST", Fit::Wraps),
    ("TOKEN", Fit::Whole),
    ("HELD", Fit::Whole),
    ("LEFT", Fit::Whole),
    ("HEARTBEAT", Fit::Whole),
];

#[derive(Args, Debug)]
pub(super) struct Locks {
    /// Only this lock
    resource: Option<String>,
    /// One JSON array instead of a table
    #[arg(long)]
    json: bool,
}

impl Locks {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let resource = self.resource.as_deref().map(Resource::new).transpose();
        let resource = resource.map_err(|error| Failure::usage(error.to_string()))?;
        let opened = Opened::new(path)?;
        let rows = opened.ask_known(async |store| {
            let rows = match &resource {
                Some(resource) => store.lock(resource).await?.into_iter().collect(),
                None => store.locks().await?,
            };
            with_jobs(store, rows).await
        })?;
        if self.json {
            return print_json(&rows.iter().map(object).collect::<Vec<_>>());
        }
        if rows.is_empty() {
            return print("no lock is held\n");
        }
        print(&table(&COLUMNS, &rows.iter().map(cells).collect::<Vec<_>>(), width()))
    }
}

/// A lock, and the job of the run that it guards.
type Held = (LockRow, Option<String>);

async fn with_jobs(store: &SharedStore, rows: Vec<LockRow>) -> Result<Vec<Held>, StoreError> {
    let mut held = Vec::with_capacity(rows.len());
    for row in rows {
        let job = match row.holder.run {
            Some(run) => run_of(store, run).await?.map(|run| run.job),
            None => None,
        };
        held.push((row, job));
    }
    Ok(held)
}

fn is_live(row: &LockRow) -> bool {
    !row.holder.remaining.is_zero()
}

/// The database's now, as the row was read.
fn now(row: &LockRow) -> chrono::DateTime<Utc> {
    let held = TimeDelta::from_std(row.holder.held).unwrap_or_default();
    row.holder.acquired_at + held
}

fn cells((row, job): &Held) -> Vec<String> {
    let holder = &row.holder;
    let left = if is_live(row) { human(holder.remaining) } else { "expired".to_owned() };
    vec![
        holder.resource.to_string(),
        job.clone().unwrap_or_default(),
        holder.owner.host().unwrap_or(holder.owner.as_str()).to_owned(),
        holder.token.to_string(),
        human(holder.held),
        left,
        when::relative(row.renewed_at, now(row)),
    ]
}

/// A lock for programs: these names are relied on.
#[derive(Serialize)]
struct Object<'a> {
    resource: &'a str,
    owner: &'a str,
    host: Option<&'a str>,
    token: i64,
    state: &'static str,
    acquired_at: String,
    renewed_at: String,
    expires_at: String,
    held_ms: u128,
    remaining_ms: u128,
    run: Option<String>,
    job: Option<&'a str>,
}

fn object((row, job): &Held) -> Object<'_> {
    let holder = &row.holder;
    Object {
        resource: holder.resource.as_str(),
        owner: holder.owner.as_str(),
        host: holder.owner.host(),
        token: holder.token.get(),
        state: if is_live(row) { "held" } else { "expired" },
        acquired_at: when::json(holder.acquired_at),
        renewed_at: when::json(row.renewed_at),
        expires_at: when::json(holder.expires_at),
        held_ms: holder.held.as_millis(),
        remaining_ms: holder.remaining.as_millis(),
        run: holder.run.map(|run| run.to_string()),
        job: job.as_deref(),
    }
}

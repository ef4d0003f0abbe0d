use std::path::Path;

use chrono::{TimeDelta, Utc};
use clap::Args;
use serde_json::json;

use super::store::Opened;
use super::table::table;
use super::{Failure, print, print_json, when};
use crate::clock::human;
use crate::lock::Resource;
use crate::store::LockRow;

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
        let rows = opened.ask_known(async |store| match &resource {
            Some(resource) => Ok(store.lock(resource).await?.into_iter().collect()),
            None => store.locks().await,
        })?;
        if self.json {
            return print_json(&rows.iter().map(object).collect::<Vec<_>>());
        }
        if rows.is_empty() {
            return print("no lock is held\n");
        }
        let heading = ["lock", "holder", "token", "held", "left", "last heartbeat"];
        print(&table(&heading, rows.iter().map(cells)))
    }
}

fn is_live(row: &LockRow) -> bool {
    !row.holder.remaining.is_zero()
}

/// The database's now, as the row was read.
fn now(row: &LockRow) -> chrono::DateTime<Utc> {
    let held = TimeDelta::from_std(row.holder.held).unwrap_or_default();
    row.holder.acquired_at + held
}

fn cells(row: &LockRow) -> Vec<String> {
    let holder = &row.holder;
    let left = if is_live(row) { human(holder.remaining) } else { "expired".to_owned() };
    vec![
        holder.resource.to_string(),
        holder.owner.host().unwrap_or(holder.owner.as_str()).to_owned(),
        holder.token.to_string(),
        human(holder.held),
        left,
        when::relative(row.renewed_at, now(row)),
    ]
}

fn object(row: &LockRow) -> serde_json::Value {
    let holder = &row.holder;
    json!({
        "resource": holder.resource.as_str(),
        "owner": holder.owner.as_str(),
        "host": holder.owner.host(),
        "token": holder.token.get(),
        "state": if is_live(row) { "held" } else { "expired" },
        "acquired_at": when::json(holder.acquired_at),
        "renewed_at": when::json(row.renewed_at),
        "expires_at": when::json(holder.expires_at),
        "held_ms": holder.held.as_millis(),
        "remaining_ms": holder.remaining.as_millis(),
        "run": holder.run.map(|run| run.to_string()),
    })
}

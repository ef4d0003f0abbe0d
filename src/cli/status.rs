use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use serde_json::{Value, json};

use super::history::newest;
use super::store::Opened;
use super::table::{Column, Fit, table, width};
use super::{Failure, print, print_json, when};
use crate::clock::human;
use crate::fleet::{HostName, HostRow};
use crate::store::{Disagreement, RunFilter, RunRow, SharedStore, StoreError};
use crate::trigger::RunState;

const HOSTS: [Column<'static>; 6] = [
    ("HOST", Fit::Wraps),
    ("SEEN", Fit::Whole),
    ("UP", Fit::Whole),
    ("CLOCK", Fit::Whole),
    ("VERSION", Fit::Whole),
    ("LABELS", Fit::Wraps),
];

const RUNS: [Column<'static>; 6] = [
    ("JOB", Fit::Wraps),
    ("SCHEDULED", Fit::Whole),
    ("STATE", Fit::Whole),
    ("HOST", Fit::Wraps),
    ("FOR", Fit::Whole),
    ("WHY", Fit::Wraps),
];

const DISAGREEMENTS: [Column<'static>; 3] = [("JOB", Fit::Wraps), ("VERSION", Fit::Whole), ("HOSTS", Fit::Wraps)];

/// So many runs of each state are listed.
const MOST_RUNS: u32 = 1_000;

#[derive(Args, Debug)]
pub(super) struct Status {
    /// One JSON array instead of tables
    #[arg(long)]
    json: bool,
}

/// What the tables say of the fleet.
struct Fleet {
    hosts: Vec<HostRow>,
    /// Running, claimed and waiting, each with its oldest first.
    open: Vec<RunRow>,
    disagreements: Vec<Disagreement>,
}

impl Status {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let fleet = Opened::new(path)?.ask_known(async |store| Fleet::read(store).await)?;
        if self.json {
            return print_json(&fleet.objects());
        }
        print(&fleet.text(Utc::now()))
    }
}

impl Fleet {
    async fn read(store: &SharedStore) -> Result<Self, StoreError> {
        let mut open = Vec::new();
        for state in [RunState::Running, RunState::Claimed, RunState::Waiting] {
            let mut runs = store.history(&RunFilter { state: Some(state), ..newest(MOST_RUNS) }).await?;
            runs.reverse();
            open.append(&mut runs);
        }
        Ok(Self { hosts: store.hosts().await?, open, disagreements: store.disagreements().await? })
    }

    fn text(&self, now: DateTime<Utc>) -> String {
        let hosts: Vec<_> = self.hosts.iter().map(|host| host_cells(host, now)).collect();
        let open: Vec<_> = self.open.iter().map(|run| run_cells(run, now)).collect();
        let disagreements: Vec<_> = self.disagreements.iter().flat_map(disagreement_cells).collect();
        let part = |columns: &[Column<'_>], rows: &[Vec<String>], none: &str| match rows {
            [] => none.to_owned(),
            rows => table(columns, rows, width()),
        };
        let parts = [
            part(&HOSTS, &hosts, "no daemon is alive\n"),
            part(&RUNS, &open, "nothing runs, and nothing waits\n"),
            part(&DISAGREEMENTS, &disagreements, ""),
        ];
        let warning = "\nhosts disagree about these jobs; copy the schedule files and reload:\n";
        let [hosts, open, disagreements] = parts;
        let warning = if disagreements.is_empty() { "" } else { warning };
        format!("{hosts}\n{open}{warning}{disagreements}")
    }

    fn objects(&self) -> Vec<Value> {
        let hosts = self.hosts.iter().map(host_object);
        let open = self.open.iter().map(run_object);
        hosts.chain(open).chain(self.disagreements.iter().map(disagreement_object)).collect()
    }
}

/// How far a host's clock is off, as people care for it.
fn clock(offset_ms: Option<i64>) -> String {
    match offset_ms {
        None => "unknown".to_owned(),
        Some(ms) if ms.abs() < 1_000 => "right".to_owned(),
        Some(ms) => {
            let off = human(TimeDelta::milliseconds(ms).abs().to_std().unwrap_or_default());
            format!("{off} {}", if ms > 0 { "ahead" } else { "behind" })
        }
    }
}

fn host_cells(host: &HostRow, now: DateTime<Utc>) -> Vec<String> {
    let labels: Vec<_> = host.labels.iter().map(crate::fleet::Label::as_str).collect();
    let seen = when::relative(host.seen_at.min(now), now);
    vec![
        host.name.to_string(),
        if host.draining { format!("draining, {seen}") } else { seen },
        when::ago(host.started_at.min(now), now),
        clock(host.clock_offset_ms),
        host.version.clone(),
        labels.join(", "),
    ]
}

/// Since when it is in the state that it is in.
fn since(run: &RunRow) -> DateTime<Utc> {
    run.started_at.or(run.claimed_at).unwrap_or(run.scheduled_at)
}

fn run_cells(run: &RunRow, now: DateTime<Utc>) -> Vec<String> {
    vec![
        run.job.clone(),
        when::people(run.scheduled_at),
        run.state.to_string(),
        run.host.clone().unwrap_or_else(|| run.target.as_str().to_owned()),
        when::ago(since(run).min(now), now),
        run.reason.clone().unwrap_or_default(),
    ]
}

fn names(hosts: &[HostName]) -> Vec<&str> {
    hosts.iter().map(HostName::as_str).collect()
}

fn disagreement_cells(found: &Disagreement) -> Vec<Vec<String>> {
    let row = |version: &str, hosts: &[HostName]| vec![found.job.clone(), version.to_owned(), names(hosts).join(", ")];
    let versions = found.versions.iter().map(|(digest, hosts)| row(digest, hosts));
    let missing = (!found.missing_on.is_empty()).then(|| row("none", &found.missing_on));
    versions.chain(missing).collect()
}

fn host_object(host: &HostRow) -> Value {
    json!({
        "kind": "host",
        "host": host.name.as_str(),
        "instance": host.instance.to_string(),
        "version": host.version,
        "labels": host.labels.iter().map(crate::fleet::Label::as_str).collect::<Vec<_>>(),
        "schedule_digest": host.schedule_digest,
        "clock_offset_ms": host.clock_offset_ms,
        "draining": host.draining,
        "started_at": when::json(host.started_at),
        "seen_at": when::json(host.seen_at),
    })
}

fn run_object(run: &RunRow) -> Value {
    json!({
        "kind": "run",
        "id": run.run.to_string(),
        "job": run.job,
        "scheduled_at": when::json(run.scheduled_at),
        "attempt": run.attempt,
        "state": run.state.as_str(),
        "host": run.host,
        "target": run.target.as_str(),
        "lock": run.resource,
        "since": when::json(since(run)),
        "wait_until": run.wait_until.map(when::json),
        "reason": run.reason,
    })
}

fn disagreement_object(found: &Disagreement) -> Value {
    let version = |(digest, hosts): &(String, Vec<HostName>)| json!({ "digest": digest, "hosts": names(hosts) });
    json!({
        "kind": "disagreement",
        "job": found.job,
        "versions": found.versions.iter().map(version).collect::<Vec<_>>(),
        "missing_on": names(&found.missing_on),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_right_off_or_unknown() {
        assert_eq!(clock(None), "unknown");
        assert_eq!(clock(Some(-999)), "right");
        assert_eq!(clock(Some(3_000)), "3s ahead");
        assert_eq!(clock(Some(-90_000)), "1m 30s behind");
    }
}

//! Rows of `runs` to answers.

use std::time::Duration;

use sqlx::sqlite::SqliteRow;

use super::decode::{attempt, column, instant, optional_instant, optional_run_id, run_id, trigger, word};
use crate::lock::FencingToken;
use crate::store::{MissedRow, RunRow, StoreError, TriggerOutcome, WaitingRun};
use crate::trigger::{Origin, RangeKind, RunState, Target, TriggerKind};

/// The way back.
fn of_millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

pub(super) fn trigger_outcome(row: &SqliteRow) -> Result<TriggerOutcome, StoreError> {
    Ok(TriggerOutcome {
        run: optional_run_id(row, "id")?,
        at: instant(row, "at")?,
        state: word(row, "state", RunState::from_column)?,
        count: u64::try_from(column::<i64>(row, "count")?).unwrap_or_default(),
    })
}

/// A range of triggers.
pub(super) fn missed_row(row: &SqliteRow) -> Result<MissedRow, StoreError> {
    Ok(MissedRow {
        job: column(row, "job")?,
        target: Target::from_column(column::<String>(row, "target")?),
        kind: word(row, "kind", RangeKind::from_column)?,
        from: instant(row, "range_from")?,
        to: instant(row, "range_to")?,
        count: u64::try_from(column::<i64>(row, "count")?).unwrap_or_default(),
        reason: column(row, "reason")?,
        recorded_at: instant(row, "recorded_at")?,
    })
}

pub(super) fn waiting_run(row: &SqliteRow) -> Result<WaitingRun, StoreError> {
    Ok(WaitingRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        kind: word(row, "trigger", TriggerKind::from_column)?,
        since: instant(row, "created_at")?,
        wait_until: instant(row, "wait_until")?,
        retries: u32::try_from(column::<i64>(row, "retries")?).unwrap_or_default(),
    })
}

pub(super) fn run_row(row: &SqliteRow) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        run: run_id(row, "id")?,
        job: column(row, "job")?,
        scheduled_at: instant(row, "scheduled_at")?,
        target: Target::from_column(column::<String>(row, "target")?),
        origin: Origin::from_column(column::<String>(row, "origin")?),
        attempt: attempt(row)?,
        kind: word(row, "trigger", TriggerKind::from_column)?,
        state: word(row, "state", RunState::from_column)?,
        host: column(row, "host")?,
        resource: column(row, "resource")?,
        token: column::<Option<i64>>(row, "token")?.map(FencingToken::new),
        claimed_at: optional_instant(row, "claimed_at")?,
        started_at: optional_instant(row, "started_at")?,
        finished_at: optional_instant(row, "finished_at")?,
        wait_until: optional_instant(row, "wait_until")?,
        not_before: optional_instant(row, "not_before")?,
        exit_code: column(row, "exit_code")?,
        signal: column(row, "signal")?,
        reason: column(row, "reason")?,
        blocked_by: optional_run_id(row, "blocked_by")?,
        output_tail: column(row, "output_tail")?,
        cpu: column::<Option<i64>>(row, "cpu_ms")?.map(of_millis),
        memory_peak_kib: column::<Option<i64>>(row, "memory_peak_kib")?.and_then(|kib| u64::try_from(kib).ok()),
    })
}

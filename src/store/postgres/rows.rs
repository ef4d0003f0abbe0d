//! Rows of `runs` to answers.

use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::decode::{
    acquired, attempt, column, grant, malformed, optional_run_id, resource, run_id, token, trigger, word,
};
use crate::clock::BootInstant;
use crate::job::JobName;
use crate::lock::FencingToken;
use crate::store::{
    Acquired, Became, Claimed, LostRun, MissedRow, OverdueRun, Retried, RunRow, StoreError, Taken, TriggerOutcome,
    WaitingRun,
};
use crate::trigger::{Origin, RangeKind, RunId, RunState, SkipReason, Target, TriggerKind};

/// The way back.
fn of_millis(millis: i64) -> std::time::Duration {
    std::time::Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

pub(super) fn claimed(row: &PgRow, sent: BootInstant) -> Result<Claimed, StoreError> {
    let outcome: String = column(row, "outcome")?;
    Ok(match outcome.as_str() {
        "granted" => Claimed::Granted(grant(row, sent)?),
        "already_claimed" => Claimed::AlreadyClaimed {
            run: run_id(row, "run")?,
            host: column(row, "host")?,
            state: word(row, "state", RunState::from_column)?,
        },
        "held" => {
            let holder = match column::<Option<String>>(row, "lock_outcome")? {
                None => None,
                Some(_) => match acquired(row, sent)? {
                    Acquired::Held(holder) => Some(holder),
                    Acquired::Granted(_) | Acquired::ClockStepped { .. } => None,
                },
            };
            Claimed::Held { holder, became: became(row)? }
        }
        "too_early" => {
            let by = u64::try_from(column::<i64>(row, "early_ms")?).unwrap_or_default();
            Claimed::TooEarly { by: std::time::Duration::from_millis(by) }
        }
        "paused" => Claimed::Paused,
        "forgotten" => Claimed::Forgotten,
        "settled" => Claimed::Settled,
        "too_late" => Claimed::TooLate,
        other => return Err(malformed(format!("column outcome holds {other:?}"))),
    })
}

/// A row of `TAKE`.
pub(super) fn taken(row: &PgRow, sent: BootInstant) -> Result<Taken, StoreError> {
    let outcome: String = column(row, "outcome")?;
    let holder = || match acquired(row, sent)? {
        Acquired::Held(holder) => Ok(Some(holder)),
        _ => Ok::<_, StoreError>(None),
    };
    Ok(match outcome.as_str() {
        "granted" => Taken::Granted(grant(row, sent)?),
        "held" => holder()?.map_or(Taken::NotNow, Taken::Held),
        "skipped" => {
            let reason = word(row, "reason", SkipReason::from_column)?;
            holder()?.map_or(Taken::Gone, |holder| Taken::Skipped(reason, holder))
        }
        "not_now" | "too_late" => Taken::NotNow,
        _ => Taken::Gone,
    })
}

/// A row of `RETRY`.
pub(super) fn retried(row: &PgRow) -> Result<Retried, StoreError> {
    let outcome: String = column(row, "outcome")?;
    Ok(match outcome.as_str() {
        "claimed" => Retried::Claimed { attempt: attempt(row)? },
        "cancelled" => Retried::Cancelled,
        _ => Retried::Gone,
    })
}

fn became(row: &PgRow) -> Result<Became, StoreError> {
    let replacing = column::<Option<String>>(row, "reason")?.as_deref() == Some("replacing");
    Ok(match word(row, "state", RunState::from_column)? {
        RunState::Waiting if replacing => Became::Replacing { until: column(row, "wait_until")? },
        RunState::Waiting => Became::Waiting { until: column(row, "wait_until")? },
        _ => Became::Skipped(word(row, "reason", SkipReason::from_column)?),
    })
}

/// The followers of a run that waits since its success.
pub(super) fn followed(row: &PgRow) -> Result<Vec<(JobName, RunId)>, StoreError> {
    let jobs = column::<Option<Vec<String>>>(row, "followers")?.unwrap_or_default();
    let runs = column::<Option<Vec<Uuid>>>(row, "followed")?.unwrap_or_default();
    let pair = |(job, run)| {
        let job = JobName::new(job).map_err(|error| malformed(error.to_string()))?;
        Ok((job, RunId::from_uuid(run)))
    };
    jobs.into_iter().zip(runs).map(pair).collect()
}

pub(super) fn waiting_run(row: &PgRow) -> Result<WaitingRun, StoreError> {
    Ok(WaitingRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        kind: word(row, "trigger", TriggerKind::from_column)?,
        since: column(row, "created_at")?,
        wait_until: column(row, "wait_until")?,
        retries: u32::try_from(column::<i32>(row, "retries")?).unwrap_or_default(),
    })
}

pub(super) fn run_row(row: &PgRow) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        run: run_id(row, "id")?,
        job: column(row, "job")?,
        scheduled_at: column(row, "scheduled_at")?,
        target: Target::from_column(column::<String>(row, "target")?),
        origin: Origin::from_column(column::<String>(row, "origin")?),
        attempt: attempt(row)?,
        kind: word(row, "trigger", TriggerKind::from_column)?,
        state: word(row, "state", RunState::from_column)?,
        host: column(row, "host")?,
        resource: column(row, "resource")?,
        token: column::<Option<i64>>(row, "token")?.map(FencingToken::new),
        claimed_at: column(row, "claimed_at")?,
        started_at: column(row, "started_at")?,
        finished_at: column(row, "finished_at")?,
        wait_until: column(row, "wait_until")?,
        not_before: column(row, "not_before")?,
        exit_code: column(row, "exit_code")?,
        signal: column(row, "signal")?,
        reason: column(row, "reason")?,
        blocked_by: optional_run_id(row, "blocked_by")?,
        output_tail: column(row, "output_tail")?,
        cpu: column::<Option<i64>>(row, "cpu_ms")?.map(of_millis),
        memory_peak_kib: column::<Option<i64>>(row, "memory_peak_kib")?.and_then(|kib| u64::try_from(kib).ok()),
    })
}

pub(super) fn trigger_outcome(row: &PgRow) -> Result<TriggerOutcome, StoreError> {
    Ok(TriggerOutcome {
        run: optional_run_id(row, "id")?,
        at: column(row, "at")?,
        state: word(row, "state", RunState::from_column)?,
        count: u64::try_from(column::<i64>(row, "count")?).unwrap_or_default(),
    })
}

/// A range of triggers.
pub(super) fn missed_row(row: &PgRow) -> Result<MissedRow, StoreError> {
    Ok(MissedRow {
        job: column(row, "job")?,
        target: Target::from_column(column::<String>(row, "target")?),
        kind: word(row, "kind", RangeKind::from_column)?,
        from: column(row, "range_from")?,
        to: column(row, "range_to")?,
        count: u64::try_from(column::<i64>(row, "count")?).unwrap_or_default(),
        reason: column(row, "reason")?,
        recorded_at: column(row, "recorded_at")?,
    })
}

/// A row of `LOSE`.
pub(super) fn lost_run(row: &PgRow) -> Result<LostRun, StoreError> {
    Ok(LostRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        host: column::<Option<String>>(row, "host")?.unwrap_or_default(),
        resource: resource(row, "resource")?,
        token: token(row, "token")?,
        rerun: None,
    })
}

/// A row of `OVERDUE`.
pub(super) fn overdue_run(row: &PgRow) -> Result<OverdueRun, StoreError> {
    Ok(OverdueRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        resource: resource(row, "resource")?,
        state: word(row, "state", RunState::from_column)?,
        reason: column(row, "reason")?,
    })
}

//! Rows to answers.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::clock::BootInstant;
use crate::fleet::{HostName, HostRow, InstanceId};
use crate::job::JobName;
use crate::lock::{FencingToken, PublicOwner, Resource};
use crate::store::fleet::labels;
use crate::store::{Acquired, Grant, Holder, PreviousOwner, StoreError};
use crate::trigger::{Origin, RunId, Target, Trigger};

/// Reads a column, naming what was asked if the row is not as expected.
pub(super) fn column<'r, T>(row: &'r PgRow, name: &'static str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    row.try_get(name).map_err(|error| malformed(format!("column {name}: {error}")))
}

pub(super) fn malformed(what: impl Into<String>) -> StoreError {
    StoreError::Malformed { operation: "reading a row", what: what.into() }
}

/// A word of a column that this version has to know.
pub(super) fn word<T>(row: &PgRow, name: &'static str, read: fn(&str) -> Option<T>) -> Result<T, StoreError> {
    let text: String = column(row, name)?;
    read(&text).ok_or_else(|| malformed(format!("column {name} holds {text:?}")))
}

pub(super) fn job_name(row: &PgRow) -> Result<JobName, StoreError> {
    JobName::new(column::<String>(row, "job")?).map_err(|error| malformed(error.to_string()))
}

pub(super) fn host_name(row: &PgRow) -> Result<HostName, StoreError> {
    HostName::new(column::<String>(row, "name")?).map_err(|error| malformed(error.to_string()))
}

pub(super) fn resource(row: &PgRow, name: &'static str) -> Result<Resource, StoreError> {
    Resource::new(column::<String>(row, name)?).map_err(|error| malformed(error.to_string()))
}

pub(super) fn token(row: &PgRow, name: &'static str) -> Result<FencingToken, StoreError> {
    Ok(FencingToken::new(column(row, name)?))
}

pub(super) fn run_id(row: &PgRow, name: &'static str) -> Result<RunId, StoreError> {
    Ok(RunId::from_uuid(column(row, name)?))
}

pub(super) fn optional_run_id(row: &PgRow, name: &'static str) -> Result<Option<RunId>, StoreError> {
    Ok(column::<Option<Uuid>>(row, name)?.map(RunId::from_uuid))
}

pub(super) fn attempt(row: &PgRow) -> Result<u32, StoreError> {
    u32::try_from(column::<i32>(row, "attempt")?).map_err(|error| malformed(format!("column attempt: {error}")))
}

pub(super) fn trigger(row: &PgRow) -> Result<Trigger, StoreError> {
    Ok(Trigger {
        job: job_name(row)?,
        scheduled_at: column(row, "scheduled_at")?,
        target: Target::from_column(column::<String>(row, "target")?),
        origin: Origin::from_column(column::<String>(row, "origin")?),
    })
}

/// The time from one instant to a later one; zero if it isn't later.
pub(super) fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> Duration {
    (to - from).to_std().unwrap_or_default()
}

/// The columns of a grant's answer; `sent` is from before the request.
pub(super) fn acquired(row: &PgRow, sent: BootInstant) -> Result<Acquired, StoreError> {
    let outcome: String = column(row, "lock_outcome")?;
    Ok(match outcome.as_str() {
        "granted" => Acquired::Granted(grant(row, sent)?),
        "held" => Acquired::Held(holder(row)?),
        "clock_stepped" => Acquired::ClockStepped { off_ms: column(row, "off_ms")? },
        other => return Err(malformed(format!("column lock_outcome holds {other:?}"))),
    })
}

pub(super) fn grant(row: &PgRow, sent: BootInstant) -> Result<Grant, StoreError> {
    let expires_at: DateTime<Utc> = column(row, "expires_at")?;
    let taken_from = match column::<Option<String>>(row, "prev_owner")? {
        None => None,
        Some(owner) => Some(PreviousOwner {
            owner: PublicOwner::of(&owner),
            token: token(row, "prev_token")?,
            acquired_at: column(row, "prev_acquired_at")?,
            expired_at: column(row, "prev_expires_at")?,
        }),
    };
    Ok(Grant {
        token: token(row, "token")?,
        acquired_at: column(row, "acquired_at")?,
        expires_at,
        valid_until: sent + between(column(row, "now")?, expires_at),
        taken_from,
    })
}

pub(super) fn holder(row: &PgRow) -> Result<Holder, StoreError> {
    let now = column(row, "now")?;
    let acquired_at = column(row, "acquired_at")?;
    let expires_at = column(row, "expires_at")?;
    Ok(Holder {
        resource: resource(row, "resource")?,
        owner: PublicOwner::of(&column::<String>(row, "owner")?),
        token: token(row, "token")?,
        acquired_at,
        expires_at,
        held: between(acquired_at, now),
        remaining: between(now, expires_at),
        run: optional_run_id(row, "lock_run")?,
    })
}

pub(super) fn host(row: &PgRow) -> Result<HostRow, StoreError> {
    Ok(HostRow {
        instance: InstanceId::from_uuid(column(row, "instance")?),
        name: host_name(row)?,
        version: column(row, "version")?,
        labels: labels(&column::<String>(row, "labels")?),
        schedule_digest: column(row, "schedule_digest")?,
        clock_offset_ms: column(row, "clock_offset_ms")?,
        draining: column(row, "draining")?,
        started_at: column(row, "started_at")?,
        seen_at: column(row, "seen_at")?,
    })
}

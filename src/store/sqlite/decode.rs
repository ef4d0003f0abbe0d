//! Rows to answers, and instants to text.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use crate::clock::BootInstant;
use crate::fleet::{HostName, HostRow, InstanceId};
use crate::job::JobName;
use crate::lock::{FencingToken, PublicOwner, Resource};
use crate::store::fleet::labels;
use crate::store::{Holder, LockRow, StoreError};
use crate::trigger::{Origin, RunId, Target, Trigger};

/// Reads a column, naming what was asked if the row is not as expected.
pub(super) fn column<'r, T>(row: &'r SqliteRow, name: &'static str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    row.try_get(name).map_err(|error| malformed(format!("column {name}: {error}")))
}

pub(super) fn malformed(what: impl Into<String>) -> StoreError {
    StoreError::Malformed { operation: "reading a row", what: what.into() }
}

/// An instant in the one shape that sorts by time; parts below a millisecond are cut off.
pub(super) fn text(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// `at` plus a duration, as far as the calendar goes.
pub(super) fn later(at: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(by).ok().and_then(|by| at.checked_add_signed(by)).unwrap_or(at)
}

fn parse(text: &str) -> Result<DateTime<Utc>, StoreError> {
    DateTime::parse_from_rfc3339(text)
        .map(|at| at.to_utc())
        .map_err(|error| malformed(format!("{text:?} is no instant: {error}")))
}

pub(super) fn instant(row: &SqliteRow, name: &'static str) -> Result<DateTime<Utc>, StoreError> {
    parse(column::<&str>(row, name)?)
}

pub(super) fn optional_instant(row: &SqliteRow, name: &'static str) -> Result<Option<DateTime<Utc>>, StoreError> {
    column::<Option<&str>>(row, name)?.map(parse).transpose()
}

/// A word of a column that this version has to know.
pub(super) fn word<T>(row: &SqliteRow, name: &'static str, read: fn(&str) -> Option<T>) -> Result<T, StoreError> {
    let text: &str = column(row, name)?;
    read(text).ok_or_else(|| malformed(format!("column {name} holds {text:?}")))
}

pub(super) fn uuid(text: &str) -> Result<Uuid, StoreError> {
    Uuid::try_parse(text).map_err(|error| malformed(format!("{text:?} is no UUID: {error}")))
}

pub(super) fn job_name(row: &SqliteRow) -> Result<JobName, StoreError> {
    JobName::new(column::<String>(row, "job")?).map_err(|error| malformed(error.to_string()))
}

pub(super) fn host_name(row: &SqliteRow) -> Result<HostName, StoreError> {
    HostName::new(column::<String>(row, "name")?).map_err(|error| malformed(error.to_string()))
}

pub(super) fn resource(row: &SqliteRow, name: &'static str) -> Result<Resource, StoreError> {
    Resource::new(column::<String>(row, name)?).map_err(|error| malformed(error.to_string()))
}

pub(super) fn token(row: &SqliteRow, name: &'static str) -> Result<FencingToken, StoreError> {
    Ok(FencingToken::new(column(row, name)?))
}

pub(super) fn run_id(row: &SqliteRow, name: &'static str) -> Result<RunId, StoreError> {
    Ok(RunId::from_uuid(uuid(column(row, name)?)?))
}

pub(super) fn optional_run_id(row: &SqliteRow, name: &'static str) -> Result<Option<RunId>, StoreError> {
    Ok(column::<Option<&str>>(row, name)?.map(uuid).transpose()?.map(RunId::from_uuid))
}

pub(super) fn attempt(row: &SqliteRow) -> Result<u32, StoreError> {
    u32::try_from(column::<i64>(row, "attempt")?).map_err(|error| malformed(format!("column attempt: {error}")))
}

pub(super) fn trigger(row: &SqliteRow) -> Result<Trigger, StoreError> {
    Ok(Trigger {
        job: job_name(row)?,
        scheduled_at: instant(row, "scheduled_at")?,
        target: Target::from_column(column::<String>(row, "target")?),
        origin: Origin::from_column(column::<String>(row, "origin")?),
    })
}

/// The time from one instant to a later one; zero if it isn't later.
pub(super) fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> Duration {
    (to - from).to_std().unwrap_or_default()
}

/// Where a grant that ends at `expires_at` ends on this host's clock; `sent` is from before the
/// clock was read as `now`.
pub(super) fn valid_until(sent: BootInstant, now: DateTime<Utc>, expires_at: DateTime<Utc>) -> BootInstant {
    sent + between(now, expires_at)
}

pub(super) fn holder(row: &SqliteRow) -> Result<Holder, StoreError> {
    let now = instant(row, "now")?;
    let acquired_at = instant(row, "acquired_at")?;
    let expires_at = instant(row, "expires_at")?;
    Ok(Holder {
        resource: resource(row, "resource")?,
        owner: PublicOwner::of(column(row, "owner")?),
        token: token(row, "token")?,
        acquired_at,
        expires_at,
        held: between(acquired_at, now),
        remaining: between(now, expires_at),
        run: optional_run_id(row, "lock_run")?,
    })
}

pub(super) fn lock_row(row: &SqliteRow) -> Result<LockRow, StoreError> {
    Ok(LockRow {
        holder: holder(row)?,
        renewed_at: instant(row, "renewed_at")?,
        released_at: optional_instant(row, "released_at")?,
    })
}

/// A token as the tables have it.
pub(super) fn raw(token: Option<FencingToken>) -> Option<i64> {
    token.map(FencingToken::get)
}

pub(super) fn host(row: &SqliteRow) -> Result<HostRow, StoreError> {
    Ok(HostRow {
        instance: InstanceId::from_uuid(uuid(column(row, "instance")?)?),
        name: host_name(row)?,
        version: column(row, "version")?,
        labels: labels(column(row, "labels")?),
        schedule_digest: column(row, "schedule_digest")?,
        clock_offset_ms: column(row, "clock_offset_ms")?,
        draining: column(row, "draining")?,
        started_at: instant(row, "started_at")?,
        seen_at: instant(row, "seen_at")?,
    })
}

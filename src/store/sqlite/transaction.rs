use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::decode::{column, instant, later, lock_row, text, token, valid_until};
use super::gate::Turn;
use super::{SqliteStore, Statement, execute, sql};
use crate::clock::{BootInstant, Expected};
use crate::lock::{FencingToken, Owner, Resource, Ttl};
use crate::store::connections::Call;
use crate::store::{Acquired, Grant, PreviousOwner, StoreError};

/// A transaction that has the file for writing from its first moment. Dropped before
/// [`Transaction::commit`], its connection is closed and nothing was written.
pub(super) struct Transaction<'a> {
    call: Call<'a, SqliteConnection>,
    /// From before any reading of the clock in here.
    pub(super) sent: BootInstant,
    _turn: Turn<'a>,
}

impl SqliteStore {
    pub(super) async fn begin(&self, operation: &'static str) -> Result<Transaction<'_>, StoreError> {
        self.begin_on(operation, self.work.call(operation).await?).await
    }

    pub(super) async fn begin_heartbeat(
        &self,
        operation: &'static str,
        within: Duration,
    ) -> Result<Transaction<'_>, StoreError> {
        self.begin_on(operation, self.heartbeat.call_within(operation, within).await?).await
    }

    async fn begin_on<'a>(
        &'a self,
        operation: &'static str,
        mut call: Call<'a, SqliteConnection>,
    ) -> Result<Transaction<'a>, StoreError> {
        let turn = match self.gate.turn(operation, call.deadline()).await {
            Ok(turn) => turn,
            Err(error) => return Err(call.failed(error)),
        };
        match execute(&mut call, sql::BEGIN).await {
            // Read once the file is there: the clock in SQL is read later still.
            Ok(()) => Ok(Transaction { call, sent: BootInstant::now(), _turn: turn }),
            Err(error) => Err(call.failed(error)),
        }
    }
}

impl Transaction<'_> {
    pub(super) async fn all(&mut self, query: Statement<'_>) -> Result<Vec<SqliteRow>, StoreError> {
        self.call.run(|connection| query.fetch_all(connection)).await
    }

    pub(super) async fn optional(&mut self, query: Statement<'_>) -> Result<Option<SqliteRow>, StoreError> {
        self.call.run(|connection| query.fetch_optional(connection)).await
    }

    pub(super) async fn one(&mut self, query: Statement<'_>) -> Result<SqliteRow, StoreError> {
        self.call.run(|connection| query.fetch_one(connection)).await
    }

    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        execute(&mut self.call, sql::COMMIT).await?;
        self.call.done();
        Ok(())
    }

    /// Grants a lock, or says who holds it.
    pub(super) async fn grant(
        &mut self,
        resource: &Resource,
        owner: &Owner,
        ttl: Ttl,
        expected_now: Option<Expected>,
    ) -> Result<Acquired, StoreError> {
        let look = sqlx::query(sql::ACQUIRE_LOOK).bind(resource.as_str());
        let mut taken_from = None;
        let (now, kept) = match self.optional(look).await? {
            None => (self.now().await?, None),
            Some(row) => {
                let now = instant(&row, "now")?;
                let found = lock_row(&row)?;
                let own = column::<&str>(&row, "owner")? == owner.reveal();
                let live = found.holder.expires_at > now;
                if live && !own {
                    return Ok(Acquired::Held(found.holder));
                }
                if !live && found.released_at.is_none() {
                    let off = expected_now.map_or(TimeDelta::zero(), |expected| now - expected.at(BootInstant::now()));
                    if off.abs() > TimeDelta::seconds(1) {
                        return Ok(Acquired::ClockStepped { off_ms: off.num_milliseconds() });
                    }
                    taken_from = Some(PreviousOwner {
                        owner: found.holder.owner,
                        token: found.holder.token,
                        acquired_at: found.holder.acquired_at,
                        expired_at: found.holder.expires_at,
                    });
                }
                (now, live.then_some(found.holder.token))
            }
        };
        let token = match kept {
            Some(token) => token,
            None => self.draw_token().await?,
        };
        let expires_at = later(now, ttl.get());
        let write = sqlx::query(sql::ACQUIRE)
            .bind(resource.as_str())
            .bind(owner.reveal())
            .bind(token.get())
            .bind(text(now))
            .bind(text(expires_at));
        self.one(write).await?;
        let valid_until = valid_until(self.sent, now, expires_at);
        Ok(Acquired::Granted(Grant { token, acquired_at: now, expires_at, valid_until, taken_from }))
    }

    pub(super) async fn now(&mut self) -> Result<DateTime<Utc>, StoreError> {
        instant(&self.one(sqlx::query(sql::NOW)).await?, "now")
    }

    async fn draw_token(&mut self) -> Result<FencingToken, StoreError> {
        token(&self.one(sqlx::query(sql::DRAW_TOKEN)).await?, "last")
    }
}

//! What becomes of a trigger whose lock is held: what `cronlatch_claim_v3` decides on PostgreSQL, with
//! `cronlatch_replace_v1` and `cronlatch_supersede_v1`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::decode::{column, later, text};
use super::sql;
use super::transaction::Transaction;
use crate::fleet::HostName;
use crate::store::{Became, Claim, Holder, StoreError, WhenHeld};
use crate::trigger::{RunId, SkipReason, Trigger};

impl Transaction<'_> {
    /// Says in the run's row what becomes of a trigger whose lock was not granted.
    pub(super) async fn hold_off(
        &mut self,
        claim: &Claim,
        held: Option<&Holder>,
        now: DateTime<Utc>,
    ) -> Result<Became, StoreError> {
        let Some(holder) = held else {
            return self.wait(claim.run, "clock_stepped", None, later(now, claim.start_deadline)).await;
        };
        match claim.when_held {
            WhenHeld::Skip => self.skip(claim.run, SkipReason::LockHeld, holder, now).await,
            WhenHeld::Wait(wait) => {
                let any_waiting =
                    sqlx::query(sql::ANY_WAITING).bind(claim.trigger.job.as_str()).bind(claim.trigger.target.as_str());
                if self.optional(any_waiting).await?.is_some() {
                    return self.skip(claim.run, SkipReason::AlreadyWaiting, holder, now).await;
                }
                self.wait(claim.run, "lock_held", Some(holder), later(now, wait)).await
            }
            WhenHeld::Replace(wait) => self.replace_or_skip(claim, holder, now, wait).await,
        }
    }

    async fn replace_or_skip(
        &mut self,
        claim: &Claim,
        holder: &Holder,
        now: DateTime<Utc>,
        wait: Duration,
    ) -> Result<Became, StoreError> {
        if let Some(reason) = self.replace(claim.run, &claim.trigger, &claim.claimant.host, holder).await? {
            return self.skip(claim.run, reason, holder, now).await;
        }
        self.supersede(claim.run, &claim.trigger).await?;
        let until = later(now, wait);
        self.wait(claim.run, "replacing", Some(holder), until).await?;
        Ok(Became::Replacing { until })
    }

    /// Has the holder asked to stop, once, if that is a run of the same job and of no later trigger; else
    /// says why not.
    pub(super) async fn replace(
        &mut self,
        run: RunId,
        trigger: &Trigger,
        host: &HostName,
        holder: &Holder,
    ) -> Result<Option<SkipReason>, StoreError> {
        let Some(held_by) = holder.run.map(|run| run.to_string()) else { return Ok(Some(SkipReason::LockHeld)) };
        let look = sqlx::query(sql::REPLACE_LOOK)
            .bind(held_by.clone())
            .bind(trigger.job.as_str())
            .bind(trigger.target.as_str())
            .bind(text(trigger.scheduled_at));
        let Some(row) = self.optional(look).await? else { return Ok(Some(SkipReason::LockHeld)) };
        if column(&row, "superseded")? {
            return Ok(Some(SkipReason::Superseded));
        }
        let ask = sqlx::query(sql::REPLACE)
            .bind(Uuid::now_v7().to_string())
            .bind(trigger.job.as_str())
            .bind(held_by)
            .bind(host.as_str())
            .bind(run.to_string());
        self.all(ask).await?;
        Ok(None)
    }

    /// Closes what waits of a job and is older than a trigger that replaces.
    pub(super) async fn supersede(&mut self, run: RunId, trigger: &Trigger) -> Result<(), StoreError> {
        let query = sqlx::query(sql::SUPERSEDE)
            .bind(run.to_string())
            .bind(trigger.job.as_str())
            .bind(trigger.target.as_str())
            .bind(text(trigger.scheduled_at));
        self.all(query).await?;
        Ok(())
    }

    async fn wait(
        &mut self,
        run: RunId,
        reason: &'static str,
        held: Option<&Holder>,
        until: DateTime<Utc>,
    ) -> Result<Became, StoreError> {
        let query = sqlx::query(sql::CLAIM_WAITING)
            .bind(run.to_string())
            .bind(reason)
            .bind(held.and_then(|holder| holder.run).map(|run| run.to_string()))
            .bind(text(until));
        self.all(query).await?;
        Ok(Became::Waiting { until })
    }

    pub(super) async fn skip(
        &mut self,
        run: RunId,
        reason: SkipReason,
        holder: &Holder,
        now: DateTime<Utc>,
    ) -> Result<Became, StoreError> {
        let query = sqlx::query(sql::CLAIM_SKIPPED)
            .bind(run.to_string())
            .bind(reason.as_str())
            .bind(holder.run.map(|run| run.to_string()))
            .bind(text(now));
        self.all(query).await?;
        Ok(Became::Skipped(reason))
    }
}

//! Claims: what `cronlatch_claim_v3` and `cronlatch_take_v3` are on PostgreSQL, step by step in one
//! transaction.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::decode::{
    between, column, holder, instant, later, optional_instant, raw, run_id, text, token, trigger, valid_until, word,
};
use super::runs::millis;
use super::transaction::Transaction;
use super::{Statement, sql};
use crate::job::JobName;
use crate::lock::{FencingToken, Owner, Resource};
use crate::store::{Acquired, Became, Claim, Claimant, Claimed, Grant, Holder, StoreError, Taken, WhenHeld};
use crate::trigger::{Origin, RunId, RunState, SkipReason, Target, Trigger, TriggerKind};

impl Transaction<'_> {
    pub(super) async fn claim(&mut self, claim: &Claim) -> Result<Claimed, StoreError> {
        let look = sqlx::query(sql::CLAIM_JOB).bind(claim.trigger.job.as_str()).bind(claim.trigger.target.as_str());
        let row = self.one(look).await?;
        let now = instant(&row, "now")?;
        let early = between(now, claim.trigger.scheduled_at);
        if early > Duration::from_secs(1) {
            return Ok(Claimed::TooEarly { by: early });
        }
        if self.optional(claimed_query(claim)).await?.is_some() {
            return self.already_claimed(claim).await;
        }
        let is_past = |through: Option<DateTime<Utc>>| through.is_some_and(|at| at >= claim.trigger.scheduled_at);
        if is_past(optional_instant(&row, "pruned_through")?) {
            return Ok(Claimed::Forgotten);
        }
        if column::<Option<bool>>(&row, "paused")?.unwrap_or_default() {
            return Ok(Claimed::Paused);
        }
        let of_schedule = claim.kind == TriggerKind::Schedule && claim.trigger.origin == Origin::schedule();
        // A watermark in the future was left by a clock that was wrong.
        let caught_up_through = optional_instant(&row, "caught_up_through")?.filter(|at| *at <= now);
        if of_schedule && is_past(caught_up_through) {
            return Ok(Claimed::Settled);
        }
        self.insert_run(claim, now).await?;
        let by = &claim.claimant;
        let held = match self.other_run(&claim.trigger.job, &claim.trigger.target, &by.resource).await? {
            Some(holder) => Some(holder),
            None => match self.grant(&by.resource, &by.owner, by.ttl, by.expected_now).await? {
                Acquired::Granted(grant) => {
                    let query = sqlx::query(sql::CLAIM_GRANTED)
                        .bind(claim.run.to_string())
                        .bind(grant.token.get())
                        .bind(text(grant.acquired_at));
                    self.all(query).await?;
                    if matches!(claim.when_held, WhenHeld::Replace(_)) {
                        self.supersede(claim.run, &claim.trigger).await?;
                    }
                    return Ok(Claimed::Granted(grant));
                }
                Acquired::Held(holder) => Some(holder),
                Acquired::ClockStepped { .. } => None,
            },
        };
        let became = self.hold_off(claim, held.as_ref(), now).await?;
        Ok(Claimed::Held { holder: held, became })
    }

    async fn insert_run(&mut self, claim: &Claim, now: DateTime<Utc>) -> Result<(), StoreError> {
        let by = &claim.claimant;
        let query = sqlx::query(sql::CLAIM)
            .bind(claim.run.to_string())
            .bind(claim.trigger.job.as_str())
            .bind(text(claim.trigger.scheduled_at))
            .bind(claim.trigger.target.as_str())
            .bind(claim.trigger.origin.as_str())
            .bind(i64::from(claim.attempt))
            .bind(claim.kind.as_str())
            .bind(text(now))
            .bind(by.host.as_str())
            .bind(by.instance.to_string())
            .bind(by.owner.public().as_str().to_owned())
            .bind(by.resource.as_str())
            .bind(millis(claim.start_deadline))
            .bind(text(later(now, claim.start_deadline)))
            .bind(i64::from(claim.reruns_left));
        self.all(query).await?;
        Ok(())
    }

    async fn already_claimed(&mut self, claim: &Claim) -> Result<Claimed, StoreError> {
        let row = self.one(claimed_query(claim)).await?;
        let run = run_id(&row, "id")?;
        let state = word(&row, "state", RunState::from_column)?;
        if run == claim.run {
            // The same claim again: its first answer was lost.
            match state {
                RunState::Waiting => {
                    let until = instant(&row, "wait_until")?;
                    let replacing = column::<Option<&str>>(&row, "reason")? == Some("replacing");
                    let became = if replacing { Became::Replacing { until } } else { Became::Waiting { until } };
                    return Ok(Claimed::Held { holder: None, became });
                }
                RunState::Skipped => {
                    let reason = word(&row, "reason", SkipReason::from_column)?;
                    return Ok(Claimed::Held { holder: None, became: Became::Skipped(reason) });
                }
                RunState::Claimed | RunState::Running => {
                    let drawn = column::<Option<i64>>(&row, "token")?.map(FencingToken::new);
                    let by = &claim.claimant;
                    let ours = column::<Option<&str>>(&row, "owner")? == Some(by.owner.public().as_str());
                    if let (true, Some(grant)) = (ours, self.own_grant(&by.resource, &by.owner, drawn).await?) {
                        return Ok(Claimed::Granted(grant));
                    }
                }
                _ => {}
            }
        }
        Ok(Claimed::AlreadyClaimed { run, host: column(&row, "host")?, state })
    }

    /// The grant that this owner has under this token already, however long ago.
    pub(super) async fn own_grant(
        &mut self,
        resource: &Resource,
        owner: &Owner,
        drawn: Option<FencingToken>,
    ) -> Result<Option<Grant>, StoreError> {
        let query = sqlx::query(sql::OWN_LOCK).bind(resource.as_str()).bind(owner.reveal()).bind(raw(drawn));
        let Some(row) = self.optional(query).await? else { return Ok(None) };
        let expires_at = instant(&row, "expires_at")?;
        Ok(Some(Grant {
            token: token(&row, "token")?,
            acquired_at: instant(&row, "acquired_at")?,
            expires_at,
            valid_until: valid_until(self.sent, instant(&row, "now")?, expires_at),
            taken_from: None,
        }))
    }

    async fn other_run(
        &mut self,
        job: &JobName,
        target: &Target,
        resource: &Resource,
    ) -> Result<Option<Holder>, StoreError> {
        let query = sqlx::query(sql::OTHER_RUN).bind(job.as_str()).bind(target.as_str()).bind(resource.as_str());
        self.optional(query).await?.as_ref().map(holder).transpose()
    }

    pub(super) async fn take(&mut self, run: RunId, by: &Claimant) -> Result<Taken, StoreError> {
        let Some(row) = self.optional(sqlx::query(sql::TAKE_LOOK).bind(run.to_string())).await? else {
            return Ok(Taken::Gone);
        };
        let now = instant(&row, "now")?;
        let state = word(&row, "state", RunState::from_column)?;
        if matches!(state, RunState::Claimed | RunState::Running) {
            // The same attempt again: its first answer was lost.
            let ours = column::<Option<&str>>(&row, "owner")? == Some(by.owner.public().as_str());
            let drawn = column::<Option<i64>>(&row, "token")?.map(FencingToken::new);
            let grant = if ours { self.own_grant(&by.resource, &by.owner, drawn).await? } else { None };
            return Ok(grant.map_or(Taken::Gone, Taken::Granted));
        }
        if state != RunState::Waiting {
            return Ok(Taken::Gone);
        }
        if column::<Option<bool>>(&row, "not_now")?.unwrap_or_default() {
            return Ok(Taken::NotNow);
        }
        let trigger = trigger(&row)?;
        let replaces = column::<Option<&str>>(&row, "reason")? == Some("replacing");
        if let Some(holder) = self.other_run(&trigger.job, &trigger.target, &by.resource).await? {
            return self.still_held(run, &trigger, by, holder, replaces.then_some(now)).await;
        }
        if optional_instant(&row, "wait_until")?.is_some_and(|until| until <= now) {
            return Ok(Taken::Gone);
        }
        match self.grant(&by.resource, &by.owner, by.ttl, by.expected_now).await? {
            Acquired::Held(holder) => self.still_held(run, &trigger, by, holder, replaces.then_some(now)).await,
            Acquired::ClockStepped { .. } => Ok(Taken::NotNow),
            Acquired::Granted(grant) => {
                let query = sqlx::query(sql::TAKE)
                    .bind(run.to_string())
                    .bind(by.host.as_str())
                    .bind(by.instance.to_string())
                    .bind(by.owner.public().as_str().to_owned())
                    .bind(by.resource.as_str())
                    .bind(grant.token.get())
                    .bind(text(grant.acquired_at));
                self.all(query).await?;
                self.shift_late_runs(run, grant.acquired_at).await?;
                if replaces {
                    self.supersede(run, &trigger).await?;
                }
                Ok(Taken::Granted(grant))
            }
        }
    }

    /// Sees to it that what a run waits to replace is asked to stop, whoever holds its lock now; closes it
    /// if that is none that it replaces.
    async fn still_held(
        &mut self,
        run: RunId,
        trigger: &Trigger,
        by: &Claimant,
        holder: Holder,
        replaces: Option<DateTime<Utc>>,
    ) -> Result<Taken, StoreError> {
        let Some(now) = replaces else { return Ok(Taken::Held(holder)) };
        match self.replace(run, trigger, &by.host, &holder).await? {
            None => Ok(Taken::Held(holder)),
            Some(reason) => {
                self.skip(run, reason, &holder, now).await?;
                Ok(Taken::Skipped(reason, holder))
            }
        }
    }

    /// Moves the late runs after one that starts now, if that is one.
    async fn shift_late_runs(&mut self, run: RunId, now: DateTime<Utc>) -> Result<(), StoreError> {
        let shift = sqlx::query(sql::SHIFT_LATE_RUNS).bind(run.to_string()).bind(text(now));
        if !self.all(shift).await?.is_empty() {
            self.all(sqlx::query(sql::LATE_RUN_STARTS).bind(run.to_string()).bind(text(now))).await?;
        }
        Ok(())
    }
}

/// The row of a claim's trigger and attempt.
fn claimed_query(claim: &Claim) -> Statement<'_> {
    sqlx::query(sql::CLAIMED)
        .bind(claim.trigger.job.as_str())
        .bind(text(claim.trigger.scheduled_at))
        .bind(claim.trigger.target.as_str())
        .bind(claim.trigger.origin.as_str())
        .bind(i64::from(claim.attempt))
}

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::sqlite::SqliteRow;

use super::decode::{
    attempt, between, column, holder, instant, later, optional_instant, optional_run_id, raw, run_id, text, token,
    trigger, valid_until, word,
};
use super::transaction::Transaction;
use super::{SqliteStore, all, sql};
use crate::job::JobName;
use crate::lock::{FencingToken, Owner, Resource};
use crate::store::{
    Acquired, Became, CatchUpPlan, Claim, Claimant, Claimed, Ending, Finished, Grant, Holder, JobProgress, LockAtEnd,
    ProgressQuery, Pruned, Recovered, Retention, RunFilter, RunKey, RunRow, Runs, StoreError, Taken, WaitingRun,
};
use crate::trigger::{Origin, RunId, RunState, SkipReason, Target, Trigger, TriggerKind};

#[async_trait]
impl Runs for SqliteStore {
    async fn claim(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        let mut transaction = self.begin("claim a trigger").await?;
        let answer = transaction.claim(claim).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    async fn unclaimed(&self, triggers: &[Trigger]) -> Result<Vec<Trigger>, StoreError> {
        let mut call = self.work.call("look for claims").await?;
        let mut unclaimed = Vec::new();
        for trigger in triggers {
            let query = sqlx::query(sql::UNCLAIMED)
                .bind(trigger.job.as_str())
                .bind(text(trigger.scheduled_at))
                .bind(trigger.target.as_str())
                .bind(trigger.origin.as_str());
            if call.run(|connection| query.fetch_optional(connection)).await?.is_none() {
                unclaimed.push(trigger.clone());
            }
        }
        call.done();
        Ok(unclaimed)
    }

    async fn start(&self, key: &RunKey, started_at: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut transaction = self.begin("mark a run as started").await?;
        let query = sqlx::query(sql::START)
            .bind(key.run.to_string())
            .bind(key.owner.public().as_str().to_owned())
            .bind(key.token.get())
            .bind(text(started_at));
        let started = transaction.optional(query).await?.is_some();
        transaction.commit().await?;
        Ok(started)
    }

    async fn finish(&self, key: &RunKey, ending: &Ending) -> Result<Finished, StoreError> {
        let mut transaction = self.begin("finish a run").await?;
        let recorded = transaction.record_ending(key, ending).await?;
        let look = sqlx::query(sql::FINISH_LOCK_LOOK)
            .bind(key.resource.as_str())
            .bind(key.owner.reveal())
            .bind(key.token.get());
        let lock = match transaction.optional(look).await? {
            None => LockAtEnd::Gone,
            Some(row) => {
                transaction.free_lock(&key.resource, key.token).await?;
                if column(&row, "expired")? { LockAtEnd::Expired } else { LockAtEnd::Released }
            }
        };
        transaction.commit().await?;
        Ok(Finished { recorded, lock })
    }

    async fn give_back(&self, key: &RunKey, reason: &str) -> Result<bool, StoreError> {
        let mut transaction = self.begin("give a claim back").await?;
        let query = sqlx::query(sql::GIVE_BACK)
            .bind(key.run.to_string())
            .bind(key.owner.public().as_str().to_owned())
            .bind(key.token.get())
            .bind(reason.to_owned());
        let given = transaction.optional(query).await?.is_some();
        if transaction.own_grant(&key.resource, &key.owner, Some(key.token)).await?.is_some() {
            transaction.free_lock(&key.resource, key.token).await?;
        }
        transaction.commit().await?;
        Ok(given)
    }

    async fn waiting(&self) -> Result<Vec<WaitingRun>, StoreError> {
        let call = self.work.call("list waiting runs").await?;
        all(call, sqlx::query(sql::WAITING)).await?.iter().map(waiting_run).collect()
    }

    async fn take(&self, run: RunId, claimant: &Claimant) -> Result<Taken, StoreError> {
        let mut transaction = self.begin("take a waiting run").await?;
        let answer = transaction.take(run, claimant).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    async fn recover(&self, expected_now: Option<DateTime<Utc>>) -> Result<Recovered, StoreError> {
        self.recover_in_one_transaction(expected_now).await
    }

    async fn progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError> {
        self.read_progress(queries).await
    }

    async fn catch_up(&self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        self.catch_up_in_one_transaction(plan).await
    }

    async fn prune(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        self.prune_one_step(retention).await
    }

    async fn history(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let call = self.work.call("list runs").await?;
        let query = sqlx::query(sql::HISTORY)
            .bind(filter.job.as_ref().map(|job| job.as_str().to_owned()))
            .bind(filter.state.map(RunState::as_str))
            .bind(filter.since.map(text))
            .bind(filter.before.map(|run| run.to_string()))
            .bind(i64::from(filter.limit));
        all(call, query).await?.iter().map(run_row).collect()
    }
}

impl Transaction<'_> {
    async fn claim(&mut self, claim: &Claim) -> Result<Claimed, StoreError> {
        let row = self.one(sqlx::query(sql::CLAIM_JOB).bind(claim.trigger.job.as_str())).await?;
        let now = instant(&row, "now")?;
        let early = between(now, claim.trigger.scheduled_at);
        if early > Duration::from_secs(1) {
            return Ok(Claimed::TooEarly { by: early });
        }
        if optional_instant(&row, "pruned_through")?.is_some_and(|through| through >= claim.trigger.scheduled_at) {
            return Ok(Claimed::Forgotten);
        }
        if column::<Option<bool>>(&row, "paused")?.unwrap_or_default() {
            return Ok(Claimed::Paused);
        }
        if !self.insert_run(claim, now).await? {
            return self.already_claimed(claim).await;
        }
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
                    return Ok(Claimed::Granted(grant));
                }
                Acquired::Held(holder) => Some(holder),
                Acquired::ClockStepped { .. } => None,
            },
        };
        let became = self.hold_off(claim, held.as_ref(), now).await?;
        Ok(Claimed::Held { holder: held, became })
    }

    async fn insert_run(&mut self, claim: &Claim, now: DateTime<Utc>) -> Result<bool, StoreError> {
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
            .bind(i64::from(claim.reruns_left));
        Ok(self.optional(query).await?.is_some())
    }

    async fn already_claimed(&mut self, claim: &Claim) -> Result<Claimed, StoreError> {
        let query = sqlx::query(sql::CLAIMED)
            .bind(claim.trigger.job.as_str())
            .bind(text(claim.trigger.scheduled_at))
            .bind(claim.trigger.target.as_str())
            .bind(claim.trigger.origin.as_str())
            .bind(i64::from(claim.attempt));
        let row = self.one(query).await?;
        let run = run_id(&row, "id")?;
        let state = word(&row, "state", RunState::from_column)?;
        if run == claim.run {
            // The same claim again: its first answer was lost.
            match state {
                RunState::Waiting => {
                    let until = instant(&row, "wait_until")?;
                    return Ok(Claimed::Held { holder: None, became: Became::Waiting { until } });
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
    async fn own_grant(
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

    /// Says in the run's row what becomes of a trigger whose lock was not granted.
    async fn hold_off(
        &mut self,
        claim: &Claim,
        held: Option<&Holder>,
        now: DateTime<Utc>,
    ) -> Result<Became, StoreError> {
        let any_waiting =
            sqlx::query(sql::ANY_WAITING).bind(claim.trigger.job.as_str()).bind(claim.trigger.target.as_str());
        let (reason, wait) = match (held, claim.wait) {
            (None, _) => ("clock_stepped", claim.start_deadline),
            (Some(_), None) => return self.skip(claim.run, SkipReason::LockHeld, held, now).await,
            (Some(_), Some(_)) if self.optional(any_waiting).await?.is_some() => {
                return self.skip(claim.run, SkipReason::AlreadyWaiting, held, now).await;
            }
            (Some(_), Some(wait)) => ("lock_held", wait),
        };
        let until = later(now, wait);
        let query = sqlx::query(sql::CLAIM_WAITING)
            .bind(claim.run.to_string())
            .bind(reason)
            .bind(held.and_then(|holder| holder.run).map(|run| run.to_string()))
            .bind(text(until));
        self.all(query).await?;
        Ok(Became::Waiting { until })
    }

    async fn skip(
        &mut self,
        run: RunId,
        reason: SkipReason,
        held: Option<&Holder>,
        now: DateTime<Utc>,
    ) -> Result<Became, StoreError> {
        let query = sqlx::query(sql::CLAIM_SKIPPED)
            .bind(run.to_string())
            .bind(reason.as_str())
            .bind(held.and_then(|holder| holder.run).map(|run| run.to_string()))
            .bind(text(now));
        self.all(query).await?;
        Ok(Became::Skipped(reason))
    }

    async fn take(&mut self, run: RunId, by: &Claimant) -> Result<Taken, StoreError> {
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
        if column(&row, "paused")? {
            return Ok(Taken::NotNow);
        }
        let job = JobName::new(column::<String>(&row, "job")?)
            .map_err(|error| super::decode::malformed(error.to_string()))?;
        let target = Target::from_column(column::<String>(&row, "target")?);
        if let Some(holder) = self.other_run(&job, &target, &by.resource).await? {
            return Ok(Taken::Held(holder));
        }
        if optional_instant(&row, "wait_until")?.is_some_and(|until| until <= now) {
            return Ok(Taken::Gone);
        }
        match self.grant(&by.resource, &by.owner, by.ttl, by.expected_now).await? {
            Acquired::Held(holder) => Ok(Taken::Held(holder)),
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
                Ok(Taken::Granted(grant))
            }
        }
    }

    /// Whether the row takes the ending, and writes it if so.
    async fn record_ending(&mut self, key: &RunKey, ending: &Ending) -> Result<bool, StoreError> {
        let look = sqlx::query(sql::FINISH_LOOK)
            .bind(key.run.to_string())
            .bind(key.owner.public().as_str().to_owned())
            .bind(key.token.get());
        let row = self.one(look).await?;
        if column::<Option<&str>>(&row, "state")?.is_none() {
            return Ok(false);
        }
        let state = word(&row, "state", RunState::from_column)?;
        if !matches!(state, RunState::Claimed | RunState::Running | RunState::Lost) {
            return Ok(state == ending.state);
        }
        let query = sqlx::query(sql::FINISH)
            .bind(key.run.to_string())
            .bind(ending.state.as_str())
            .bind(ending.exit_code)
            .bind(ending.signal)
            .bind(ending.reason.clone())
            .bind(column::<String>(&row, "now")?)
            .bind(ending.started_at.map(text))
            .bind(ending.output_tail.clone());
        self.all(query).await?;
        let query = sqlx::query(sql::FINISH_JOB)
            .bind(column::<String>(&row, "job")?)
            .bind(column::<String>(&row, "scheduled_at")?)
            .bind(ending.state == RunState::Succeeded);
        self.all(query).await?;
        if ending.state == RunState::Lost && state != RunState::Lost {
            self.rerun(key.run).await?;
        }
        Ok(true)
    }

    /// Makes the next attempt of a lost run wait, if it may have one.
    pub(super) async fn rerun(&mut self, lost: RunId) -> Result<Option<RunId>, StoreError> {
        let rerun = RunId::generate();
        let query = sqlx::query(sql::RERUN).bind(lost.to_string()).bind(rerun.to_string());
        Ok(self.optional(query).await?.map(|_| rerun))
    }

    pub(super) async fn free_lock(&mut self, resource: &Resource, token: FencingToken) -> Result<(), StoreError> {
        self.all(sqlx::query(sql::FREE_LOCK).bind(resource.as_str()).bind(token.get())).await?;
        Ok(())
    }
}

/// Milliseconds as the tables have them.
pub(super) fn millis(duration: Duration) -> i64 {
    TimeDelta::from_std(duration).map_or(i64::MAX, |delta| delta.num_milliseconds())
}

fn waiting_run(row: &SqliteRow) -> Result<WaitingRun, StoreError> {
    Ok(WaitingRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        kind: word(row, "trigger", TriggerKind::from_column)?,
        since: instant(row, "created_at")?,
        wait_until: instant(row, "wait_until")?,
    })
}

fn run_row(row: &SqliteRow) -> Result<RunRow, StoreError> {
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
        exit_code: column(row, "exit_code")?,
        signal: column(row, "signal")?,
        reason: column(row, "reason")?,
        blocked_by: optional_run_id(row, "blocked_by")?,
        output_tail: column(row, "output_tail")?,
    })
}

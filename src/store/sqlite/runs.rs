use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::sqlite::SqliteRow;

use super::decode::{attempt, column, run_id, text, word};
use super::rows::{missed_row, run_row, trigger_outcome, waiting_run};
use super::transaction::Transaction;
use super::{SqliteStore, all, sql};
use crate::clock::Expected;
use crate::fleet::HostName;
use crate::job::JobName;
use crate::lock::{FencingToken, Resource};
use crate::store::{
    Claim, Claimant, Claimed, Ending, Finished, Follower, LockAtEnd, MissedRow, OutcomeQuery, Pruned, Recovered,
    Retention, Retried, RunFilter, RunKey, RunRow, Runs, StoreError, Taken, TriggerOutcome, WaitingRun,
};
use crate::trigger::{MissedReason, RunId, RunState, Trigger};

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

    async fn finish(&self, key: &RunKey, ending: &Ending, followers: &[Follower]) -> Result<Finished, StoreError> {
        let mut transaction = self.begin("finish a run").await?;
        let recorded = transaction.record_ending(key, ending).await?;
        let mut followed = Vec::new();
        if ending.state == RunState::Succeeded && recorded != Recorded::No {
            for follower in followers {
                if recorded == Recorded::Now {
                    transaction.follow(key.run, follower).await?;
                }
                followed.extend(transaction.followed(key.run, &follower.job).await?);
            }
        }
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
        Ok(Finished { recorded: recorded != Recorded::No, lock, followed })
    }

    async fn retry(&self, key: &RunKey, ending: &Ending, next: RunId) -> Result<Retried, StoreError> {
        let mut transaction = self.begin("try a run again").await?;
        let answer = transaction.retry(key, ending, next).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    async fn give_back(&self, key: &RunKey, reason: &str) -> Result<bool, StoreError> {
        let mut transaction = self.begin("give a claim back").await?;
        let guarded = |sql| {
            sqlx::query(sql)
                .bind(key.run.to_string())
                .bind(key.owner.public().as_str().to_owned())
                .bind(key.token.get())
        };
        let mut given = transaction.optional(guarded(sql::GIVE_BACK_CANCELLED)).await?.is_some();
        if !given {
            given = transaction.optional(guarded(sql::GIVE_BACK).bind(reason.to_owned())).await?.is_some();
        }
        if given && transaction.own_grant(&key.resource, &key.owner, Some(key.token)).await?.is_some() {
            transaction.free_lock(&key.resource, key.token).await?;
        }
        transaction.commit().await?;
        Ok(given)
    }

    async fn waiting(&self, host: &HostName) -> Result<Vec<WaitingRun>, StoreError> {
        let call = self.work.call("list waiting runs").await?;
        all(call, sqlx::query(sql::WAITING).bind(host.as_str())).await?.iter().map(waiting_run).collect()
    }

    async fn take(&self, run: RunId, claimant: &Claimant) -> Result<Taken, StoreError> {
        let mut transaction = self.begin("take a waiting run").await?;
        let answer = transaction.take(run, claimant).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    async fn recover(&self, expected_now: Option<Expected>) -> Result<Recovered, StoreError> {
        self.recover_in_one_transaction(expected_now).await
    }

    async fn missed(&self, filter: &RunFilter) -> Result<Vec<MissedRow>, StoreError> {
        let call = self.work.call("list missed triggers").await?;
        let query = sqlx::query(sql::MISSED)
            .bind(filter.job.as_ref().map(|job| job.as_str().to_owned()))
            .bind(filter.since.map(text))
            .bind(filter.state.map(RunState::as_str))
            .bind(i64::from(filter.limit));
        all(call, query).await?.iter().map(missed_row).collect()
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

    async fn outcomes(&self, query: &OutcomeQuery) -> Result<Vec<TriggerOutcome>, StoreError> {
        let call = self.work.call("look how triggers ended").await?;
        let reasons = serde_json::to_string(&MissedReason::failures()).expect("strings can be written as JSON");
        let statement = sqlx::query(sql::OUTCOMES)
            .bind(query.job.as_str())
            .bind(query.target.as_str())
            .bind(text(query.through))
            .bind(i64::from(query.limit))
            .bind(reasons);
        all(call, statement).await?.iter().map(trigger_outcome).collect()
    }
}

/// Whether a row took an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recorded {
    /// It is another run's, or another ending was recorded before.
    No,
    /// By this call.
    Now,
    /// By an earlier one.
    Before,
}

impl Transaction<'_> {
    /// Writes an ending if the row takes it.
    async fn record_ending(&mut self, key: &RunKey, ending: &Ending) -> Result<Recorded, StoreError> {
        let look = sqlx::query(sql::FINISH_LOOK)
            .bind(key.run.to_string())
            .bind(key.owner.public().as_str().to_owned())
            .bind(key.token.get());
        let row = self.one(look).await?;
        if column::<Option<&str>>(&row, "state")?.is_none() {
            return Ok(Recorded::No);
        }
        let state = word(&row, "state", RunState::from_column)?;
        if !matches!(state, RunState::Claimed | RunState::Running | RunState::Lost) {
            return Ok(if state == ending.state { Recorded::Before } else { Recorded::No });
        }
        self.write_ending(key.run, ending, &row).await?;
        if ending.state == RunState::Lost && state != RunState::Lost {
            self.rerun(key.run).await?;
        }
        if ending.state == RunState::Succeeded && state == RunState::Lost {
            self.all(sqlx::query(sql::LATE_SUCCESS).bind(key.run.to_string())).await?;
        }
        Ok(Recorded::Now)
    }

    /// Writes how a run ended into its row, and what its job knows of it.
    async fn write_ending(&mut self, run: RunId, ending: &Ending, row: &SqliteRow) -> Result<(), StoreError> {
        let query = sqlx::query(sql::FINISH)
            .bind(run.to_string())
            .bind(ending.state.as_str())
            .bind(ending.exit_code)
            .bind(ending.signal)
            .bind(ending.reason.clone())
            .bind(text(ending.finished_at))
            .bind(ending.started_at.map(text))
            .bind(ending.output_tail.clone())
            .bind(ending.cpu.map(millis))
            .bind(ending.memory_peak_kib.map(|kib| i64::try_from(kib).unwrap_or(i64::MAX)));
        self.all(query).await?;
        let query = sqlx::query(sql::FINISH_JOB)
            .bind(column::<String>(row, "job")?)
            .bind(column::<String>(row, "scheduled_at")?)
            .bind(ending.state == RunState::Succeeded);
        self.all(query).await?;
        Ok(())
    }

    /// Ends one attempt and claims the next under the same lease, which is looked at, not touched.
    async fn retry(&mut self, key: &RunKey, ending: &Ending, next: RunId) -> Result<Retried, StoreError> {
        let look = sqlx::query(sql::RETRY_LOOK)
            .bind(key.run.to_string())
            .bind(key.owner.public().as_str().to_owned())
            .bind(key.token.get())
            .bind(key.resource.as_str())
            .bind(key.owner.reveal())
            .bind(next.to_string());
        let Some(row) = self.optional(look).await? else { return Ok(Retried::Gone) };
        let claimed = Retried::Claimed { attempt: attempt(&row)? };
        let state = word(&row, "state", RunState::from_column)?;
        if !matches!(state, RunState::Claimed | RunState::Running) {
            // The same again: its first answer was lost.
            return Ok(if column(&row, "made")? { claimed } else { Retried::Gone });
        }
        if !column::<bool>(&row, "live")? {
            return Ok(Retried::Gone);
        }
        if column(&row, "cancelled")? {
            return Ok(Retried::Cancelled);
        }
        self.write_ending(key.run, ending, &row).await?;
        let now: String = column(&row, "now")?;
        self.all(sqlx::query(sql::RETRY).bind(key.run.to_string()).bind(next.to_string()).bind(now)).await?;
        Ok(claimed)
    }

    /// Makes a follower wait, if it is due.
    async fn follow(&mut self, upstream: RunId, follower: &Follower) -> Result<(), StoreError> {
        let upstreams: Vec<_> = follower.upstreams.iter().map(JobName::as_str).collect();
        let query = sqlx::query(sql::FOLLOW)
            .bind(upstream.to_string())
            .bind(follower.run.to_string())
            .bind(follower.job.as_str().to_owned())
            .bind(serde_json::to_string(&upstreams).expect("strings can be written as JSON"))
            .bind(follower.resource.as_str().to_owned())
            .bind(millis(follower.start_deadline))
            .bind(i64::from(follower.reruns_left));
        self.all(query).await?;
        Ok(())
    }

    /// A follower with the run that waits since this success.
    async fn followed(&mut self, upstream: RunId, job: &JobName) -> Result<Option<(JobName, RunId)>, StoreError> {
        let query = sqlx::query(sql::FOLLOWED).bind(upstream.to_string()).bind(job.as_str());
        let row = self.optional(query).await?;
        row.map(|row| Ok((job.clone(), run_id(&row, "id")?))).transpose()
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

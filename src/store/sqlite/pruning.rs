//! One bounded step of pruning. Each deletion is a transaction of its own: a step that is broken off
//! has done a part of its work, which is no less right. What to delete is looked up before the file is
//! taken for writing, so that no heartbeat waits for a search.

use sqlx::Row;
use uuid::Uuid;

use super::decode::{column, malformed};
use super::runs::millis;
use super::{SqliteStore, Statement, all, sql};
use crate::job::JobName;
use crate::store::{Pruned, Retention, StoreError};

/// How many jobs are counted in one step.
const JOBS: usize = 50;

impl SqliteStore {
    pub(super) async fn prune_one_step(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        let (keep, horizon) = (millis(retention.keep), millis(retention.horizon));
        let oldest = self.oldest_kept(keep).await?;
        let look = sqlx::query(sql::PRUNE_LOOK).bind(oldest).bind(keep).bind(horizon);
        let mut runs = self.prune_runs(look).await?;
        self.prune_the_rest(keep).await?;
        let call = self.work.call("prune the history").await?;
        let after = retention.after.as_ref().map(|job| job.as_str().to_owned());
        let jobs = all(call, sqlx::query(sql::PRUNE_JOBS).bind(after)).await?;
        let mut next = None;
        for row in &jobs {
            let job: String = column(row, "name")?;
            let keep_runs = i64::from(retention.keep_runs);
            let look = sqlx::query(sql::PRUNE_COUNT_LOOK).bind(job.clone()).bind(keep_runs).bind(horizon);
            runs += self.prune_runs(look).await?;
            next = Some(JobName::new(job).map_err(|error| malformed(error.to_string()))?);
        }
        Ok(Pruned { runs, next: next.filter(|_| jobs.len() == JOBS) })
    }

    /// The least run id of an instant `keep` milliseconds ago.
    async fn oldest_kept(&self, keep: i64) -> Result<String, StoreError> {
        let call = self.work.call("prune the history").await?;
        let rows = all(call, sqlx::query(sql::NOW)).await?;
        let row = rows.first().ok_or_else(|| malformed("an answer without a row"))?;
        let at = super::decode::instant(row, "now")?.timestamp_millis().saturating_sub(keep).max(0);
        Ok(Uuid::from_u128(u128::try_from(at).unwrap_or_default() << 80).to_string())
    }

    /// Deletes the runs that a look finds, and lets their jobs remember up to where their history is
    /// gone.
    async fn prune_runs(&self, look: Statement<'_>) -> Result<u64, StoreError> {
        let call = self.work.call("prune the history").await?;
        let found: Vec<String> = all(call, look).await?.iter().map(|row| row.get("id")).collect();
        if found.is_empty() {
            return Ok(0);
        }
        let found = serde_json::to_string(&found).expect("strings can be written as JSON");
        let mut transaction = self.begin("prune the history").await?;
        let gone = transaction.all(sqlx::query(sql::PRUNE_RUNS).bind(found)).await?;
        for row in &gone {
            let (job, scheduled_at) = (column::<String>(row, "job")?, column::<String>(row, "scheduled_at")?);
            transaction.all(sqlx::query(sql::PRUNE_REMEMBER).bind(job).bind(scheduled_at)).await?;
        }
        transaction.commit().await?;
        Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
    }

    /// Locks and ranges that are as old, daemons that are gone, and watermarks of hosts that are.
    async fn prune_the_rest(&self, keep: i64) -> Result<(), StoreError> {
        let mut transaction = self.begin("prune the history").await?;
        transaction.all(sqlx::query(sql::PRUNE_LOCKS).bind(keep)).await?;
        transaction.all(sqlx::query(sql::PRUNE_RANGES).bind(keep)).await?;
        transaction.all(sqlx::query(sql::CLOSE_REQUESTS)).await?;
        transaction.all(sqlx::query(sql::PRUNE_REQUESTS).bind(keep)).await?;
        transaction.all(sqlx::query(sql::FORGET_DEAD)).await?;
        transaction.all(sqlx::query(sql::TARGETS_SEEN)).await?;
        transaction.all(sqlx::query(sql::FORGET_TARGETS).bind(keep)).await?;
        transaction.all(sqlx::query(sql::FORGET_ORPHANS)).await?;
        transaction.commit().await
    }
}

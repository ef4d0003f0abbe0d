//! One bounded step of pruning. Each deletion is a transaction of its own: a step that is broken off
//! has done a part of its work, which is no less right.

use super::decode::{column, malformed};
use super::runs::millis;
use super::{SqliteStore, Statement, all, sql};
use crate::job::JobName;
use crate::store::{Pruned, Retention, StoreError};

impl SqliteStore {
    pub(super) async fn prune_one_step(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        let (keep, horizon) = (millis(retention.keep), millis(retention.horizon));
        let mut runs = self.prune_runs(sqlx::query(sql::PRUNE_BY_AGE).bind(keep).bind(horizon)).await?;
        for statement in [sql::PRUNE_LOCKS, sql::PRUNE_RANGES] {
            let mut transaction = self.begin("prune the history").await?;
            transaction.all(sqlx::query(statement).bind(keep)).await?;
            transaction.commit().await?;
        }
        let call = self.work.call("prune the history").await?;
        let after = retention.after.as_ref().map(|job| job.as_str().to_owned());
        let query = sqlx::query(sql::PRUNE_COUNT).bind(after).bind(i64::from(retention.keep_runs));
        let jobs = all(call, query).await?;
        let mut next = None;
        for row in &jobs {
            let job: String = column(row, "name")?;
            if let Some(beyond) = column::<Option<String>>(row, "beyond")? {
                let query = sqlx::query(sql::PRUNE_BY_COUNT).bind(job.clone()).bind(beyond).bind(horizon);
                runs += self.prune_runs(query).await?;
            }
            next = Some(JobName::new(job).map_err(|error| malformed(error.to_string()))?);
        }
        Ok(Pruned { runs, next: next.filter(|_| jobs.len() == 50) })
    }

    /// Deletes runs and lets their jobs remember up to where their history is gone.
    async fn prune_runs(&self, deletion: Statement<'_>) -> Result<u64, StoreError> {
        let mut transaction = self.begin("prune the history").await?;
        let gone = transaction.all(deletion).await?;
        for row in &gone {
            let (job, scheduled_at) = (column::<String>(row, "job")?, column::<String>(row, "scheduled_at")?);
            transaction.all(sqlx::query(sql::PRUNE_REMEMBER).bind(job).bind(scheduled_at)).await?;
        }
        transaction.commit().await?;
        Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
    }
}

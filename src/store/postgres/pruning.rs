//! One bounded step of pruning. Each statement is a transaction of its own: a step that is broken off
//! has done a part of its work, which is no less right.

use super::decode::{column, malformed};
use super::runs::millis;
use super::{PostgresStore, sql};
use crate::job::JobName;
use crate::store::{Pruned, Retention, StoreError};

/// How many jobs are counted in one step.
const JOBS: usize = 50;

impl PostgresStore {
    pub(super) async fn prune_one_step(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        let (keep, horizon) = (millis(retention.keep), millis(retention.horizon));
        let mut runs = self.pruned(self.query(sql::PRUNE_BY_AGE).bind(keep).bind(horizon)).await?;
        let call = self.work.call("prune the history").await?;
        let query = self.query(sql::PRUNE_JOBS).bind(retention.after.as_ref().map(JobName::as_str));
        let jobs = self.all(call, query).await?;
        let mut next = None;
        for row in &jobs {
            let job: String = column(row, "name")?;
            let keep_runs = i64::from(retention.keep_runs);
            let query = self.query(sql::PRUNE_BY_COUNT).bind(job.clone()).bind(keep_runs).bind(horizon);
            runs += self.pruned(query).await?;
            next = Some(JobName::new(job).map_err(|error| malformed(error.to_string()))?);
        }
        Ok(Pruned { runs, next: next.filter(|_| jobs.len() == JOBS) })
    }

    async fn pruned(&self, query: super::Statement<'_>) -> Result<u64, StoreError> {
        let call = self.work.call("prune the history").await?;
        let gone: i64 = column(&self.one(call, query).await?, "gone")?;
        Ok(u64::try_from(gone).unwrap_or_default())
    }
}

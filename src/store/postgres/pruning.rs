//! One bounded step of pruning. Each statement is a transaction of its own: a step that is broken off
//! has done a part of its work, which is no less right.

use super::decode::{column, malformed};
use super::runs::millis;
use super::{PostgresStore, sql};
use crate::job::JobName;
use crate::store::{Pruned, Retention, StoreError};

impl PostgresStore {
    pub(super) async fn prune_one_step(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        let (keep, horizon) = (millis(retention.keep), millis(retention.horizon));
        let mut call = self.work.call("prune the history").await?;
        let query = self.query(sql::PRUNE_BY_AGE).bind(keep).bind(horizon);
        let mut runs = call.run(|connection| query.execute(connection)).await?.rows_affected();
        for statement in [sql::PRUNE_LOCKS, sql::PRUNE_RANGES] {
            let query = self.query(statement).bind(keep);
            call.run(|connection| query.execute(connection)).await?;
        }
        let after = retention.after.as_ref().map(JobName::as_str);
        let query = self.query(sql::PRUNE_COUNT).bind(after).bind(i64::from(retention.keep_runs));
        let jobs = call.run(|connection| query.fetch_all(connection)).await?;
        let mut next = None;
        for row in &jobs {
            let job: String = column(row, "name")?;
            if let Some(beyond) = column::<Option<chrono::DateTime<chrono::Utc>>>(row, "beyond")? {
                let query = self.query(sql::PRUNE_BY_COUNT).bind(job.clone()).bind(beyond).bind(horizon);
                runs += call.run(|connection| query.execute(connection)).await?.rows_affected();
            }
            next = Some(JobName::new(job).map_err(|error| malformed(error.to_string()))?);
        }
        call.done();
        Ok(Pruned { runs, next: next.filter(|_| jobs.len() == 50) })
    }
}

use async_trait::async_trait;

use super::decode::{column, instant, malformed, optional_instant, text};
use super::runs::millis;
use super::{SqliteStore, all, sql};
use crate::fleet::InstanceId;
use crate::job::JobName;
use crate::store::{
    CatchUpPlan, Disagreement, JobProgress, JobSeen, Jobs, Paused, Pausing, ProgressQuery, Resumed, StoreError,
};
use crate::trigger::Target;

#[async_trait]
impl Jobs for SqliteStore {
    async fn register(&self, instance: InstanceId, jobs: &[JobSeen]) -> Result<(), StoreError> {
        let names: Vec<_> = jobs.iter().map(|seen| seen.job.as_str()).collect();
        let names = serde_json::to_string(&names).expect("strings can be written as JSON");
        let mut transaction = self.begin("register jobs").await?;
        for seen in jobs {
            let query = sqlx::query(sql::REGISTER_JOB).bind(seen.job.as_str()).bind(seen.digest.clone());
            transaction.all(query).await?;
            let query = sqlx::query(sql::REGISTER_DEFINITION)
                .bind(seen.job.as_str())
                .bind(seen.digest.clone())
                .bind(instance.to_string());
            transaction.all(query).await?;
        }
        transaction.all(sqlx::query(sql::FORGET_DEFINITIONS).bind(instance.to_string()).bind(names)).await?;
        transaction.commit().await
    }

    async fn disagreements(&self) -> Result<Vec<Disagreement>, StoreError> {
        Ok(Vec::new())
    }

    async fn pause(&self, _job: &JobName, _pausing: &Pausing) -> Result<Paused, StoreError> {
        Ok(Paused::Unknown)
    }

    async fn resume(&self, _job: &JobName) -> Result<Resumed, StoreError> {
        Ok(Resumed::Unknown)
    }

    async fn progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError> {
        let asked: Vec<_> = queries.iter().map(|query| (query.job.as_str(), text(query.since))).collect();
        let asked = serde_json::to_string(&asked).expect("strings can be written as JSON");
        let mut call = self.work.call("read what is caught up").await?;
        let query = sqlx::query(sql::PROGRESS_JOBS).bind(asked.clone());
        let rows = call.run(|connection| query.fetch_all(connection)).await?;
        let mut progress = Vec::with_capacity(rows.len());
        for row in &rows {
            let job = JobName::new(column::<String>(row, "name")?).map_err(|error| malformed(error.to_string()))?;
            progress.push(JobProgress {
                job,
                target: Target::fleet(),
                caught_up_through: instant(row, "caught_up_through")?,
                settled_through: instant(row, "settled_through")?,
                newest_before: optional_instant(row, "newest_before")?,
                with_row: Vec::new(),
                pause: None,
            });
        }
        progress.sort_by(|a, b| a.job.cmp(&b.job));
        let query = sqlx::query(sql::PROGRESS_ROWS).bind(asked);
        for row in all(call, query).await? {
            let job: &str = column(&row, "job")?;
            if let Ok(at) = progress.binary_search_by(|known| known.job.as_str().cmp(job)) {
                progress[at].with_row.push(instant(&row, "scheduled_at")?);
            }
        }
        Ok(progress)
    }

    async fn catch_up(&self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        let mut transaction = self.begin("catch up").await?;
        let seen =
            sqlx::query(sql::ROWS_SEEN).bind(plan.job.as_str()).bind(text(plan.rows_since)).bind(text(plan.through));
        let rows: i64 = column(&transaction.one(seen).await?, "rows")?;
        if u64::try_from(rows).ok() != Some(plan.rows_seen) {
            transaction.commit().await?;
            return Ok(false);
        }
        let query =
            sqlx::query(sql::MOVE_WATERMARK).bind(plan.job.as_str()).bind(text(plan.from)).bind(text(plan.through));
        if transaction.optional(query).await?.is_none() {
            transaction.commit().await?;
            return Ok(false);
        }
        for range in &plan.ranges {
            let query = sqlx::query(sql::MISSED_RANGE)
                .bind(plan.job.as_str())
                .bind(range.reason.as_str())
                .bind(text(range.from))
                .bind(text(range.to))
                .bind(i64::try_from(range.count).unwrap_or(i64::MAX));
            transaction.all(query).await?;
        }
        for late in &plan.late {
            let query = sqlx::query(sql::LATE_RUN)
                .bind(late.run.to_string())
                .bind(plan.job.as_str())
                .bind(text(late.scheduled_at))
                .bind(late.resource.as_str())
                .bind(millis(late.start_deadline))
                .bind(i64::from(late.reruns_left));
            transaction.all(query).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}

use async_trait::async_trait;

use super::decode::{column, malformed};
use super::runs::millis;
use super::{PostgresStore, sql};
use crate::fleet::InstanceId;
use crate::job::JobName;
use crate::store::{
    CatchUpPlan, Disagreement, JobProgress, JobSeen, Jobs, Paused, Pausing, ProgressQuery, Resumed, StoreError,
};
use crate::trigger::Target;

#[async_trait]
impl Jobs for PostgresStore {
    async fn register(&self, instance: InstanceId, jobs: &[JobSeen]) -> Result<(), StoreError> {
        let names: Vec<_> = jobs.iter().map(|seen| seen.job.as_str().to_owned()).collect();
        let digests: Vec<_> = jobs.iter().map(|seen| seen.digest.clone()).collect();
        let call = self.work.call("register jobs").await?;
        let query = self.query(sql::REGISTER).bind(instance.as_uuid()).bind(names).bind(digests);
        self.one(call, query).await?;
        Ok(())
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
        let names: Vec<_> = queries.iter().map(|query| query.job.as_str().to_owned()).collect();
        let since: Vec<_> = queries.iter().map(|query| query.since).collect();
        let mut call = self.work.call("read what is caught up").await?;
        let query = self.query(sql::PROGRESS_JOBS).bind(&names).bind(&since);
        let rows = self.run(&mut call, query).await?;
        let mut progress = Vec::with_capacity(rows.len());
        for row in &rows {
            let job = JobName::new(column::<String>(row, "name")?).map_err(|error| malformed(error.to_string()))?;
            progress.push(JobProgress {
                job,
                target: Target::fleet(),
                caught_up_through: column(row, "caught_up_through")?,
                settled_through: column(row, "settled_through")?,
                newest_before: column(row, "newest_before")?,
                with_row: Vec::new(),
                pause: None,
            });
        }
        progress.sort_by(|a, b| a.job.cmp(&b.job));
        let query = self.query(sql::PROGRESS_ROWS).bind(&names).bind(&since);
        for row in self.all(call, query).await? {
            let job: String = column(&row, "job")?;
            if let Ok(at) = progress.binary_search_by(|known| known.job.as_str().cmp(&job)) {
                progress[at].with_row.push(column(&row, "scheduled_at")?);
            }
        }
        Ok(progress)
    }

    async fn catch_up(&self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        let call = self.work.call("catch up").await?;
        let missed = &plan.ranges;
        let late = plan.late.last();
        let query = self
            .query(sql::CATCH_UP)
            .bind(plan.job.as_str())
            .bind(plan.from)
            .bind(plan.through)
            .bind(plan.rows_since)
            .bind(i64::try_from(plan.rows_seen).unwrap_or(i64::MAX))
            .bind(missed.iter().map(|range| range.reason.as_str()).collect::<Vec<_>>())
            .bind(missed.iter().map(|range| range.from).collect::<Vec<_>>())
            .bind(missed.iter().map(|range| range.to).collect::<Vec<_>>())
            .bind(missed.iter().map(|range| i64::try_from(range.count).unwrap_or(i64::MAX)).collect::<Vec<_>>())
            .bind(late.map(|late| *late.run.as_uuid()))
            .bind(late.map(|late| late.scheduled_at))
            .bind(late.map(|late| late.resource.as_str().to_owned()))
            .bind(late.map_or(0, |late| millis(late.start_deadline)))
            .bind(late.map_or(0, |late| i32::try_from(late.reruns_left).unwrap_or(i32::MAX)));
        column(&self.one(call, query).await?, "carried_out")
    }
}

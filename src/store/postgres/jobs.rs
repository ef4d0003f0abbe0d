use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;

use super::decode::{column, host_name, job_name, malformed};
use super::runs::millis;
use super::{PostgresStore, sql};
use crate::fleet::InstanceId;
use crate::job::JobName;
use crate::store::catch_up::{add_row, sort};
use crate::store::jobs::gather;
use crate::store::{
    CatchUpPlan, Disagreement, JobProgress, JobSeen, Jobs, Pause, Paused, Pausing, ProgressQuery, Resumed, StoreError,
};
use crate::trigger::Target;

#[async_trait]
impl Jobs for PostgresStore {
    async fn register(&self, instance: InstanceId, jobs: &[JobSeen]) -> Result<(), StoreError> {
        let call = self.work.call("register jobs").await?;
        let query = self
            .query(sql::REGISTER)
            .bind(instance.as_uuid())
            .bind(jobs.iter().map(|seen| seen.job.as_str()).collect::<Vec<_>>())
            .bind(jobs.iter().map(|seen| seen.digest.as_str()).collect::<Vec<_>>())
            .bind(jobs.iter().map(|seen| seen.target.as_str()).collect::<Vec<_>>())
            .bind(jobs.iter().map(JobSeen::has_watermark).collect::<Vec<_>>())
            .bind(jobs.iter().map(|seen| millis(seen.start_delay)).collect::<Vec<_>>());
        self.one(call, query).await?;
        Ok(())
    }

    async fn disagreements(&self) -> Result<Vec<Disagreement>, StoreError> {
        let call = self.work.call("compare the hosts' jobs").await?;
        let rows = self.all(call, self.query(sql::DISAGREEMENTS)).await?;
        let found = rows.iter().map(|row| Ok((column(row, "job")?, column(row, "digest")?, host_name(row)?)));
        Ok(gather(found.collect::<Result<Vec<_>, StoreError>>()?))
    }

    async fn pause(&self, job: &JobName, pausing: &Pausing) -> Result<Paused, StoreError> {
        let call = self.work.call("pause a job").await?;
        let query =
            self.query(sql::PAUSE).bind(job.as_str()).bind(&pausing.by).bind(&pausing.reason).bind(pausing.until);
        let row = self.one(call, query).await?;
        Ok(match column::<String>(&row, "outcome")?.as_str() {
            "paused" => Paused::Paused { from: column(&row, "paused_from")?, closed: closed(&row)? },
            "over" => Paused::Over,
            _ => Paused::Unknown,
        })
    }

    async fn resume(&self, job: &JobName) -> Result<Resumed, StoreError> {
        let call = self.work.call("resume a job").await?;
        let row = self.one(call, self.query(sql::RESUME).bind(job.as_str())).await?;
        Ok(match column::<String>(&row, "outcome")?.as_str() {
            "resumed" => Resumed::Resumed { from: column(&row, "paused_from")?, closed: closed(&row)? },
            "not_paused" => Resumed::NotPaused,
            _ => Resumed::Unknown,
        })
    }

    async fn progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError> {
        let jobs: Vec<_> = queries.iter().map(|query| query.job.as_str()).collect();
        let targets: Vec<_> = queries.iter().map(|query| query.target.as_str()).collect();
        let mut call = self.work.call("read what is caught up").await?;
        let query = self.query(sql::PROGRESS_JOBS).bind(&jobs).bind(&targets);
        let rows = self.run(&mut call, query).await?;
        let mut progress = rows.iter().map(job_progress).collect::<Result<Vec<_>, _>>()?;
        sort(&mut progress);
        let query = self.query(sql::PROGRESS_ROWS).bind(&jobs).bind(&targets);
        for row in self.all(call, query).await? {
            let (job, target): (String, String) = (column(&row, "job")?, column(&row, "target")?);
            add_row(&mut progress, &job, &target, column(&row, "scheduled_at")?);
        }
        Ok(progress)
    }

    async fn catch_up(&self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        let call = self.work.call("catch up").await?;
        let (ranges, late) = (&plan.ranges, &plan.late);
        let query = self
            .query(sql::CATCH_UP)
            .bind(plan.job.as_str())
            .bind(plan.target.as_str())
            .bind(plan.from)
            .bind(plan.through)
            .bind(plan.rows_since)
            .bind(i64::try_from(plan.rows_seen).unwrap_or(i64::MAX))
            .bind(plan.only_newest)
            .bind(ranges.iter().map(|range| range.kind.as_str()).collect::<Vec<_>>())
            .bind(ranges.iter().map(|range| range.reason.as_str()).collect::<Vec<_>>())
            .bind(ranges.iter().map(|range| range.from).collect::<Vec<_>>())
            .bind(ranges.iter().map(|range| range.to).collect::<Vec<_>>())
            .bind(ranges.iter().map(|range| i64::try_from(range.count).unwrap_or(i64::MAX)).collect::<Vec<_>>())
            .bind(late.iter().map(|late| *late.run.as_uuid()).collect::<Vec<_>>())
            .bind(late.iter().map(|late| late.scheduled_at).collect::<Vec<_>>())
            .bind(late.iter().map(|late| late.resource.as_str()).collect::<Vec<_>>())
            .bind(late.iter().map(|late| late.not_before.map(millis)).collect::<Vec<_>>())
            .bind(late.iter().map(|late| millis(late.waits)).collect::<Vec<_>>())
            .bind(late.iter().map(|late| millis(late.start_deadline)).collect::<Vec<_>>())
            .bind(late.iter().map(|late| i32::try_from(late.reruns_left).unwrap_or(i32::MAX)).collect::<Vec<_>>());
        column(&self.one(call, query).await?, "carried_out")
    }
}

/// How many waiting runs were closed.
fn closed(row: &PgRow) -> Result<u64, StoreError> {
    u64::try_from(column::<i64>(row, "closed")?).map_err(|error| malformed(format!("column closed: {error}")))
}

fn job_progress(row: &PgRow) -> Result<JobProgress, StoreError> {
    let pause = match column::<Option<DateTime<Utc>>>(row, "paused_from")? {
        None => None,
        Some(from) => Some(Pause { from, until: column(row, "paused_until")? }),
    };
    Ok(JobProgress {
        job: job_name(row)?,
        target: Target::from_column(column::<String>(row, "target")?),
        caught_up_through: column(row, "caught_up_through")?,
        settled_through: column(row, "settled_through")?,
        with_row: Vec::new(),
        pause,
        edited_at: column(row, "edited_at")?,
    })
}

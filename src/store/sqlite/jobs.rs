use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;

use super::decode::{column, host_name, instant, job_name, optional_instant, text};
use super::runs::millis;
use super::transaction::Transaction;
use super::{SqliteStore, all, sql};
use crate::fleet::InstanceId;
use crate::job::JobName;
use crate::store::catch_up::{add_row, sort};
use crate::store::jobs::gather;
use crate::store::{
    CatchUpPlan, Disagreement, JobProgress, JobSeen, Jobs, Pause, Paused, Pausing, ProgressQuery, Resumed, StoreError,
};
use crate::trigger::Target;

#[async_trait]
impl Jobs for SqliteStore {
    async fn register(&self, instance: InstanceId, jobs: &[JobSeen]) -> Result<(), StoreError> {
        let listed = |seen: &JobSeen| {
            let (job, target) = (seen.job.as_str().to_owned(), seen.target.as_str().to_owned());
            (job, seen.digest.clone(), target, millis(seen.start_delay), seen.has_watermark())
        };
        let listed: Vec<_> = jobs.iter().map(listed).collect();
        let listed = serde_json::to_string(&listed).expect("strings and numbers can be written as JSON");
        let instance = instance.to_string();
        let mut transaction = self.begin("register jobs").await?;
        for statement in [sql::REGISTER, sql::REGISTER_PROGRESS, sql::REGISTER_KIND] {
            transaction.all(sqlx::query(statement).bind(listed.clone())).await?;
        }
        let query = sqlx::query(sql::REGISTER_DEFINITION).bind(listed.clone()).bind(instance.clone());
        transaction.all(query).await?;
        let query = sqlx::query(sql::FORGET_DEFINITIONS).bind(listed).bind(instance.clone());
        for row in transaction.all(query).await? {
            let query = sqlx::query(sql::FORGET_PROGRESS).bind(column::<String>(&row, "job")?).bind(instance.clone());
            transaction.all(query).await?;
        }
        transaction.commit().await
    }

    async fn disagreements(&self) -> Result<Vec<Disagreement>, StoreError> {
        let call = self.work.call("compare the hosts' jobs").await?;
        let rows = all(call, sqlx::query(sql::DISAGREEMENTS)).await?;
        let found = rows.iter().map(|row| Ok((column(row, "job")?, column(row, "digest")?, host_name(row)?)));
        Ok(gather(found.collect::<Result<Vec<_>, StoreError>>()?))
    }

    async fn pause(&self, job: &JobName, pausing: &Pausing) -> Result<Paused, StoreError> {
        let mut transaction = self.begin("pause a job").await?;
        let row = transaction.one(sqlx::query(sql::PAUSE_LOOK).bind(job.as_str())).await?;
        let now = instant(&row, "now")?;
        let answer = if pausing.until.is_some_and(|until| until <= now) {
            Paused::Over
        } else if column(&row, "known")? {
            // What that pause took may not be accounted for yet.
            let goes_on = column::<bool>(&row, "paused")? || column(&row, "unaccounted")?;
            let from = optional_instant(&row, "paused_at")?.filter(|_| goes_on).unwrap_or(now);
            let query = sqlx::query(sql::PAUSE)
                .bind(job.as_str())
                .bind(pausing.by.clone())
                .bind(pausing.reason.clone())
                .bind(pausing.until.map(text))
                .bind(text(from));
            transaction.all(query).await?;
            Paused::Paused { from, closed: transaction.close_waiting(job, now).await? }
        } else {
            Paused::Unknown
        };
        transaction.commit().await?;
        Ok(answer)
    }

    async fn resume(&self, job: &JobName) -> Result<Resumed, StoreError> {
        let mut transaction = self.begin("resume a job").await?;
        let row = transaction.one(sqlx::query(sql::PAUSE_LOOK).bind(job.as_str())).await?;
        let now = instant(&row, "now")?;
        let answer = if !column::<bool>(&row, "known")? {
            Resumed::Unknown
        } else if column(&row, "paused")? {
            transaction.all(sqlx::query(sql::RESUME).bind(job.as_str()).bind(text(now))).await?;
            let from = optional_instant(&row, "paused_at")?.unwrap_or(now);
            Resumed::Resumed { from, closed: transaction.close_waiting(job, now).await? }
        } else {
            Resumed::NotPaused
        };
        transaction.commit().await?;
        Ok(answer)
    }

    async fn progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError> {
        let asked = |query: &ProgressQuery| (query.job.as_str().to_owned(), query.target.as_str().to_owned());
        let asked: Vec<_> = queries.iter().map(asked).collect();
        let asked = serde_json::to_string(&asked).expect("strings can be written as JSON");
        let mut call = self.work.call("read what is caught up").await?;
        let query = sqlx::query(sql::PROGRESS_JOBS).bind(asked.clone());
        let rows = call.run(|connection| query.fetch_all(connection)).await?;
        let mut progress = rows.iter().map(job_progress).collect::<Result<Vec<_>, _>>()?;
        sort(&mut progress);
        for row in all(call, sqlx::query(sql::PROGRESS_ROWS).bind(asked)).await? {
            let (job, target) = (column::<&str>(&row, "job")?, column::<&str>(&row, "target")?);
            add_row(&mut progress, job, target, instant(&row, "scheduled_at")?);
        }
        Ok(progress)
    }

    async fn catch_up(&self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        let mut transaction = self.begin("catch up").await?;
        let carried_out = transaction.catch_up(plan).await?;
        transaction.commit().await?;
        Ok(carried_out)
    }
}

impl Transaction<'_> {
    /// Closes what waits of a job that is paused; how many runs these were.
    async fn close_waiting(&mut self, job: &JobName, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let rows = self.all(sqlx::query(sql::CLOSE_WAITING).bind(job.as_str()).bind(text(now))).await?;
        Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
    }

    /// Whether the rows still are what a plan was made from, and nothing forbids what it runs late.
    async fn still_holds(&mut self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        let (job, target) = (plan.job.as_str(), plan.target.as_str());
        let seen =
            sqlx::query(sql::ROWS_SEEN).bind(job).bind(target).bind(text(plan.rows_since)).bind(text(plan.through));
        let rows: i64 = column(&self.one(seen).await?, "rows")?;
        if u64::try_from(rows).ok() != Some(plan.rows_seen) {
            return Ok(false);
        }
        if !plan.late.is_empty() && self.optional(sqlx::query(sql::CATCH_UP_PAUSED).bind(job)).await?.is_some() {
            return Ok(false);
        }
        let newest = plan.late.iter().map(|late| late.scheduled_at).max().filter(|_| plan.only_newest);
        let Some(newest) = newest else { return Ok(true) };
        let newer = sqlx::query(sql::NEWER_ROW).bind(job).bind(target).bind(text(newest));
        Ok(self.optional(newer).await?.is_none())
    }

    async fn catch_up(&mut self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        if !self.still_holds(plan).await? {
            return Ok(false);
        }
        let (job, target) = (plan.job.as_str(), plan.target.as_str());
        let query =
            sqlx::query(sql::MOVE_WATERMARK).bind(job).bind(target).bind(text(plan.from)).bind(text(plan.through));
        if self.optional(query).await?.is_none() {
            return Ok(false);
        }
        for range in &plan.ranges {
            let query = sqlx::query(sql::TRIGGER_RANGE)
                .bind(job)
                .bind(target)
                .bind(range.kind.as_str())
                .bind(range.reason.as_str())
                .bind(text(range.from))
                .bind(text(range.to))
                .bind(i64::try_from(range.count).unwrap_or(i64::MAX));
            self.all(query).await?;
        }
        for late in &plan.late {
            let query = sqlx::query(sql::LATE_RUN)
                .bind(late.run.to_string())
                .bind(job)
                .bind(target)
                .bind(text(late.scheduled_at))
                .bind(late.resource.as_str())
                .bind(late.not_before.map(millis))
                .bind(millis(late.waits))
                .bind(millis(late.start_deadline))
                .bind(i64::from(late.reruns_left));
            self.all(query).await?;
        }
        Ok(true)
    }
}

fn job_progress(row: &SqliteRow) -> Result<JobProgress, StoreError> {
    let pause = match optional_instant(row, "paused_from")? {
        None => None,
        Some(from) => Some(Pause { from, until: optional_instant(row, "paused_until")? }),
    };
    Ok(JobProgress {
        job: job_name(row)?,
        target: Target::from_column(column::<String>(row, "target")?),
        caught_up_through: instant(row, "caught_up_through")?,
        settled_through: instant(row, "settled_through")?,
        with_row: Vec::new(),
        pause,
        edited_at: optional_instant(row, "edited_at")?,
    })
}

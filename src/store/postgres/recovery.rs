//! What takes several statements in one transaction: rare, so round trips don't matter.

use chrono::{DateTime, TimeDelta, Utc};

use super::decode::{column, malformed};
use super::runs::{lost_run, millis, overdue_run};
use super::{PostgresStore, all, begin, commit, sql};
use crate::job::JobName;
use crate::store::{CatchUpPlan, JobProgress, ProgressQuery, Recovered, StoreError};
use crate::trigger::RunId;

impl PostgresStore {
    pub(super) async fn recover_in_one_transaction(
        &self,
        expected_now: Option<DateTime<Utc>>,
    ) -> Result<Recovered, StoreError> {
        let mut call = self.work.call("recover runs").await?;
        let query = self.query(sql::RECOVERABLE);
        let row = call.run(|connection| query.fetch_one(connection)).await?;
        let now: DateTime<Utc> = column(&row, "now")?;
        let believed = expected_now.is_none_or(|expected| (now - expected).abs() <= TimeDelta::seconds(1));
        let any_lost = believed && column::<i64>(&row, "lost")? > 0;
        let any_overdue = column::<i64>(&row, "overdue")? > 0;
        let mut recovered = Recovered::default();
        if !any_lost && !any_overdue {
            call.done();
            return Ok(recovered);
        }
        begin(&mut call).await?;
        if any_lost {
            let query = self.query(sql::LOSE);
            for row in call.run(|connection| query.fetch_all(connection)).await? {
                let mut lost = lost_run(&row)?;
                let query = self.query(sql::FREE_LOST).bind(lost.resource.as_str()).bind(lost.token.get());
                call.run(|connection| query.execute(connection)).await?;
                let rerun = RunId::generate();
                let query = self.query(sql::RERUN).bind(lost.run.as_uuid()).bind(rerun.as_uuid());
                let made = call.run(|connection| query.fetch_one(connection)).await?;
                lost.rerun = column::<bool>(&made, "made")?.then_some(rerun);
                recovered.lost.push(lost);
            }
        }
        if any_overdue {
            let query = self.query(sql::OVERDUE);
            for row in call.run(|connection| query.fetch_all(connection)).await? {
                recovered.overdue.push(overdue_run(&row)?);
            }
        }
        commit(&mut call).await?;
        call.done();
        Ok(recovered)
    }

    pub(super) async fn read_progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError> {
        let names: Vec<_> = queries.iter().map(|query| query.job.as_str().to_owned()).collect();
        let since: Vec<_> = queries.iter().map(|query| query.since).collect();
        let mut call = self.work.call("read what is caught up").await?;
        let query = self.query(sql::PROGRESS_JOBS).bind(&names).bind(&since);
        let rows = call.run(|connection| query.fetch_all(connection)).await?;
        let mut progress = Vec::with_capacity(rows.len());
        for row in &rows {
            let job = JobName::new(column::<String>(row, "name")?).map_err(|error| malformed(error.to_string()))?;
            progress.push(JobProgress {
                job,
                caught_up_through: column(row, "caught_up_through")?,
                newest_before: column(row, "newest_before")?,
                with_row: Vec::new(),
            });
        }
        progress.sort_by(|a, b| a.job.cmp(&b.job));
        let query = self.query(sql::PROGRESS_ROWS).bind(&names).bind(&since);
        for row in all(call, query).await? {
            let job: String = column(&row, "job")?;
            if let Ok(at) = progress.binary_search_by(|known| known.job.as_str().cmp(&job)) {
                progress[at].with_row.push(column(&row, "scheduled_at")?);
            }
        }
        Ok(progress)
    }

    pub(super) async fn catch_up_in_one_transaction(&self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        let mut call = self.work.call("catch up").await?;
        begin(&mut call).await?;
        let query = self.query(sql::MOVE_WATERMARK).bind(plan.job.as_str()).bind(plan.from).bind(plan.through);
        if call.run(|connection| query.fetch_optional(connection)).await?.is_none() {
            commit(&mut call).await?;
            call.done();
            return Ok(false);
        }
        for range in &plan.missed {
            let query = self
                .query(sql::MISSED_RANGE)
                .bind(plan.job.as_str())
                .bind(range.reason.as_str())
                .bind(range.from)
                .bind(range.to)
                .bind(i64::try_from(range.count).unwrap_or(i64::MAX));
            call.run(|connection| query.execute(connection)).await?;
        }
        if let Some(late) = &plan.late {
            let query = self
                .query(sql::LATE_RUN)
                .bind(late.run.as_uuid())
                .bind(plan.job.as_str())
                .bind(late.scheduled_at)
                .bind(late.resource.as_str())
                .bind(millis(late.start_deadline))
                .bind(i32::try_from(late.reruns_left).unwrap_or(i32::MAX));
            call.run(|connection| query.execute(connection)).await?;
        }
        commit(&mut call).await?;
        call.done();
        Ok(true)
    }
}

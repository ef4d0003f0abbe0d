//! What happens to runs that nobody ends: recovery and catch-up.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::sqlite::SqliteRow;

use super::decode::{
    attempt, column, instant, malformed, optional_instant, resource, run_id, text, token, trigger, word,
};
use super::runs::millis;
use super::{SqliteStore, all, sql};
use crate::clock::{BootInstant, Expected};
use crate::job::JobName;
use crate::store::{CatchUpPlan, JobProgress, LostRun, OverdueRun, ProgressQuery, Recovered, StoreError};
use crate::trigger::RunState;

impl SqliteStore {
    pub(super) async fn recover_in_one_transaction(&self, expected: Option<Expected>) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        let call = self.work.call("recover runs").await?;
        let rows = all(call, sqlx::query(sql::RECOVERABLE)).await?;
        let Some(row) = rows.first() else { return Ok(recovered) };
        let now = instant(row, "now")?;
        let expected_now = expected.map(|expected| expected.at(BootInstant::now()));
        let believed =
            expected_now.is_none_or(|expected: DateTime<Utc>| (now - expected).abs() <= TimeDelta::seconds(1));
        let any_lost = believed && column::<i64>(row, "lost")? > 0;
        let any_overdue = column::<i64>(row, "overdue")? > 0;
        if !any_lost && !any_overdue {
            return Ok(recovered);
        }
        let mut transaction = self.begin("recover runs").await?;
        if any_lost {
            for row in transaction.all(sqlx::query(sql::LOSE)).await? {
                let mut lost = lost_run(&row)?;
                transaction.free_lock(&lost.resource, lost.token).await?;
                lost.rerun = transaction.rerun(lost.run).await?;
                recovered.lost.push(lost);
            }
        }
        if any_overdue {
            for row in transaction.all(sqlx::query(sql::OVERDUE)).await? {
                recovered.overdue.push(overdue_run(&row)?);
            }
        }
        transaction.commit().await?;
        Ok(recovered)
    }

    pub(super) async fn read_progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError> {
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
                caught_up_through: instant(row, "caught_up_through")?,
                settled_through: instant(row, "settled_through")?,
                newest_before: optional_instant(row, "newest_before")?,
                with_row: Vec::new(),
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

    pub(super) async fn catch_up_in_one_transaction(&self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
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
        for range in &plan.missed {
            let query = sqlx::query(sql::MISSED_RANGE)
                .bind(plan.job.as_str())
                .bind(range.reason.as_str())
                .bind(text(range.from))
                .bind(text(range.to))
                .bind(i64::try_from(range.count).unwrap_or(i64::MAX));
            transaction.all(query).await?;
        }
        if let Some(late) = &plan.late {
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

fn lost_run(row: &SqliteRow) -> Result<LostRun, StoreError> {
    Ok(LostRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        host: column::<Option<String>>(row, "host")?.unwrap_or_default(),
        resource: resource(row, "resource")?,
        token: token(row, "token")?,
        rerun: None,
    })
}

fn overdue_run(row: &SqliteRow) -> Result<OverdueRun, StoreError> {
    Ok(OverdueRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        resource: resource(row, "resource")?,
        state: word(row, "state", RunState::from_column)?,
        reason: column(row, "reason")?,
    })
}

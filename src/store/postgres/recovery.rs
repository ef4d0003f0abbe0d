//! What happens to runs that nobody ends: recovery and catch-up.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::decode::{column, malformed};
use super::runs::{lost_run, millis, overdue_run};
use super::{PostgresStore, sql};
use crate::clock::{BootInstant, Expected};
use crate::job::JobName;
use crate::store::{CatchUpPlan, JobProgress, ProgressQuery, Recovered, StoreError};
use crate::trigger::RunId;

impl PostgresStore {
    /// A look, and a transaction for each run that is found.
    pub(super) async fn recover_what_is_lost(&self, expected: Option<Expected>) -> Result<Recovered, StoreError> {
        let mut call = self.work.call("recover runs").await?;
        let expected_now = expected.map(|expected| expected.at(BootInstant::now()));
        let rows = self.run(&mut call, self.query(sql::RECOVERABLE)).await?;
        let row = rows.first().ok_or_else(|| malformed("an answer without a row"))?;
        let now: DateTime<Utc> = column(row, "now")?;
        let believed = expected_now.is_none_or(|expected| (now - expected).abs() <= TimeDelta::seconds(1));
        let mut recovered = Recovered::default();
        for run in column::<Vec<Uuid>>(row, "lost")?.into_iter().filter(|_| believed) {
            let rerun = RunId::generate();
            let query = self.query(sql::LOSE).bind(run).bind(rerun.as_uuid());
            for row in self.run(&mut call, query).await? {
                let mut lost = lost_run(&row)?;
                lost.rerun = column::<bool>(&row, "reruns")?.then_some(rerun);
                recovered.lost.push(lost);
            }
        }
        for row in self.run(&mut call, self.query(sql::OVERDUE)).await? {
            recovered.overdue.push(overdue_run(&row)?);
        }
        call.done();
        Ok(recovered)
    }

    pub(super) async fn read_progress(&self, queries: &[ProgressQuery]) -> Result<Vec<JobProgress>, StoreError> {
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
                caught_up_through: column(row, "caught_up_through")?,
                settled_through: column(row, "settled_through")?,
                newest_before: column(row, "newest_before")?,
                with_row: Vec::new(),
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

    pub(super) async fn carry_out(&self, plan: &CatchUpPlan) -> Result<bool, StoreError> {
        let call = self.work.call("catch up").await?;
        let missed = &plan.missed;
        let late = plan.late.as_ref();
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

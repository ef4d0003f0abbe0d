//! What takes several statements in one transaction: rare, so round trips don't matter.

use chrono::{DateTime, TimeDelta, Utc};

use super::decode::column;
use super::runs::{lost_run, millis, overdue_run};
use super::{PostgresStore, begin, commit, sql};
use crate::store::{CatchUpPlan, Recovered, StoreError};
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
                if column::<i32>(&row, "reruns_left")? > 0 {
                    let rerun = RunId::generate();
                    let query = self.query(sql::RERUN).bind(rerun.as_uuid()).bind(lost.run.as_uuid());
                    let made = call.run(|connection| query.fetch_optional(connection)).await?;
                    lost.rerun = made.map(|_| rerun);
                }
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

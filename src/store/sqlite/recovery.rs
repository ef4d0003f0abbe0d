//! What happens to runs that nobody ends.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::sqlite::SqliteRow;

use super::decode::{attempt, column, instant, resource, run_id, token, trigger, word};
use super::{SqliteStore, all, sql};
use crate::clock::{BootInstant, Expected};
use crate::store::{LostRun, OverdueRun, Recovered, StoreError};
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

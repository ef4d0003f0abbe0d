//! What happens to runs that nobody ends.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::decode::{column, malformed};
use super::rows::{lost_run, overdue_run};
use super::{PostgresStore, sql};
use crate::clock::{BootInstant, Expected};
use crate::store::{Recovered, StoreError};
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
}

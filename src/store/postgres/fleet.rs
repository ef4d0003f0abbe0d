use async_trait::async_trait;

use super::decode::{column, host, malformed};
use super::runs::millis;
use super::{PostgresStore, sql};
use crate::clock::{BootInstant, Sample};
use crate::fleet::{HostRow, InstanceId};
use crate::store::{Fleet, HostBeat, Hosts, StoreError};

#[async_trait]
impl Hosts for PostgresStore {
    async fn beat(&self, beat: &HostBeat) -> Result<Fleet, StoreError> {
        let mut call = self.work.call("say that this host lives").await?;
        let labels = serde_json::to_string(&beat.labels).expect("strings can be written as JSON");
        let query = self
            .query(sql::BEAT)
            .bind(beat.instance.as_uuid())
            .bind(beat.name.as_str())
            .bind(&beat.version)
            .bind(labels)
            .bind(&beat.schedule_digest)
            .bind(beat.clock_offset_ms)
            .bind(beat.draining)
            .bind(millis(beat.stale_after));
        self.run(&mut call, query).await?;
        let rows = self.run(&mut call, self.query(sql::HOSTS)).await?;
        let sent = BootInstant::now();
        let now = self.run(&mut call, self.query(sql::NOW)).await?;
        let received = BootInstant::now();
        call.done();
        let row = now.first().ok_or_else(|| malformed("an answer without a row"))?;
        let live = rows.iter().map(host).collect::<Result<_, _>>()?;
        Ok(Fleet { live, sample: Sample { sent, received, at: column(row, "now")? } })
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        let call = self.work.call("say that this host goes").await?;
        self.all(call, self.query(sql::LEAVE).bind(instance.as_uuid())).await?;
        Ok(())
    }

    async fn hosts(&self) -> Result<Vec<HostRow>, StoreError> {
        let call = self.work.call("list hosts").await?;
        self.all(call, self.query(sql::HOSTS)).await?.iter().map(host).collect()
    }
}

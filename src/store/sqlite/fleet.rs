use async_trait::async_trait;

use super::decode::host;
use super::runs::millis;
use super::{SqliteStore, all, sql};
use crate::clock::{BootInstant, Sample};
use crate::fleet::{HostRow, InstanceId};
use crate::store::{Fleet, HostBeat, Hosts, StoreError};

#[async_trait]
impl Hosts for SqliteStore {
    async fn beat(&self, beat: &HostBeat) -> Result<Fleet, StoreError> {
        let mut transaction = self.begin("say that this host lives").await?;
        let labels = serde_json::to_string(&beat.labels).expect("strings can be written as JSON");
        let query = sqlx::query(sql::BEAT)
            .bind(beat.instance.to_string())
            .bind(beat.name.as_str())
            .bind(beat.version.clone())
            .bind(labels)
            .bind(beat.schedule_digest.clone())
            .bind(beat.clock_offset_ms)
            .bind(beat.draining)
            .bind(millis(beat.stale_after));
        transaction.all(query).await?;
        let rows = transaction.all(sqlx::query(sql::HOSTS)).await?;
        let live = rows.iter().map(host).collect::<Result<_, _>>()?;
        let sent = BootInstant::now();
        let at = transaction.now().await?;
        let received = BootInstant::now();
        transaction.commit().await?;
        Ok(Fleet { live, sample: Sample { sent, received, at } })
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        let mut transaction = self.begin("say that this host goes").await?;
        transaction.all(sqlx::query(sql::LEAVE).bind(instance.to_string())).await?;
        transaction.commit().await
    }

    async fn hosts(&self) -> Result<Vec<HostRow>, StoreError> {
        let call = self.work.call("list hosts").await?;
        all(call, sqlx::query(sql::HOSTS)).await?.iter().map(host).collect()
    }
}

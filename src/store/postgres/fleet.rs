use async_trait::async_trait;

use super::decode::{column, host};
use super::runs::millis;
use super::{PostgresStore, all, begin, commit, sql};
use crate::clock::{BootInstant, Sample};
use crate::fleet::{HostRow, InstanceId};
use crate::store::{Fleet, HostBeat, Hosts, JobSeen, StoreError};

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
        call.run(|connection| query.execute(connection)).await?;
        let query = self.query(sql::HOSTS);
        let rows = call.run(|connection| query.fetch_all(connection)).await?;
        let query = self.query(sql::NOW);
        let sent = BootInstant::now();
        let row = call.run(|connection| query.fetch_one(connection)).await?;
        let received = BootInstant::now();
        call.done();
        let live = rows.iter().map(host).collect::<Result<_, _>>()?;
        Ok(Fleet { live, sample: Sample { sent, received, at: column(&row, "now")? } })
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        let call = self.work.call("say that this host goes").await?;
        all(call, self.query(sql::LEAVE).bind(instance.as_uuid())).await?;
        Ok(())
    }

    async fn hosts(&self) -> Result<Vec<HostRow>, StoreError> {
        let call = self.work.call("list hosts").await?;
        all(call, self.query(sql::HOSTS)).await?.iter().map(host).collect()
    }

    async fn register(&self, instance: InstanceId, jobs: &[JobSeen]) -> Result<(), StoreError> {
        let names: Vec<_> = jobs.iter().map(|seen| seen.job.as_str().to_owned()).collect();
        let digests: Vec<_> = jobs.iter().map(|seen| seen.digest.clone()).collect();
        let mut call = self.work.call("register jobs").await?;
        begin(&mut call).await?;
        let query = self.query(sql::REGISTER_JOB).bind(&names).bind(&digests);
        call.run(|connection| query.execute(connection)).await?;
        let query = self.query(sql::REGISTER_DEFINITION).bind(&names).bind(&digests).bind(instance.as_uuid());
        call.run(|connection| query.execute(connection)).await?;
        let query = self.query(sql::FORGET_DEFINITIONS).bind(instance.as_uuid()).bind(&names);
        call.run(|connection| query.execute(connection)).await?;
        let query = self.query(sql::FORGET_DEAD);
        call.run(|connection| query.execute(connection)).await?;
        commit(&mut call).await?;
        call.done();
        Ok(())
    }
}

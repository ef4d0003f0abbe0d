use std::time::Duration;

use async_trait::async_trait;

use super::decode::{acquired, between, column, holder};
use super::{PostgresStore, Timeliness, sql};
use crate::clock::BootInstant;
use crate::lock::{FencingToken, Owner, PublicOwner, Resource};
use crate::store::{Acquire, Acquired, LockRow, Locks, Loss, Released, Renewal, Renewed, StoreError};

#[async_trait]
impl Locks for PostgresStore {
    async fn acquire(&self, acquire: &Acquire) -> Result<Acquired, StoreError> {
        let call = self.work.call("acquire a lock").await?;
        let timely = Timeliness::of(acquire.expected_now, &call);
        let query = self
            .query(sql::ACQUIRE)
            .bind(acquire.resource.as_str())
            .bind(acquire.owner.reveal())
            .bind(acquire.ttl.as_millis())
            .bind(timely.expected_now);
        acquired(&self.one(call, query).await?, timely.sent)
    }

    async fn renew(&self, batch: &[Renewal], within: Duration) -> Result<Vec<Renewed>, StoreError> {
        let resources: Vec<_> = batch.iter().map(|renewal| renewal.resource.as_str()).collect();
        let owners: Vec<_> = batch.iter().map(|renewal| renewal.owner.reveal()).collect();
        let tokens: Vec<_> = batch.iter().map(|renewal| renewal.token.map(FencingToken::get)).collect();
        let ttls: Vec<_> = batch.iter().map(|renewal| renewal.ttl.as_millis()).collect();
        let call = self.heartbeat.call_within("renew leases", within).await?;
        let query = self.query(sql::RENEW).bind(resources).bind(owners).bind(tokens).bind(ttls);
        let sent = BootInstant::now();
        let rows = self.all(call, query).await?;
        rows.iter().map(|row| renewed(row, sent)).collect()
    }

    async fn release(
        &self,
        resource: &Resource,
        owner: &Owner,
        token: Option<FencingToken>,
    ) -> Result<Released, StoreError> {
        let call = self.work.call("release a lock").await?;
        let query =
            self.query(sql::RELEASE).bind(resource.as_str()).bind(owner.reveal()).bind(token.map(FencingToken::get));
        if column(&self.one(call, query).await?, "released")? {
            return Ok(Released::Released);
        }
        // What stood in the way is for the caller's information alone, so a second look will do.
        Ok(match self.lock(resource).await? {
            Some(row) => Released::Forbidden(row.holder),
            None => Released::NotFound,
        })
    }

    async fn lock(&self, resource: &Resource) -> Result<Option<LockRow>, StoreError> {
        let call = self.work.call("read a lock").await?;
        let rows = self.all(call, self.query(sql::LOCK).bind(resource.as_str())).await?;
        rows.first().map(lock_row).transpose()
    }

    async fn locks(&self) -> Result<Vec<LockRow>, StoreError> {
        let call = self.work.call("list locks").await?;
        self.all(call, self.query(sql::LOCKS)).await?.iter().map(lock_row).collect()
    }
}

fn renewed(row: &sqlx::postgres::PgRow, sent: BootInstant) -> Result<Renewed, StoreError> {
    let now = column(row, "now")?;
    if let Some(expires_at) = column(row, "expires_at")? {
        return Ok(Renewed::Renewed { valid_until: sent + between(now, expires_at), expires_at });
    }
    let (ours, live) = (column::<bool>(row, "ours")?, column::<bool>(row, "live")?);
    Ok(match (ours, live) {
        (true, true) => Renewed::Unknown,
        (true, false) => Renewed::Lost(Loss::Expired),
        (false, true) => Renewed::Lost(Loss::TakenOver(PublicOwner::of(&column::<String>(row, "owner")?))),
        (false, false) => Renewed::Lost(Loss::Gone),
    })
}

fn lock_row(row: &sqlx::postgres::PgRow) -> Result<LockRow, StoreError> {
    Ok(LockRow {
        holder: holder(row)?,
        renewed_at: column(row, "renewed_at")?,
        released_at: column(row, "released_at")?,
    })
}

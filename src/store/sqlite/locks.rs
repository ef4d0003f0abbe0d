use std::time::Duration;

use async_trait::async_trait;

use super::decode::{column, instant, later, lock_row, optional_instant, raw, text, token, valid_until};
use super::transaction::Transaction;
use super::{SqliteStore, all, sql};
use crate::lock::{FencingToken, Owner, PublicOwner, Resource};
use crate::store::{Acquire, Acquired, LockRow, Locks, Loss, Released, Renewal, Renewed, StoreError};

#[async_trait]
impl Locks for SqliteStore {
    async fn acquire(&self, acquire: &Acquire) -> Result<Acquired, StoreError> {
        let mut transaction = self.begin("acquire a lock").await?;
        let answer = transaction.grant(&acquire.resource, &acquire.owner, acquire.ttl, acquire.expected_now).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    async fn renew(&self, batch: &[Renewal], within: Duration) -> Result<Vec<Renewed>, StoreError> {
        let mut transaction = self.begin_heartbeat("renew leases", within).await?;
        let mut answers = Vec::with_capacity(batch.len());
        for renewal in batch {
            answers.push(renew_one(&mut transaction, renewal).await?);
        }
        transaction.commit().await?;
        Ok(answers)
    }

    async fn release(
        &self,
        resource: &Resource,
        owner: &Owner,
        token: Option<FencingToken>,
    ) -> Result<Released, StoreError> {
        let mut transaction = self.begin("release a lock").await?;
        let query = sqlx::query(sql::RELEASE).bind(resource.as_str()).bind(owner.reveal()).bind(raw(token));
        let answer = match transaction.optional(query).await? {
            Some(_) => Released::Released,
            None => {
                let found = transaction.optional(sqlx::query(sql::LOCK).bind(resource.as_str())).await?;
                match found.as_ref().map(lock_row).transpose()? {
                    Some(row) => Released::Forbidden(row.holder),
                    None => Released::NotFound,
                }
            }
        };
        transaction.commit().await?;
        Ok(answer)
    }

    async fn lock(&self, resource: &Resource) -> Result<Option<LockRow>, StoreError> {
        let call = self.work.call("read a lock").await?;
        let rows = all(call, sqlx::query(sql::LOCK).bind(resource.as_str())).await?;
        rows.first().map(lock_row).transpose()
    }

    async fn locks(&self) -> Result<Vec<LockRow>, StoreError> {
        let call = self.work.call("list locks").await?;
        all(call, sqlx::query(sql::LOCKS)).await?.iter().map(lock_row).collect()
    }
}

async fn renew_one(transaction: &mut Transaction<'_>, renewal: &Renewal) -> Result<Renewed, StoreError> {
    let now = transaction.now().await?;
    let expires_at = later(now, renewal.ttl.get());
    let query = sqlx::query(sql::RENEW)
        .bind(renewal.resource.as_str())
        .bind(renewal.owner.reveal())
        .bind(raw(renewal.token))
        .bind(text(now))
        .bind(text(expires_at));
    if transaction.optional(query).await?.is_some() {
        let valid_until = valid_until(transaction.sent, now, expires_at);
        return Ok(Renewed::Renewed { valid_until, expires_at });
    }
    let look = sqlx::query(sql::RENEW_LOOK).bind(renewal.resource.as_str());
    let Some(row) = transaction.optional(look).await? else { return Ok(Renewed::Lost(Loss::Gone)) };
    let owner: &str = column(&row, "owner")?;
    let ours = owner == renewal.owner.reveal()
        && renewal.token.is_none_or(|asked| token(&row, "token").is_ok_and(|found| found == asked));
    let released = optional_instant(&row, "released_at")?.is_some();
    let live = instant(&row, "expires_at")? > now;
    Ok(Renewed::Lost(match (ours && !released, live) {
        (true, _) => Loss::Expired,
        (false, true) => Loss::TakenOver(PublicOwner::of(owner)),
        (false, false) => Loss::Gone,
    }))
}

//! The port for locks: `spec` of `distributed_locks`, whoever asks.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::clock::{BootInstant, Expected};
use crate::lock::{FencingToken, Owner, PublicOwner, Resource, Ttl};
use crate::trigger::RunId;

/// One attempt to get a lock.
#[derive(Clone, Debug)]
pub struct Acquire {
    /// What to lock.
    pub resource: Resource,
    /// For whom.
    pub owner: Owner,
    /// For how long unless renewed.
    pub ttl: Ttl,
    /// The database's now as the caller extrapolates it; a lock that nobody released is taken
    /// over only if the two agree within a second. `None`: no opinion.
    pub expected_now: Option<Expected>,
}

/// The answer to an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The caller holds it now.
    Granted(Grant),
    /// Somebody else holds it.
    Held(Holder),
    /// It is expired but was never released, and the database's clock differs from what the
    /// caller expected by this much: not granted.
    ClockStepped {
        /// Database less expectation, in milliseconds.
        off_ms: i64,
    },
}

/// A lock that the caller holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The token of this ownership.
    pub token: FencingToken,
    /// When this ownership was established, by the database's clock.
    pub acquired_at: DateTime<Utc>,
    /// When it ends unless renewed, by the database's clock. For display only.
    pub expires_at: DateTime<Utc>,
    /// When it ends on this host's clock: before the request was sent, plus the time that the
    /// answer said is left. Never later than the row's expiry. May have passed already.
    pub valid_until: BootInstant,
    /// From whom it was taken over, if its owner never released it.
    pub taken_from: Option<PreviousOwner>,
}

/// The owner before a take-over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousOwner {
    /// Who.
    pub owner: PublicOwner,
    /// Its token.
    pub token: FencingToken,
    /// Since when it held the lock.
    pub acquired_at: DateTime<Utc>,
    /// When its grant ran out.
    pub expired_at: DateTime<Utc>,
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What is held: not always what was asked for, after a job's `lock` was changed.
    pub resource: Resource,
    /// Who; the secret part is masked.
    pub owner: PublicOwner,
    /// Its token.
    pub token: FencingToken,
    /// Since when.
    pub acquired_at: DateTime<Utc>,
    /// Until when unless renewed.
    pub expires_at: DateTime<Utc>,
    /// For how long already.
    pub held: Duration,
    /// How long is left unless renewed.
    pub remaining: Duration,
    /// The run that it guards, if it guards one.
    pub run: Option<RunId>,
}

/// One lock to renew.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// What.
    pub resource: Resource,
    /// Whose.
    pub owner: Owner,
    /// Which ownership; `None` renews whichever this owner holds.
    pub token: Option<FencingToken>,
    /// How long from now.
    pub ttl: Ttl,
}

/// The answer to one renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// It goes on.
    Renewed {
        /// When it ends on this host's clock; see [`Grant::valid_until`].
        valid_until: BootInstant,
        /// When it ends, by the database's clock.
        expires_at: DateTime<Utc>,
    },
    /// It is gone for good: expired, taken over or forced. Never renewed again.
    Lost(Loss),
    /// Still the caller's, but somebody has the row locked: nothing was done, try again.
    Unknown,
}

/// Why a lease is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nobody renewed it in time.
    Expired,
    /// Somebody else holds the lock.
    TakenOver(PublicOwner),
    /// The row is not there, or was released.
    Gone,
}

/// The answer to a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// It is free.
    Released,
    /// There was nothing to release: no row, or expired.
    NotFound,
    /// Somebody else holds it.
    Forbidden(Holder),
}

/// A row of `distributed_locks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRow {
    /// What is locked, by whom, until when.
    pub holder: Holder,
    /// When it was last renewed.
    pub renewed_at: DateTime<Utc>,
    /// When it was released; `None` while held, and for one that was left to expire.
    pub released_at: Option<DateTime<Utc>>,
}

/// Locks in the shared table. Expiry is decided by the database's clock inside each statement.
#[async_trait]
pub trait Locks: Send + Sync {
    /// Tries once to get a lock, without waiting for its holder.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::is_unknown`] the lock may have been granted: ask again
    /// under the same owner.
    ///
    /// # Cancel safety
    /// Dropped, it may have been granted, as after an unknown error.
    async fn acquire(&self, acquire: &Acquire) -> Result<Acquired, StoreError>;

    /// Renews all of a batch in one statement, over a connection that nothing else uses, and within
    /// the given time. A row that somebody has locked delays itself alone. Answers stand in the
    /// order of the batch.
    ///
    /// # Errors
    /// [`StoreError`]: nothing is known about any of the batch. Renewing again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, the renewals may have been done; that does no harm.
    async fn renew(&self, batch: &[Renewal], within: Duration) -> Result<Vec<Renewed>, StoreError>;

    /// Frees a lock. `token` narrows it to one ownership.
    ///
    /// # Errors
    /// [`StoreError`]; releasing again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn release(
        &self,
        resource: &Resource,
        owner: &Owner,
        token: Option<FencingToken>,
    ) -> Result<Released, StoreError>;

    /// Who holds a lock; `None` if it is free or expired.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn lock(&self, resource: &Resource) -> Result<Option<LockRow>, StoreError>;

    /// All locks that are held or were left to expire, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn locks(&self) -> Result<Vec<LockRow>, StoreError>;
}

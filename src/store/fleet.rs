//! The port for hosts.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use super::StoreError;
use crate::clock::Sample;
use crate::fleet::{HostName, HostRow, InstanceId, Label};

/// What a daemon says of itself at each beat.
#[derive(Clone, Debug)]
pub struct HostBeat {
    /// Which start of the daemon.
    pub instance: InstanceId,
    /// Its host's name.
    pub name: HostName,
    /// Its version of cronlatch.
    pub version: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// What its schedule hashes to.
    pub schedule_digest: String,
    /// Its wall clock less the database's, in milliseconds.
    pub clock_offset_ms: Option<i64>,
    /// Whether it takes no new runs.
    pub draining: bool,
    /// After how long without a beat it counts as dead for the order of claims.
    pub stale_after: Duration,
}

/// The answer to a beat.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// All live daemons, the caller included, by instance.
    pub live: Vec<HostRow>,
    /// A reading of the database's clock.
    pub sample: Sample,
}

/// The live daemons. Nothing safe rests on these rows: they only order the claims and inform people.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// Says that this daemon lives, and hears who else does.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Dropped, the beat may have been written; that does no harm.
    async fn beat(&self, beat: &HostBeat) -> Result<Fleet, StoreError>;

    /// Says that this daemon goes.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError>;

    /// Live daemons, without a beat of one's own.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn hosts(&self) -> Result<Vec<HostRow>, StoreError>;
}

/// The labels of a column. Words of another version that this one refuses are left out: no job of
/// this host can ask for them.
pub(super) fn labels(json: &str) -> BTreeSet<Label> {
    let words: Vec<String> = serde_json::from_str(json).unwrap_or_default();
    words.into_iter().filter_map(|word| Label::new(word).ok()).collect()
}

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

use super::queue::PASSED_OVER;
use crate::job::JobName;

/// One claim at a time for each job, and the newest trigger of each: while the database is away
/// only the newest is tried again.
#[derive(Debug, Default)]
pub(super) struct ClaimGates {
    gates: Mutex<HashMap<JobName, Arc<ClaimGate>>>,
}

#[derive(Debug)]
pub(super) struct ClaimGate {
    turn: Arc<AsyncMutex<()>>,
    newest: watch::Sender<DateTime<Utc>>,
}

impl ClaimGates {
    pub(super) fn of(&self, job: &JobName) -> Arc<ClaimGate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(job.clone()).or_insert_with(|| Arc::new(ClaimGate::new())).clone()
    }
}

impl ClaimGate {
    fn new() -> Self {
        Self { turn: Arc::default(), newest: watch::Sender::new(DateTime::UNIX_EPOCH) }
    }

    /// Says that a trigger came. One far older than the newest is a clock that was set back.
    pub(super) fn note(&self, at: DateTime<Utc>) {
        self.newest.send_if_modified(|newest| {
            let newer = at > *newest || *newest - at > PASSED_OVER;
            if newer {
                *newest = at;
            }
            newer
        });
    }

    /// Whether a later trigger has come.
    pub(super) fn is_superseded(&self, at: DateTime<Utc>) -> bool {
        *self.newest.borrow() > at
    }

    /// Waits for this job's turn to claim; `None` when `patience` is over and a later trigger has
    /// come.
    ///
    /// # Cancel safety
    /// Safe: the turn is not taken.
    pub(super) async fn turn(
        &self,
        at: DateTime<Utc>,
        patience: impl Future<Output = ()>,
    ) -> Option<OwnedMutexGuard<()>> {
        let mut newest = self.newest.subscribe();
        let superseded = async {
            patience.await;
            newest.wait_for(|newest| *newest > at).await.map(drop).ok();
        };
        tokio::select! {
            biased;
            guard = self.turn.clone().lock_owned() => Some(guard),
            () = superseded => None,
        }
    }
}

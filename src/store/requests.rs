//! The port for requests: what somebody asks of a run that is another host's.

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreError;
use crate::fleet::InstanceId;
use crate::trigger::{RequestOutcome, RunId, RunState};

/// Who wants a run stopped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// Who, for people: `anna@laptop`.
    pub by: String,
    /// Why, in their words.
    pub reason: Option<String>,
}

impl Cancel {
    /// As a run's row has it: `cancelled by anna@laptop: it hangs`.
    pub fn in_words(&self) -> String {
        match &self.reason {
            Some(reason) => format!("cancelled by {}: {reason}", self.by),
            None => format!("cancelled by {}", self.by),
        }
    }
}

/// The answer to a wish that a run stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAsked {
    /// Its host stops it when it sees the request, which stays.
    Asked,
    /// It waited for a host, and is cancelled now.
    Cancelled,
    /// It is over, in this state.
    Over(RunState),
    /// There is no such run.
    Unknown,
}

/// Why a run is to be stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Somebody wants so.
    Cancelled(Cancel),
    /// A newer trigger of its job takes its place.
    Replaced {
        /// The run that waits for it.
        by: RunId,
    },
}

impl Asked {
    /// For people.
    pub fn in_words(&self) -> String {
        match self {
            Self::Cancelled(cancel) => cancel.in_words(),
            Self::Replaced { by } => format!("replaced by {by}"),
        }
    }
}

/// A request that a run stop, which its host has not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCancel {
    /// Its name.
    pub request: Uuid,
    /// Which run.
    pub run: RunId,
    /// Why.
    pub asked: Asked,
}

/// Requests in the shared tables. A run has one cancel at most: what comes later is the same one. Whoever
/// wants a run stopped wants nothing in its place: it is not tried again, nor run again if it is lost, nor
/// does it wait if it is given back.
#[async_trait]
pub trait Requests: Send + Sync {
    /// Asks for a run to be stopped. One that waits is cancelled at once.
    ///
    /// # Errors
    /// [`StoreError`]; asking again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been asked.
    async fn request_cancel(&self, run: RunId, cancel: &Cancel) -> Result<CancelAsked, StoreError>;

    /// What is asked of the open runs of one daemon, oldest first, at most 100: one statement that reads.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn open_cancels(&self, instance: InstanceId) -> Result<Vec<OpenCancel>, StoreError>;

    /// Closes a request. `Ok(false)`: it was closed before.
    ///
    /// # Errors
    /// [`StoreError`]; answering again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may have been done.
    async fn answer_request(&self, request: Uuid, by: InstanceId, outcome: RequestOutcome) -> Result<bool, StoreError>;
}

/// Reads what a request's columns say.
pub(super) fn asked(by: Option<String>, reason: Option<String>, replaced_by: Option<RunId>) -> Asked {
    match replaced_by {
        Some(by) => Asked::Replaced { by },
        None => Asked::Cancelled(Cancel { by: by.unwrap_or_default(), reason }),
    }
}

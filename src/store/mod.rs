//! Floor 3: the shared tables, and the only user of `sqlx`.
//!
//! A narrow port, one trait per subject ([`Locks`], [`Runs`], [`Requests`], [`Jobs`], [`Hosts`], [`Schema`]), and two
//! adapters with the same behaviour: PostgreSQL for several hosts, SQLite for several daemons on
//! one machine. One conformance suite (`tests/store.rs`) runs every case against both.
//!
//! What it does *not* guarantee: that a holder stops in time (floor 4 and 5), and anything at all
//! once the database forgets commits (asynchronous failover, `synchronous_commit = off`).
//!
//! Instants in answers are the database's, except `valid_until`, which is this host's and never
//! later than the row's expiry.

mod catch_up;
mod claims;
mod connections;
mod endings;
mod error;
mod fleet;
mod history;
mod jobs;
mod locks;
mod open;
mod postgres;
mod requests;
mod runs;
mod schema;
mod sqlite;

use std::sync::Arc;

pub use catch_up::{CatchUpPlan, JobProgress, LateRun, Pause, ProgressQuery, TriggerRange};
pub use claims::{Became, Claim, Claimant, Claimed, Taken, WaitingRun, WhenHeld};
pub use endings::{Ending, Finished, Follower, LockAtEnd, LostRun, OverdueRun, Recovered, Retried, RunKey};
pub use error::{SchemaError, StoreError};
pub use fleet::{Fleet, HostBeat, Hosts};
pub use history::{MissedRow, OutcomeQuery, Pruned, Retention, RunFilter, RunRow, TriggerOutcome};
pub use jobs::{Disagreement, JobSeen, Jobs, Paused, Pausing, Resumed};
pub use locks::{Acquire, Acquired, Grant, Holder, LockRow, Locks, Loss, PreviousOwner, Released, Renewal, Renewed};
pub use open::{Location, OpenOptions, open};
pub use requests::{Asked, Cancel, CancelAsked, OpenCancel, Requests};
pub use runs::Runs;
pub use schema::{Migrated, SCHEMA_VERSION, Schema};

pub use crate::trigger::RangeKind;

/// Everything that the shared tables can do.
pub trait Store: Locks + Runs + Requests + Jobs + Hosts + Schema + std::fmt::Debug {}

impl<T: Locks + Runs + Requests + Jobs + Hosts + Schema + std::fmt::Debug> Store for T {}

/// A store that tasks share.
pub type SharedStore = Arc<dyn Store>;

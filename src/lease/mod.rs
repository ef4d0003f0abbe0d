//! Floor 4: our timed hold of a lock.
//!
//! A grant becomes a [`Lease`]; the one heartbeat task of the daemon, the [`Keeper`], renews all
//! due leases in one statement over a connection of its own, and publishes what it learned.
//!
//! ```text
//!            renewed (deadline moves)
//!            +------+
//!            v      |   zero rows, foreign, expired
//!  grant -> Held ---+-------------------------------> Lost (terminal, never renewed, never released)
//!            |  ^   unknown: error, no answer, row locked (deadline stays, tried again at once)
//!            |  +---+
//!            v
//!        stop(): no renewal is under way any more; the lock may be released
//! ```
//!
//! Only *lost* or the deadline stops a job; an error never does. The keeper kills nothing: floor 5
//! watches [`Lease::watch`] and acts by the deadline, however long the keeper is without an answer.

mod deadline;
mod keeper;

pub use deadline::{Deadline, LeaseState};
pub use keeper::{Keeper, KeeperHandle, Lease, StoppedLease};

//! Floor 1: the words of triggers and runs. Pure.
//!
//! A *trigger* is a job at a nominal instant; a *run* is one attempt at it, a row in `runs`.
//!
//! ```text
//!            claim, lock free                    exit 0
//!  (none) ------------------> claimed -> running --------> succeeded
//!     |                        ^  |         |  \---------> failed (exit code, signal, time-out)
//!     | lock held, `wait`      |  |         |  \---------> cancelled
//!     v                        |  v         v
//!  waiting --- lock free ------/  given     lost (the host died or its lease ended)
//!     |   ^                       back         | `on_crash = "rerun"`: the next attempt waits
//!     |   \-----------------------/            v
//!     \--> skipped (waited too long)        waiting (attempt + 1)
//!  waiting -- somebody cancels it --> cancelled     failed -- a retry, same lease --> claimed (attempt + 1)
//!  waiting -- a later trigger, `replace` --> skipped
//!  (none) -- lock held, `skip` --> skipped     (none) -- nobody could --> missed
//!  (none) -- all of `after` succeeded, or it is to run late --> waiting
//!  waiting -- its job is paused, or nobody took it in time --> missed
//! ```

mod id;
mod rank;
mod state;

pub use id::{Origin, RunId, Target, Trigger};
pub use rank::{claim_delay, rank};
pub use state::{MissedReason, RangeKind, RequestOutcome, RunState, SkipReason, TriggerKind};

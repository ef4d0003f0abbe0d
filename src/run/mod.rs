//! Floor 5: one run, from its grant to its end.
//!
//! The order that never changes: process group reaped -> heartbeat stopped and joined -> run row
//! finished and lock released in one transaction.
//!
//! - [`Runner::supervise`] is the walk; it ends when the run's end is written or can't be.
//! - [`Stop`] is what floor 6 tells all runs: go on, stop, be killed.
//! - [`Stops`] is how one run is asked to stop: by a cancel, or by a newer trigger.
//! - [`Exhaustion`] says whether this machine could start processes lately.
//! - `record` writes what became of a run until it is written; `output` turns bytes into lines, `environment` says what a job sees.

mod ending;
mod environment;
mod exhaustion;
mod output;
mod pump;
mod record;
mod running;
mod stops;
mod supervise;

pub use exhaustion::Exhaustion;
pub use stops::{StopTicket, Stops};
pub use supervise::{Assignment, Runner, Stop, Supervised};

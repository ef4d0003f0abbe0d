//! Floor 5: one run, from its grant to its end.
//!
//! The order that never changes: process group reaped -> heartbeat stopped and joined -> run row
//! finished and lock released in one transaction.
//!
//! - [`Runner::supervise`] is the walk; it ends when the run's end is written or can't be.
//! - [`Stop`] is what floor 6 tells all runs: go on, stop, be killed.
//! - [`Exhaustion`] says whether this machine could start processes lately.
//! - [`Notifier`] tells people and services how jobs fare, beside the runs.
//! - `record` writes what became of a run until it is written; `pump` reads its output and `output` says what becomes
//!   of it, `environment` says what a job sees.

mod ending;
mod environment;
mod exhaustion;
mod notices;
mod output;
mod pump;
mod record;
mod running;
mod supervise;
mod writer;

pub use exhaustion::Exhaustion;
pub use notices::{Notifier, Occasion};
pub use supervise::{Assignment, Runner, Stop, Supervised};

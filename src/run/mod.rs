//! Floor 5: one run, from its grant to its end.
//!
//! The order that never changes: process group reaped -> heartbeat stopped and joined -> run row
//! finished and lock released in one transaction.
//!
//! - [`Runner::supervise`] is the walk, `attempt` one start of the process, `retrying` what comes after a failure; it
//!   ends when the run's end is written or can't be.
//! - [`Stop`] is what floor 6 tells all runs: go on, stop, be killed.
//! - [`Stops`] is how one run is asked to stop: by a cancel, or by a newer trigger.
//! - [`Exhaustion`] says whether this machine could start processes lately.
//! - [`Notifier`] tells people and services how jobs fare, beside the runs.
//! - `record` writes what became of a run until it is written; `pump` reads its output and `output` says what becomes
//!   of it, `environment` says what a job sees.

mod assignment;
mod attempt;
mod ending;
mod environment;
mod exhaustion;
mod notices;
mod output;
mod pump;
mod record;
mod retrying;
mod running;
mod stops;
mod supervise;
mod writer;

pub use assignment::Assignment;
pub use exhaustion::Exhaustion;
pub use notices::{EndedRun, Notifier, Occasion};
pub use stops::{StopTicket, Stops};
pub use supervise::{Runner, Stop, Supervised};

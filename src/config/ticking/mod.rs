//! When a job ticks: from its keys to a [`Schedule`](crate::job::schedule::Schedule).
//!
//! ```text
//! typed.rs      the keys as they were typed, laid over those of [defaults]
//! schedule.rs   what they mean; blackouts.rs: in their midst, when a job must not tick
//! after.rs      jobs that run after others, only known when all files have been read; cycles.rs
//! doubts.rs     what is allowed and may surprise; words.rs: all of it as a sentence. For `check` alone
//! ```
//! A job says how it ticks with exactly one of four keys, its [`Ticks`]. What hangs on that (`splay`,
//! a window, blackouts, the rules for clock changes) means nothing in a job that doesn't tick by
//! itself: there it is an error, while in `[defaults]` it waits for jobs that do.

mod after;
mod blackouts;
mod cycles;
mod doubts;
mod schedule;
mod typed;
mod words;

pub use after::Roster;
pub use doubts::doubts;
pub use schedule::{Ticking, periods};
pub use typed::{TypedTicking, read_zone, whole_seconds};
pub use words::InWords;

//! Floor 1: what a job is and when it ticks. Pure: the only user of `cron` is [`schedule`].

mod definition;
mod moment;
mod name;
mod placement;
pub mod schedule;
mod splay;

pub use definition::{CatchUp, Command, Job, OnCrash, Overlap};
pub use moment::{InvalidMoment, Moment};
pub use name::{InvalidJobName, JobName};
pub use placement::{Placement, RunOn};
pub use splay::start_delay;

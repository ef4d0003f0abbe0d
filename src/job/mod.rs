//! Floor 1: what a job is and when it ticks. Pure: the only user of `cron` is [`schedule`].

mod definition;
mod moment;
mod name;
mod notices;
mod outcome;
mod output;
mod output_path;
mod placement;
mod process;
pub mod schedule;
mod splay;

pub use definition::{CatchUp, Command, Job, OnCrash, Overlap};
pub use moment::{InvalidMoment, Moment};
pub use name::{InvalidJobName, JobName};
pub use notices::{Notices, PingUrl};
pub use outcome::{OnLeaseLost, Retries, SuccessCodes};
pub use output::{OutputFile, OutputKeep, OutputTo};
pub use output_path::OutputNames;
pub use placement::{Placement, RunOn};
pub use process::{Limits, ProcessSetup, Stdin, Umask};
pub use splay::start_delay;

//! Floor 1: what a job is and when it ticks. Pure: the only user of `cron` is [`schedule`].

mod definition;
mod name;
pub mod schedule;

pub use definition::{CatchUp, Command, Job, OnCrash, Overlap};
pub use name::{InvalidJobName, JobName};

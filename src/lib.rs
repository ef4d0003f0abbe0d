//! cron for several hosts: every trigger runs once, under a lock that lives by heartbeats.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod clock;
pub mod events;
pub mod fleet;
pub mod job;
pub mod lease;
pub mod lock;
pub mod shim;
pub mod store;
pub mod telemetry;
pub mod trigger;

//! cron for several hosts: every trigger runs once, under a lock that lives by heartbeats.
//!
//! A tour in the order of the data's path (ARCHITECTURE.md is the map):
//!
//! 1. [`config`] reads the schedule file into settings and [`job`]s;
//! 2. [`daemon`] lets each job tick by the database's [`clock`], and ranks this host for the
//!    [`trigger`] among the [`fleet`];
//! 3. [`store`] claims the run and its [`lock`] in the shared tables;
//! 4. [`lease`] turns the grant into a timed hold and renews it;
//! 5. [`run`] supervises the job, which [`shim`] starts and kills, and writes how it ended.
//!
//! [`events`] says all of it to operators, [`telemetry`] says where; [`cli`] has the commands.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod events;
pub mod fleet;
pub mod job;
pub mod lease;
pub mod lock;
pub mod run;
pub mod shim;
pub mod store;
pub mod telemetry;
pub mod trigger;

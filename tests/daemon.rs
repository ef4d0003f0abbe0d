//! What a daemon promises, held by the real binary as processes, with real signals, on real databases.
//!
//! One file a promise. Jobs write to a ledger what they do; the tables are read by SQL of the tests'
//! own. `tests/fleet.rs` is the long run of three daemons.
#![allow(clippy::unwrap_used)]

mod support;

#[path = "daemon/accounting.rs"]
mod accounting;
#[path = "daemon/cancel.rs"]
mod cancel;
#[path = "daemon/catch_up.rs"]
mod catch_up;
#[path = "daemon/cgroup.rs"]
mod cgroup;
#[path = "daemon/clock.rs"]
mod clock;
#[path = "daemon/commands.rs"]
mod commands;
#[path = "daemon/crash.rs"]
mod crash;
#[path = "daemon/disagreement.rs"]
mod disagreement;
#[path = "daemon/following.rs"]
mod following;
#[path = "daemon/full.rs"]
mod full;
#[path = "daemon/jobs.rs"]
mod jobs;
#[path = "daemon/lease.rs"]
mod lease;
#[path = "daemon/notices.rs"]
mod notices;
#[path = "daemon/outage.rs"]
mod outage;
#[path = "daemon/output.rs"]
mod output;
#[path = "daemon/overlap.rs"]
mod overlap;
#[path = "daemon/pausing.rs"]
mod pausing;
#[path = "daemon/placement.rs"]
mod placement;
#[path = "daemon/processes.rs"]
mod processes;
#[path = "daemon/reload.rs"]
mod reload;
#[path = "daemon/replace.rs"]
mod replace;
#[path = "daemon/replies.rs"]
mod replies;
#[path = "daemon/retrying.rs"]
mod retrying;
#[path = "daemon/splay.rs"]
mod splay;
#[path = "daemon/start.rs"]
mod start;
#[path = "daemon/steps.rs"]
mod steps;
#[path = "daemon/stop.rs"]
mod stop;
#[path = "daemon/trees.rs"]
mod trees;
#[path = "daemon/wear.rs"]
mod wear;

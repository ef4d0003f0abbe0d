//! The support code of the tests, tested: a fault that is not injected proves nothing.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

#[path = "support_selftest/daemon.rs"]
mod daemon;
#[path = "support_selftest/ledger.rs"]
mod ledger;
#[path = "support_selftest/postgres.rs"]
mod postgres;
#[path = "support_selftest/proxy.rs"]
mod proxy;
#[path = "support_selftest/wait.rs"]
mod wait;

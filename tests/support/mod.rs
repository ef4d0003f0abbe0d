//! What the integration tests stand on: real servers, real daemons, real faults.
//!
//! | module | gives |
//! |---|---|
//! | [`postgres`] | a throwaway PostgreSQL that can be restarted, killed and paused |
//! | [`proxy`] | a TCP proxy that delays, stalls, loses answers and cuts |
//! | [`daemon`] | the real binary, its log as JSON values, its signals |
//! | [`answer`] | what a command answered |
//! | [`fleet`] | several daemons with one schedule and different host names |
//! | [`ledger`] | a file that jobs append to, and the checks that read it |
//! | [`schedule`] | the text of a configuration, from the keys that a test is about |
//! | [`tables`] | the shared tables, read by SQL of its own |
//! | [`machine`] | the clock that the ledger writes, and whether a process lives |
//! | [`wait`] | the one place that sleeps: waiting for a state |
//! | [`scratch`] | folders and processes that are gone when the test process is |
//!
//! Everything here blocks its thread unless it is `async`, and nothing needs a runtime of the
//! caller to go on: the proxy and the readers of logs have threads of their own.
#![allow(dead_code, reason = "each test crate compiles this module for itself and uses a part of it")]

pub mod answer;
pub mod daemon;
pub mod fleet;
pub mod ledger;
pub mod machine;
pub mod pgbouncer;
pub mod postgres;
pub mod proxy;
pub mod schedule;
pub mod scratch;
pub mod tables;
pub mod wait;

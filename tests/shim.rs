//! What the processes between daemon and job promise, held by the real fork server and real shims.
//!
//! The daemon's part is played by the test: it asks for starts and listens. What happens when a whole
//! daemon dies is told in `tests/daemon`.
#![allow(clippy::unwrap_used)]

mod support;

#[path = "shim/ending.rs"]
mod ending;
#[path = "shim/faults.rs"]
mod faults;
#[path = "shim/fixtures.rs"]
mod fixtures;
#[path = "shim/setup.rs"]
mod setup;
#[path = "shim/starting.rs"]
mod starting;

//! Floor 0: the clocks that the house reads, and nothing else.
//!
//! | clock | what it is for |
//! |---|---|
//! | [`BootInstant`] | every local deadline: it is monotonic and goes on while the machine sleeps |
//! | [`DatabaseClock`] | when triggers fire and whether a take-over may be believed: the last sample of the database's clock, extrapolated by `BootInstant` |
//!
//! Rust's `Instant` is `CLOCK_MONOTONIC`, which stands still in suspend
//! (`clock_gettime(2)`); a lease that was measured with it would outlive its row.

mod boot;
mod database;
mod human;

pub use boot::BootInstant;
pub use database::{DatabaseClock, Expected, Sample, Trust};
pub use human::human;

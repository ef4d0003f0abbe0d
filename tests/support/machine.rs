//! The machine's clock that the ledger writes, and its processes.

use std::fs;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// Time since boot, as the ledger's entries have it.
pub fn uptime() -> Duration {
    let text = fs::read_to_string("/proc/uptime").expect("/proc is there");
    let up: f64 = text.split(' ').next().and_then(|up| up.parse().ok()).expect("it begins with a number");
    Duration::from_secs_f64(up)
}

/// What [`uptime`] is at an instant of this machine's wall clock, to a few hundredths of a second.
pub fn uptime_of(at: DateTime<Utc>) -> Duration {
    let (up, ahead) = (uptime(), at - Utc::now());
    let by = |delta: TimeDelta| delta.to_std().unwrap_or_default();
    (up + by(ahead)).saturating_sub(by(-ahead))
}

/// Whether a process still does anything; one that only waits to be reaped does not.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // `PID (NAME) STATE ..`, and the name may hold anything.
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

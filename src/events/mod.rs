//! Beside the house, above the words and below everything that acts: what operators see.
//!
//! One function an event; names are `noun.verb` in the past, fields have the same names in text,
//! JSON and (later) the journal. error = somebody must act, warn = degraded or a run was held off,
//! info = one line for a run's start and end, debug = the expected.
//!
//! Two kinds of contention look alike and mean opposite things. [`run_claimed_elsewhere`] is the
//! normal case on all hosts but one: debug. [`lock_contended`] means that a previous run, or
//! another job of the group, still held the lock when the trigger came: a warning.

mod daemon;
mod lock;
mod run;

use std::sync::OnceLock;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::clock::human;

pub use daemon::{
    clock_skewed, clock_stepped, daemon_draining, daemon_hurried, daemon_overstayed, daemon_panicked,
    daemon_reload_ignored, daemon_reload_refused, daemon_reloaded, daemon_started, daemon_state, daemon_stopped,
    database_lost, database_missed, database_not_reached, database_reached, database_recovered, fork_server_died,
    host_duplicated, host_filled, host_freed, job_placed, job_stranded, schedule_disagreement, schedule_problem,
};
pub use lock::{
    Contention, LeaseLabel, Takeover, lock_acquired, lock_contended, lock_lost, lock_outlived, lock_released,
    lock_renew_late, lock_renewed, lock_taken_over,
};
pub use run::{
    AfterLoss, OutputDropped, RunEnded, RunLabel, notice_failed, notice_sent, notices_dropped, ping_failed,
    run_abandoned, run_cancelled, run_claimed_elsewhere, run_failed, run_followed, run_given_back, run_left_behind,
    run_lost, run_missed, run_output, run_output_dropped, run_output_is_wanted, run_output_to_file,
    run_output_unwritten, run_retrying, run_second_result, run_skipped, run_started, run_stop_asked, run_succeeded,
    run_timed_out, run_unkillable, run_unrecorded, triggers_left_out, triggers_missed,
};

/// Who logs, in every line.
static IDENTITY: OnceLock<(String, String)> = OnceLock::new();

/// Says once whose lines these are.
pub fn identify(host: &crate::fleet::HostName, instance: crate::fleet::InstanceId) {
    // A second call would be another daemon in this process; its lines keep the first name.
    IDENTITY.get_or_init(|| (host.to_string(), instance.to_string()));
}

fn host() -> &'static str {
    IDENTITY.get().map_or("", |(host, _)| host)
}

fn instance() -> &'static str {
    IDENTITY.get().map_or("", |(_, instance)| instance)
}

/// Milliseconds, as all durations are in fields.
fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// RFC 3339 in UTC, as all instants are in fields.
fn at(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// One event: its level, its name, its fields, its sentence.
macro_rules! event {
    ($level:ident $(target: $target:expr)?, $name:literal, { $($fields:tt)* }, $($sentence:tt)+) => {
        tracing::$level!(
            $(target: $target,)? event = $name, host = $crate::events::host(), instance = $crate::events::instance(),
            $($fields)* $($sentence)+
        )
    };
}

use event;

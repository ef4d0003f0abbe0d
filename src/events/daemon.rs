use std::time::Duration;

use super::{event, human, ms};

/// A number with its noun.
fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The daemon ticks.
pub fn daemon_started(version: &str, jobs: usize, database: &str, schedule_digest: &str) {
    event!(info, "daemon.started", {
        version, jobs, database, schedule_digest,
    }, "cronlatch {version} started with {} on {database}", counted(jobs, "job"));
}

/// A task of the daemon panicked: a bug.
pub fn daemon_panicked(what: &str) {
    event!(error, "daemon.panicked", { reason = what, }, "a task panicked, which is a bug: {what}");
}

/// A new schedule is in use.
pub fn daemon_reloaded(jobs: usize, schedule_digest: &str) {
    event!(info, "daemon.reloaded", { jobs, schedule_digest, }, "the schedule was read again: {}", counted(jobs, "job"));
}

/// The schedule was read again and is not fit; the old one stays in use.
pub fn daemon_reload_refused(problems: usize) {
    event!(error, "daemon.reload_refused", {
        problems,
    }, "the schedule on disk has {}; the one in use stays: run `cronlatch check`", counted(problems, "problem"));
}

/// The schedule was read again, and holds settings that differ from those in use.
pub fn daemon_reload_ignored(sections: &str) {
    event!(warn, "daemon.reload_ignored", {
        sections,
    }, "what changed in {sections} needs a restart of the daemon; until then the old settings are in use");
}

/// One problem of a schedule.
pub fn schedule_problem(problem: &str) {
    event!(error, "schedule.problem", { problem, }, "{problem}");
}

/// Hosts read different schedules.
pub fn schedule_disagreement(hosts: &str) {
    event!(warn, "schedule.disagreement", { hosts, }, "hosts have different schedules: {hosts}");
}

/// Two daemons have one host name.
pub fn host_duplicated(name: &str, instances: usize) {
    event!(warn, "host.duplicated", {
        name, instances,
    }, "{instances} daemons call themselves {name}: nothing breaks, but reports can't tell them apart");
}

/// No new runs; those that run have so long.
pub fn daemon_draining(signal: &str, running: usize, drain: Option<Duration>) {
    let bound = drain.map_or_else(|| "as long as they take".to_owned(), human);
    event!(info, "daemon.draining", {
        signal, running, drain_ms = drain.map(ms),
    }, "{signal}: no new runs; {running} running have {bound}");
}

/// All is over.
pub fn daemon_stopped(left: usize) {
    event!(info, "daemon.stopped", { left, }, "stopped, {} left unfinished", counted(left, "run"));
}

/// What the daemon is at, asked for by a signal.
pub fn daemon_state(running: usize, queued: usize, live_hosts: usize, database: &str, offset_ms: Option<i64>) {
    event!(info, "daemon.state", {
        running, queued, live_hosts, database, clock_offset_ms = offset_ms,
    }, "{running} running, {} queued, {} live, database {database}", counted(queued, "job"), counted(live_hosts, "daemon"));
}

/// This host's wall clock differs from the database's by a second or more.
pub fn clock_skewed(offset_ms: i64) {
    event!(warn, "clock.skewed", {
        offset_ms,
    }, "this host's clock is off by {offset_ms} ms; triggers fire by the database's clock");
}

/// The database's clock jumped.
pub fn clock_stepped(off_ms: i64, hold_back: Duration) {
    event!(warn, "clock.stepped", {
        offset_ms = off_ms,
    }, "the database's clock jumped by {off_ms} ms; no lock is taken over for {}", human(hold_back));
}

/// The database doesn't answer.
pub fn database_lost(error: &str) {
    event!(error, "database.lost", {
        reason = error,
    }, "{error}; trying on: runs go on while their leases last, triggers are caught up later");
}

/// The database answers again.
pub fn database_recovered(away: Duration) {
    event!(info, "database.recovered", { away_ms = ms(away), }, "the database answers again after {}", human(away));
}

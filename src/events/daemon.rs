use std::time::Duration;

use super::{event, human, ms};
use crate::job::JobName;

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

/// Hosts have different versions of a job, or some have none.
pub fn schedule_disagreement(job: &str, hosts: &str) {
    event!(warn, "schedule.disagreement", { job, hosts, }, "hosts disagree about {job}: {hosts}");
}

/// No live host may run a job.
pub fn job_stranded(job: &JobName, asks: &str) {
    event!(warn, "job.stranded", {
        job = job.as_str(), asks,
    }, "no live host may run {job}: it asks for {asks}");
}

/// Some host may run a job again.
pub fn job_placed(job: &JobName) {
    event!(info, "job.placed", { job = job.as_str(), }, "a host is there again that may run {job}");
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

/// The second signal: what runs is killed.
pub fn daemon_hurried(signal: &str, running: usize) {
    event!(warn, "daemon.hurried", { signal, running, }, "{signal} again: {running} running are killed at once");
}

/// What was told to stop didn't in time: it is killed.
pub fn daemon_overstayed(running: usize, after: Duration) {
    event!(warn, "daemon.overstayed", {
        running, after_ms = ms(after),
    }, "{running} runs didn't end within {} after SIGTERM: they are killed", human(after));
}

/// This host takes no more runs, and there are some to take.
pub fn host_filled(max_running_jobs: u32) {
    event!(warn, "host.filled", {
        max_running_jobs,
    }, "{max_running_jobs} runs are under way, as many as `max_running_jobs` allows: the next ones wait");
}

/// It has had room for a while again.
pub fn host_freed(full: Duration) {
    event!(info, "host.freed", { full_ms = ms(full), }, "there is room for more runs again, after {}", human(full));
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

/// The database doesn't answer any more.
pub fn database_lost(error: &str) {
    event!(error, "database.lost", {
        reason = error,
    }, "{error}; trying on: runs go on while their leases last, triggers are caught up later");
}

/// The database has not answered since the start.
pub fn database_not_reached(error: &str) {
    event!(error, "database.not_reached", {
        reason = error,
    }, "waiting for the database: {error}; nothing runs before it can be used");
}

/// The database still doesn't answer: a reminder.
pub fn database_missed(error: &str, away: Duration, was_reached: bool) {
    let since = if was_reached { "has not answered" } else { "has been waited for" };
    event!(error, "database.missed", {
        reason = error, away_ms = ms(away),
    }, "the database {since} for {}: {error}; trying on", human(away));
}

/// The database answers again.
pub fn database_recovered(away: Duration) {
    event!(info, "database.recovered", { away_ms = ms(away), }, "the database answers again after {}", human(away));
}

/// The database answers for the first time, and it took some time.
pub fn database_reached(waited: Duration) {
    event!(info, "database.reached", { away_ms = ms(waited), }, "the database can be used after {}", human(waited));
}

/// The process that forks shims has died; it is started again. Jobs that run don't notice.
pub fn fork_server_died(how: &str, again_in: Duration) {
    event!(error, "fork_server.died", {
        reason = how, again_in_ms = ms(again_in),
    }, "the fork server died ({how}); it is started again in {}", human(again_in));
}

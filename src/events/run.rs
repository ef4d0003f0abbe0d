use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{at, event, human, ms};
use crate::lock::{FencingToken, Resource};
use crate::telemetry::OUTPUT;
use crate::trigger::{MissedReason, RunId, SkipReason, Trigger};

/// Which run an event is about.
#[derive(Clone, Copy, Debug)]
pub struct RunLabel<'a> {
    /// Its trigger.
    pub trigger: &'a Trigger,
    /// Its name.
    pub run: RunId,
    /// Which attempt.
    pub attempt: u32,
    /// Its lock.
    pub lock: &'a Resource,
    /// Its lock's token; `None` before it has one.
    pub token: Option<FencingToken>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct RunEnded<'a> {
    /// How long its process ran.
    pub duration: Duration,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why, where the code doesn't say.
    pub reason: Option<&'a str>,
}

impl RunEnded<'_> {
    fn how(&self) -> String {
        match (self.exit_code, self.signal, self.reason) {
            (_, _, Some(reason)) => reason.to_owned(),
            (Some(code), ..) => format!("exit code {code}"),
            (None, Some(signal), None) => format!("ended by signal {signal}"),
            (None, None, None) => "it never started".to_owned(),
        }
    }
}

/// What becomes of a run that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    /// It is run again, as this run.
    Rerun(RunId),
    /// That was all.
    NotRerun,
    /// The teller doesn't know: the tables decide.
    Undecided,
}

/// An event about a run, with the fields that all of them have.
macro_rules! run_event {
    ($level:ident $(target: $target:expr)?, $name:literal, $label:expr, { $($fields:tt)* }, $($sentence:tt)+) => {
        event!($level $(target: $target)?, $name, {
            job = $label.trigger.job.as_str(), run = %$label.run, scheduled_at = at($label.trigger.scheduled_at),
            attempt = $label.attempt, lock = $label.lock.as_str(), token = $label.token.map(FencingToken::get),
            $($fields)*
        }, $($sentence)+)
    };
}

/// Another host has this trigger: the normal case on all hosts but one.
pub fn run_claimed_elsewhere(trigger: &Trigger, other: RunId, by: Option<&str>) {
    event!(debug, "run.claimed_elsewhere", {
        job = trigger.job.as_str(), run = %other, scheduled_at = at(trigger.scheduled_at), holder_host = by,
    }, "{} is run by {}", trigger, by.unwrap_or("nobody yet"));
}

/// The process is there.
pub fn run_started(label: RunLabel<'_>, late: Option<Duration>, kind: &str, pid: i32) {
    run_event!(
        info, "run.started", label,
        { late_ms = late.map(ms), trigger = kind, pid, },
        "{} started", label.trigger.job
    );
}

fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// Its own process has ended, but others of its tree have not; they are told to end, for the lock is freed
/// only when none is left.
pub fn run_left_behind(label: RunLabel<'_>, names: &[String], count: usize) {
    run_event!(
        warn, "run.left_behind", label,
        { processes = count, names = names.join(" "), },
        "{} left {} running ({}), to be ended now", label.trigger.job, processes(count), names.join(", ")
    );
}

/// Processes of it were killed and don't die; its lock is renewed until they have.
pub fn run_unkillable(label: RunLabel<'_>, names: &[String], count: usize) {
    run_event!(
        error, "run.unkillable", label,
        { processes = count, names = names.join(" "), },
        "{} of {} ({}), killed, won't die; its lock is held until then",
        processes(count), label.trigger.job, names.join(", ")
    );
}

/// Its shim is gone without a word, and nobody can say when its last process is.
pub fn run_abandoned(label: RunLabel<'_>) {
    run_event!(
        error,
        "run.abandoned",
        label,
        {},
        "the shim of {} is gone: what is left of it is killed, and its lock runs out by itself",
        label.trigger.job
    );
}

/// Why a run's output was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputDropped {
    /// It came faster than the log takes it.
    LogIsBehind,
    /// The process that writes the job's files took nothing for a while.
    WriterIsStuck,
    /// The process that writes the job's files is not there.
    WriterIsGone,
}

impl OutputDropped {
    fn as_str(self) -> &'static str {
        match self {
            Self::LogIsBehind => "the log does not take it that fast",
            Self::WriterIsStuck => "its file takes nothing",
            Self::WriterIsGone => "the writer of its file is gone",
        }
    }
}

/// Whether lines of output are logged at all, with the level that is set.
pub fn run_output_is_wanted() -> bool {
    tracing::enabled!(target: OUTPUT, tracing::Level::INFO)
}

/// One line of output. `text` holds no control characters. The log drops it unless
/// [`output_has_room`](crate::telemetry::output_has_room).
pub fn run_output(label: RunLabel<'_>, stream: &'static str, text: &str, cut: bool) {
    let mark = if cut { " [cut: the line goes on]" } else { "" };
    run_event!(
        info target: OUTPUT, "run.output", label,
        { stream, line = text, cut, }, "{}: {}{mark}", label.trigger.job, text
    );
}

/// Lines of output, of `bytes` in all, went nowhere; at most once a second for a run.
pub fn run_output_dropped(label: RunLabel<'_>, count: u64, bytes: u64, why: OutputDropped) {
    let reason = why.as_str();
    run_event!(
        warn, "run.output_dropped", label, { count, bytes, reason, },
        "{}: {count} lines of output ({bytes} bytes) were dropped: {reason}", label.trigger.job
    );
}

/// Its output goes to a file, and not to the log.
pub fn run_output_to_file(label: RunLabel<'_>, path: &Path) {
    run_event!(
        info, "run.output_to_file", label, { path = %path.display(), },
        "{} writes to {}", label.trigger.job, path.display()
    );
}

/// Some or all of its output is not in its file.
pub fn run_output_unwritten(label: RunLabel<'_>, why: &str) {
    run_event!(warn, "run.output_unwritten", label, { reason = why, }, "output of {}: {why}", label.trigger.job);
}

/// It ended well.
pub fn run_succeeded(label: RunLabel<'_>, ended: &RunEnded<'_>) {
    run_event!(
        info, "run.succeeded", label,
        { duration_ms = ms(ended.duration), exit_code = ended.exit_code, },
        "{} succeeded after {}", label.trigger.job, human(ended.duration)
    );
}

/// It ended badly, or could not be started.
pub fn run_failed(label: RunLabel<'_>, ended: &RunEnded<'_>) {
    run_event!(
        error, "run.failed", label,
        {
            duration_ms = ms(ended.duration), exit_code = ended.exit_code, signal = ended.signal,
            reason = ended.reason,
        },
        "{} failed after {}: {}", label.trigger.job, human(ended.duration), ended.how()
    );
}

/// It took longer than its `timeout` and was stopped.
pub fn run_timed_out(label: RunLabel<'_>, ended: &RunEnded<'_>) {
    run_event!(
        error, "run.timed_out", label,
        {
            duration_ms = ms(ended.duration), exit_code = ended.exit_code, signal = ended.signal,
            reason = ended.reason,
        },
        "{} was stopped after {}: it took longer than its timeout", label.trigger.job, human(ended.duration)
    );
}

/// It was stopped on purpose.
pub fn run_cancelled(label: RunLabel<'_>, ended: &RunEnded<'_>) {
    run_event!(
        warn, "run.cancelled", label,
        {
            duration_ms = ms(ended.duration), exit_code = ended.exit_code, signal = ended.signal,
            reason = ended.reason,
        },
        "{} was stopped after {}: {}", label.trigger.job, human(ended.duration), ended.reason.unwrap_or("cancelled")
    );
}

/// Somebody wants it stopped, or a newer trigger of its job; it gets TERM, its grace and KILL.
pub fn run_stop_asked(run: RunId, reason: &str) {
    event!(info, "run.stop_asked", { run = %run, reason, }, "{run} is asked to stop: {reason}");
}

/// A failed run is tried again after a pause; this is the next attempt.
pub fn run_retrying(label: RunLabel<'_>, pause: Duration) {
    run_event!(
        warn, "run.retrying", label,
        { pause_ms = ms(pause), },
        "{} is tried again in {} (attempt {})", label.trigger.job, human(pause), label.attempt
    );
}

/// Its lease ended before it did, or its host died.
pub fn run_lost(label: RunLabel<'_>, on_host: &str, reason: &str, after: AfterLoss) {
    let (rerun, next) = match after {
        AfterLoss::Rerun(run) => (Some(run.to_string()), "it will be run again"),
        AfterLoss::NotRerun => (None, "it is not run again"),
        AfterLoss::Undecided => (None, "whether it is run again is decided by `on_crash` when its end is recorded"),
    };
    run_event!(
        error, "run.lost", label,
        { holder_host = on_host, reason, rerun, },
        "{} on {on_host} is lost ({reason}): how far it came is unknown; {next}", label.trigger
    );
}

/// It was held off and is over.
pub fn run_skipped(label: RunLabel<'_>, reason: SkipReason) {
    run_event!(warn, "run.skipped", label, { reason = reason.as_str(), }, "{} was skipped: {reason}", label.trigger);
}

/// Nobody could take it in time.
pub fn run_missed(label: RunLabel<'_>, reason: &str) {
    run_event!(warn, "run.missed", label, { reason, }, "{} was missed: {reason}", label.trigger);
}

/// A claim was given back before anything was started; any host may take it.
pub fn run_given_back(label: RunLabel<'_>, reason: &str) {
    run_event!(warn, "run.given_back", label, { reason, }, "{} was given back: {reason}", label.trigger);
}

/// The end of a run could not be written; recovery will count it as lost.
pub fn run_unrecorded(label: RunLabel<'_>, error: &str) {
    run_event!(error, "run.unrecorded", label, { reason = error, }, "the end of {} was not recorded: {error}", label.trigger);
}

/// Another end of it was recorded before this one.
pub fn run_second_result(label: RunLabel<'_>) {
    run_event!(
        warn,
        "run.second_result",
        label,
        {},
        "the end of {} was not recorded: it has another result already, or another host",
        label.trigger
    );
}

/// Triggers that are over without a row each.
pub fn triggers_missed(
    job: &crate::job::JobName,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    count: u64,
    reason: MissedReason,
) {
    event!(warn, "run.missed", {
        job = job.as_str(), from = at(from), to = at(to), count, reason = reason.as_str(),
    }, "{job} missed {count} triggers from {} to {}: {reason}", at(from), at(to));
}

/// Triggers that a pause or a blackout took: as somebody wanted.
pub fn triggers_left_out(
    job: &crate::job::JobName,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    count: u64,
    reason: MissedReason,
) {
    event!(info, "run.left_out", {
        job = job.as_str(), from = at(from), to = at(to), count, reason = reason.as_str(),
    }, "{job} left out {count} triggers from {} to {}: {reason}", at(from), at(to));
}

/// The success of one job has made another one due.
pub fn run_followed(label: RunLabel<'_>, follower: &crate::job::JobName, run: RunId) {
    run_event!(
        info, "run.followed", label,
        { follower = follower.as_str(), next = %run, },
        "{follower} follows {}", label.trigger
    );
}

/// A command has told how a job fares.
pub fn notice_sent(job: &crate::job::JobName, what: &str) {
    event!(info, "notice.sent", { job = job.as_str(), notice = what, }, "{what} of {job} has been run");
}

/// Nobody was told how a job fares, or not well.
pub fn notice_failed(job: &crate::job::JobName, why: &str) {
    event!(error, "notice.failed", { job = job.as_str(), reason = why, }, "a notice of {job} failed: {why}");
}

/// Notices were dropped because too many waited; it is over.
pub fn notices_dropped(count: u64) {
    event!(error, "notice.dropped", { count, }, "{count} notices were dropped: too many waited");
}

/// A monitoring service was not reached. What its address holds after the host is as good as a password.
pub fn ping_failed(job: &crate::job::JobName, service: &str, why: &str) {
    event!(warn, "ping.failed", {
        job = job.as_str(), service, reason = why,
    }, "{job} could not be told to {service}: {why}");
}

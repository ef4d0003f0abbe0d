use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{at, event, human, ms};
use crate::lock::{FencingToken, Resource};
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
    ($level:ident, $name:literal, $label:expr, { $($fields:tt)* }, $($sentence:tt)+) => {
        event!($level, $name, {
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
pub fn run_started(label: RunLabel<'_>, late: Option<Duration>, kind: &str) {
    run_event!(info, "run.started", label, { late_ms = late.map(ms), trigger = kind, }, "{} started", label.trigger.job);
}

/// One line of output. `text` holds no control characters.
pub fn run_output(label: RunLabel<'_>, stream: &'static str, text: &str, cut: bool) {
    run_event!(info, "run.output", label, { stream, line = text, cut, }, "{}: {}", label.trigger.job, text);
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

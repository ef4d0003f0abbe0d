use std::time::Duration;

use super::{RunLabel, at, event, human, ms};
use crate::lock::{FencingToken, PublicOwner, Resource};
use crate::trigger::RunId;

/// What stood in the way of a trigger.
#[derive(Clone, Copy, Debug)]
pub struct Contention<'a> {
    /// Who holds the lock.
    pub holder: &'a PublicOwner,
    /// Which run of the holder.
    pub holder_run: Option<RunId>,
    /// What is held: not always the trigger's own lock.
    pub held_lock: &'a Resource,
    /// Since how long.
    pub held: Duration,
    /// How long is left unless renewed.
    pub remaining: Duration,
    /// What became of the trigger.
    pub became: &'a str,
}

/// From whom a lock was taken over.
#[derive(Clone, Copy, Debug)]
pub struct Takeover<'a> {
    /// Who let it expire.
    pub holder: &'a PublicOwner,
    /// Its token.
    pub holder_token: FencingToken,
    /// How long it had the lock.
    pub held: Duration,
}

/// Which lease an event is about.
#[derive(Clone, Copy, Debug)]
pub struct LeaseLabel<'a> {
    /// What is locked.
    pub lock: &'a Resource,
    /// Whose.
    pub owner: &'a PublicOwner,
    /// Under which token.
    pub token: FencingToken,
}

/// A run has its lock.
pub fn lock_acquired(label: RunLabel<'_>, remaining: Duration) {
    event!(debug, "lock.acquired", {
        job = label.trigger.job.as_str(), run = %label.run, lock = label.lock.as_str(),
        token = label.token.map(FencingToken::get), remaining_ms = ms(remaining),
    }, "{} holds {}", label.trigger, label.lock);
}

/// A run has a lock whose holder never released it.
pub fn lock_taken_over(label: RunLabel<'_>, from: Takeover<'_>) {
    event!(warn, "lock.taken_over", {
        job = label.trigger.job.as_str(), run = %label.run, lock = label.lock.as_str(),
        token = label.token.map(FencingToken::get), holder = from.holder.as_str(), holder_host = from.holder.host(),
        holder_token = from.holder_token.get(), held_ms = ms(from.held),
    }, "{} takes {} over from {}, which let it expire", label.trigger, label.lock, from.holder);
}

/// The lock was still held when a trigger came.
pub fn lock_contended(label: RunLabel<'_>, by: Contention<'_>) {
    event!(warn, "lock.contended", {
        job = label.trigger.job.as_str(), run = %label.run, scheduled_at = at(label.trigger.scheduled_at),
        attempt = label.attempt, lock = by.held_lock.as_str(), holder = by.holder.as_str(),
        holder_host = by.holder.host(), holder_run = by.holder_run.map(|run| run.to_string()),
        held_ms = ms(by.held), remaining_ms = ms(by.remaining), became = by.became,
    }, "{} is held off: {} has held {} for {}, {} left unless renewed; {}",
        label.trigger, by.holder.host().unwrap_or(by.holder.as_str()), by.held_lock, human(by.held),
        human(by.remaining), by.became);
}

/// A renewal went well.
pub fn lock_renewed(lease: LeaseLabel<'_>, remaining: Duration) {
    event!(debug, "lock.renewed", {
        lock = lease.lock.as_str(), owner = lease.owner.as_str(), token = lease.token.get(),
        remaining_ms = ms(remaining),
    }, "{} renewed", lease.lock);
}

/// A lease could not be renewed when it was due; it is tried again until its deadline.
pub fn lock_renew_late(lease: LeaseLabel<'_>, remaining: Duration, reason: &str) {
    event!(warn, "lock.renew_late", {
        lock = lease.lock.as_str(), owner = lease.owner.as_str(), token = lease.token.get(),
        remaining_ms = ms(remaining), reason,
    }, "{} could not be renewed ({reason}); its job is stopped in {} unless it can", lease.lock, human(remaining));
}

/// A lease is gone for good.
pub fn lock_lost(lease: LeaseLabel<'_>, reason: &str) {
    event!(error, "lock.lost", {
        lock = lease.lock.as_str(), owner = lease.owner.as_str(), token = lease.token.get(), reason,
    }, "{} is lost: {reason}; its job is stopped", lease.lock);
}

/// A run's lock is free.
pub fn lock_released(label: RunLabel<'_>, held: Duration) {
    event!(debug, "lock.released", {
        job = label.trigger.job.as_str(), run = %label.run, lock = label.lock.as_str(),
        token = label.token.map(FencingToken::get), held_ms = ms(held),
    }, "{} is free after {}", label.lock, human(held));
}

/// A run ended after its lock, and nobody had noticed until then: another may have run beside it.
pub fn lock_outlived(label: RunLabel<'_>, found: &str) {
    event!(warn, "lock.outlived", {
        job = label.trigger.job.as_str(), run = %label.run, lock = label.lock.as_str(),
        token = label.token.map(FencingToken::get), reason = found,
    }, "{} ended after its lock {}: {found}", label.trigger, label.lock);
}

//! What is asked of, and answered to, a host that claims.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::locks::{Grant, Holder};
use crate::clock::Expected;
use crate::fleet::{HostName, InstanceId};
use crate::lock::{Owner, Resource, Ttl};
use crate::trigger::{RunId, RunState, SkipReason, Trigger, TriggerKind};

/// Who claims, and with what lock.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// The host's name, for people.
    pub host: HostName,
    /// Which start of the daemon.
    pub instance: InstanceId,
    /// The owner made for this run.
    pub owner: Owner,
    /// What to lock.
    pub resource: Resource,
    /// For how long unless renewed.
    pub ttl: Ttl,
    /// See [`Acquire::expected_now`](super::Acquire::expected_now).
    pub expected_now: Option<Expected>,
}

/// One host's claim to one trigger.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The run's name. Sent again with the same one, the claim is the same claim.
    pub run: RunId,
    /// What is claimed.
    pub trigger: Trigger,
    /// Which attempt; 1 is the first.
    pub attempt: u32,
    /// What made it.
    pub kind: TriggerKind,
    /// By whom.
    pub claimant: Claimant,
    /// What becomes of the trigger if the lock is held.
    pub when_held: WhenHeld,
    /// How long it may wait for a host when it is given back.
    pub start_deadline: Duration,
    /// How often it may be run again after a crash.
    pub reruns_left: u32,
}

/// What becomes of a trigger whose lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenHeld {
    /// It is skipped.
    Skip,
    /// It waits, this long at most.
    Wait(Duration),
    /// If the holder is a run of the same job and target, and of no later trigger, that is asked to stop,
    /// and the trigger waits, this long at most; what waited before it is over. Else it is skipped.
    Replace(Duration),
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The caller runs it. Also the answer when the same claim is sent again.
    Granted(Grant),
    /// Another host has claimed it, or it is over: the normal case on all hosts but one.
    AlreadyClaimed {
        /// Which run.
        run: RunId,
        /// Whose, if anybody's.
        host: Option<String>,
        /// Where it is in its life.
        state: RunState,
    },
    /// The lock is held by another run.
    Held {
        /// By whom; `None` when the same claim is sent again and the holder has gone since.
        holder: Option<Holder>,
        /// What became of the trigger.
        became: Became,
    },
    /// It is not yet time by the database's clock.
    TooEarly {
        /// By this much.
        by: Duration,
    },
    /// The job is paused.
    Paused,
    /// It lies before what the history still knows: it can't be claimed any more.
    Forgotten,
    /// Catch-up has accounted for it already: it was recorded as missed.
    Settled,
    /// The request was older than its caller waits for an answer when the database came to it:
    /// nothing was written.
    TooLate,
}

/// What became of a trigger that could not be run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// It is over.
    Skipped(SkipReason),
    /// Any eligible host may take it, until then.
    Waiting {
        /// By the database's clock.
        until: DateTime<Utc>,
    },
    /// The same, and the holder is asked to stop.
    Replacing {
        /// By the database's clock.
        until: DateTime<Utc>,
    },
}

/// The answer to an attempt to take a waiting run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The caller runs it.
    Granted(Grant),
    /// Its lock is still held; it goes on waiting.
    Held(Holder),
    /// The database's clock is not believed, the job is paused, an older late run of it waits, or its
    /// time has not come; it goes on waiting.
    NotNow,
    /// It waited to replace a run, and its lock is held by another one now that it doesn't replace: it is
    /// over.
    Skipped(SkipReason, Holder),
    /// It doesn't wait any more.
    Gone,
}

/// A run that waits for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRun {
    /// Which run.
    pub run: RunId,
    /// Of which trigger.
    pub trigger: Trigger,
    /// Which attempt.
    pub attempt: u32,
    /// What made it.
    pub kind: TriggerKind,
    /// Since when it waits.
    pub since: DateTime<Utc>,
    /// Until when it may.
    pub wait_until: DateTime<Utc>,
    /// How many attempts up to this one were retries.
    pub retries: u32,
}

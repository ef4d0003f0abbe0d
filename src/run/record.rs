//! What becomes of a run, written until it is written.

use std::time::Duration;

use super::assignment::Assignment;
use super::supervise::{Runner, Stop, Supervised};
use crate::clock::BootInstant;
use crate::events::{self, RunLabel};
use crate::store::{Ending, Finished, Follower, Grant, LockAtEnd, RunKey, StoreError};
use crate::trigger::{RunId, RunState};

/// The pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often it is tried while the daemon waits for nothing else.
const TRIES_WHEN_STOPPING: u32 = 5;

/// How long a database that answers, but refuses, is asked again: rights come back, too, but
/// whoever took them may have meant it.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// Why a claim is given back on a host that runs as many as it may.
const NO_ROOM: &str = "no_room";

/// What is written of a run when this host is done with it.
#[derive(Clone, Copy)]
enum Write<'a> {
    Finish(&'a Ending, &'a [Follower]),
    GiveBack(&'a str),
}

/// What was written.
struct Written {
    finished: Option<Finished>,
    /// Whether an earlier try may have been the one: its answer about the lock is not known then.
    again: bool,
}

/// What the failed tries so far allow.
struct Tries {
    pause: Duration,
    left_when_stopping: u32,
    refused_since: Option<BootInstant>,
    maybe_written: bool,
}

impl Runner {
    /// Gives back what this host was granted and has no room for.
    ///
    /// # Cancel safety
    /// Dropped, it may not have been written; recovery counts the run as lost then.
    pub async fn decline(&self, assignment: &Assignment, grant: &Grant) {
        let key = RunKey {
            run: assignment.run,
            owner: assignment.owner.clone(),
            resource: assignment.resource.clone(),
            token: grant.token,
        };
        self.give_back(assignment, &key, NO_ROOM).await;
    }

    /// Gives a claim back that nothing was started for.
    pub(super) async fn give_back(&self, assignment: &Assignment, key: &RunKey, reason: &str) -> Supervised {
        events::run_given_back(assignment.label(Some(key.token)), reason);
        if let Err(error) = self.persist(key, Write::GiveBack(reason)).await {
            events::run_unrecorded(assignment.label(Some(key.token)), &error);
        }
        Supervised::GivenBack
    }

    /// Writes a run's end, frees its lock and makes what follows it wait; says what was found.
    pub(super) async fn record_end(
        &self,
        assignment: &Assignment,
        key: &RunKey,
        ending: &Ending,
        held_since: BootInstant,
    ) {
        let label = assignment.label(Some(key.token));
        // Named now, for ids sort by time; once, for the end may be written twice.
        let named = assignment.followers.iter().map(|follower| Follower { run: RunId::generate(), ..follower.clone() });
        let followers: Vec<_> = named.collect();
        match self.persist(key, Write::Finish(ending, &followers)).await {
            Ok(written) => say_recorded(label, ending, &written, BootInstant::now().since(held_since)),
            Err(error) => events::run_unrecorded(label, &error),
        }
    }

    /// Tries to write something until it is written. A database that is away is waited for, unless
    /// the daemon stops: then there are few tries, and one if it is to be gone at once.
    async fn persist(&self, key: &RunKey, write: Write<'_>) -> Result<Written, String> {
        let mut stop = self.stop.clone();
        let mut tries = Tries::new();
        loop {
            let error = match self.write(key, write).await {
                Ok(finished) => return Ok(Written { finished, again: tries.maybe_written }),
                Err(error) => error,
            };
            let asked = *stop.borrow_and_update();
            if !tries.has_another(&error, asked) {
                return Err(error.to_string());
            }
            tokio::select! {
                () = tokio::time::sleep(tries.pause()) => {}
                _ = stop.wait_for(|stop| *stop == Stop::Kill) => {}
            }
        }
    }

    async fn write(&self, key: &RunKey, write: Write<'_>) -> Result<Option<Finished>, StoreError> {
        match write {
            Write::Finish(ending, followers) => self.store.finish(key, ending, followers).await.map(Some),
            Write::GiveBack(reason) => self.store.give_back(key, reason).await.map(|_| None),
        }
    }
}

impl Tries {
    fn new() -> Self {
        Self { pause: FIRST_PAUSE, left_when_stopping: TRIES_WHEN_STOPPING, refused_since: None, maybe_written: false }
    }

    /// Whether it is worth another try after this error.
    fn has_another(&mut self, error: &StoreError, asked: Stop) -> bool {
        self.maybe_written |= error.is_unknown();
        self.left_when_stopping -= u32::from(asked >= Stop::Terminate);
        let refused_for = match error {
            StoreError::Refused { .. } => {
                let now = BootInstant::now();
                now.since(*self.refused_since.get_or_insert(now))
            }
            _ => Duration::ZERO,
        };
        error.is_transient() && asked != Stop::Kill && self.left_when_stopping > 0 && refused_for < REFUSED_FOR
    }

    /// The pause before it.
    fn pause(&mut self) -> Duration {
        let pause = self.pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

fn say_recorded(label: RunLabel<'_>, ending: &Ending, written: &Written, held: Duration) {
    let Some(Finished { recorded, lock, followed }) = &written.finished else { return };
    for (follower, run) in followed {
        events::run_followed(label, follower, *run);
    }
    if !recorded {
        events::run_second_result(label);
    }
    match lock {
        LockAtEnd::Released => events::lock_released(label, held),
        // Said already, when the lease was lost.
        _ if ending.state == RunState::Lost => {}
        // The try before this one may have freed it.
        LockAtEnd::Gone if written.again => {}
        LockAtEnd::Expired => events::lock_outlived(label, "it had expired, but nobody had taken it"),
        LockAtEnd::Gone => events::lock_outlived(label, "it was not this run's any more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed_out() -> StoreError {
        StoreError::TimedOut { operation: "finish a run", after: Duration::from_secs(5) }
    }

    #[test]
    fn a_database_that_is_away_is_waited_for_unless_the_daemon_stops() {
        let mut tries = Tries::new();
        assert!((0..1_000).all(|_| tries.has_another(&timed_out(), Stop::Draining)));
        assert!(tries.maybe_written);
        let tries_left =
            (0..10).filter(|_| tries.left_when_stopping > 0 && tries.has_another(&timed_out(), Stop::Terminate));
        assert_eq!(tries_left.count(), 4);
        assert!(!Tries::new().has_another(&timed_out(), Stop::Kill));
    }

    #[test]
    fn a_row_that_no_version_writes_is_not_waited_for() {
        let malformed = StoreError::Malformed { operation: "finish a run", what: "odd".to_owned() };
        assert!(!Tries::new().has_another(&malformed, Stop::No));
    }
}

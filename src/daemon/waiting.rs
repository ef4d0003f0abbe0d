//! Runs that wait for a host: because their lock was held, they were given back, or they are to be
//! caught up or run again.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Shared;
use super::attend::say_held;
use crate::clock::BootInstant;
use crate::events::RunLabel;
use crate::job::Job;
use crate::run::{Assignment, Stop};
use crate::store::{Became, Claimant, Grant, Holder, StoreError, Taken, WaitingRun};
use crate::trigger::SkipReason;

/// How often the tables are asked. A run that ends here asks at once.
const INTERVAL: Duration = Duration::from_secs(1);

/// An attempt to take a run. Without an answer it may be this host's, so it keeps its permit and is
/// asked for again under the same owner until there is one.
struct Attempt {
    waiting: WaitingRun,
    job: Arc<Job>,
    claimant: Claimant,
    permit: OwnedSemaphorePermit,
    /// When it was first sent.
    begun: BootInstant,
}

/// What an attempt came to.
enum Attempted {
    /// It was granted: the run has the permit.
    Granted,
    /// It was not, or nothing can have been done; with the permit, which is still good for another run.
    Over(Result<(), StoreError>, OwnedSemaphorePermit),
    /// No answer.
    Unknown(Box<Attempt>, StoreError),
}

/// A place in the line for room: triggers that came later must not have it for ever.
#[derive(Default)]
struct Line {
    place: Option<Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Line {
    fn join(&mut self, room: Arc<Semaphore>) {
        self.place.get_or_insert_with(|| Box::pin(async { room.acquire_owned().await.ok() }));
    }

    /// Waits for the permit; for ever, if nobody stands in line.
    ///
    /// # Cancel safety
    /// Safe: the place is kept.
    async fn permit(&mut self) {
        match &mut self.place {
            Some(place) => {
                self.permit = place.await;
                self.place = None;
            }
            None => std::future::pending().await,
        }
    }
}

/// Takes waiting runs until the daemon stops and no attempt is without an answer. What only the
/// tables can say is not waited for longer than a lock would live.
///
/// # Cancel safety
/// Not to be dropped while the daemon goes on: a run may have been taken.
pub(super) async fn take_on(shared: Arc<Shared>) {
    let mut unanswered: Vec<Attempt> = Vec::new();
    let mut line = Line::default();
    let mut stop = shared.stop.subscribe();
    loop {
        let asked = *stop.borrow_and_update();
        if asked != Stop::No {
            unanswered.retain(|attempt| BootInstant::now().since(attempt.begun) < attempt.claimant.ttl.get());
        }
        if asked >= Stop::Terminate || asked != Stop::No && unanswered.is_empty() {
            return;
        }
        match look(&shared, &mut unanswered, &mut line).await {
            Ok(()) => shared.health.answered(),
            Err(error) => shared.health.failed(&error),
        }
        // A permit that nothing could use is for others.
        line.permit = None;
        tokio::select! {
            () = line.permit() => {}
            () = tokio::time::sleep(INTERVAL) => {}
            () = shared.look_for_waiting.notified() => {}
            _ = stop.changed() => {}
        }
    }
}

/// First asks again for what is without an answer, listed or not: once it is this host's, it waits
/// no more. Then tries whatever waits.
async fn look(shared: &Arc<Shared>, unanswered: &mut Vec<Attempt>, line: &mut Line) -> Result<(), StoreError> {
    let mut outcome = Ok(());
    for attempt in std::mem::take(unanswered) {
        match attempt.make(shared).await {
            Attempted::Granted | Attempted::Over(Ok(()), _) => {}
            Attempted::Over(Err(error), _) => outcome = Err(error),
            Attempted::Unknown(attempt, error) => {
                unanswered.push(*attempt);
                outcome = Err(error);
            }
        }
    }
    outcome?;
    if shared.is_stopping() || !shared.runner.exhaustion.remaining().is_zero() {
        return Ok(());
    }
    try_all(shared, unanswered, line, shared.store.waiting(&shared.site.host).await?).await
}

/// An error of one run is no reason to leave the others, but a second one speaks of the database.
async fn try_all(
    shared: &Arc<Shared>,
    unanswered: &mut Vec<Attempt>,
    line: &mut Line,
    all_waiting: Vec<WaitingRun>,
) -> Result<(), StoreError> {
    let mut outcome = Ok(());
    for waiting in all_waiting {
        if shared.is_stopping() {
            break;
        }
        let Some(attempt) = new_attempt(shared, line, waiting) else { continue };
        let (unknown, error) = match attempt.make(shared).await {
            Attempted::Granted => continue,
            Attempted::Over(answer, permit) => {
                // A run that can't be taken now must not cost those after it their place in line.
                line.permit = Some(permit);
                match answer {
                    Ok(()) | Err(StoreError::Busy { .. }) => continue,
                    Err(error) => (None, error),
                }
            }
            Attempted::Unknown(attempt, error) => (Some(*attempt), error),
        };
        unanswered.extend(unknown);
        let is_second = outcome.is_err();
        outcome = Err(error);
        if is_second {
            break;
        }
    }
    outcome
}

/// An attempt, if this host may run the job and has room, and the run's time is not over.
fn new_attempt(shared: &Shared, line: &mut Line, waiting: WaitingRun) -> Option<Attempt> {
    if waiting.wait_until <= shared.clock.now() {
        // Open, it would hold the next trigger of its job off.
        shared.look_for_lost.notify_one();
        return None;
    }
    let job = shared.plan().get(&waiting.trigger.job).filter(|job| shared.site.may_run(job)).cloned()?;
    let Some(permit) = line.permit.take().or_else(|| shared.room.clone().try_acquire_owned().ok()) else {
        // Another host may have room, or this one when it is our turn.
        shared.crowd.is_full(shared.options.max_running_jobs);
        line.join(shared.room.clone());
        return None;
    };
    let claimant = shared.claimant(&job);
    Some(Attempt { waiting, job, claimant, permit, begun: BootInstant::now() })
}

impl Attempt {
    async fn make(mut self, shared: &Arc<Shared>) -> Attempted {
        self.claimant.expected_now = shared.clock.expected();
        match shared.store.take(self.waiting.run, &self.claimant).await {
            Ok(Taken::Granted(grant)) => {
                self.run(shared, grant);
                Attempted::Granted
            }
            Ok(Taken::Skipped(reason, holder)) => {
                self.say_skipped(reason, &holder);
                Attempted::Over(Ok(()), self.permit)
            }
            Ok(Taken::Held(_) | Taken::NotNow | Taken::Gone) => Attempted::Over(Ok(()), self.permit),
            Err(error) if error.is_unknown() => Attempted::Unknown(Box::new(self), error),
            Err(error) => Attempted::Over(Err(error), self.permit),
        }
    }

    /// It waited to replace a run, and another has its lock now.
    fn say_skipped(&self, reason: SkipReason, holder: &Holder) {
        let label = RunLabel {
            trigger: &self.waiting.trigger,
            run: self.waiting.run,
            attempt: self.waiting.attempt,
            lock: &self.claimant.resource,
            token: None,
        };
        say_held(label, Some(holder), Became::Skipped(reason));
    }

    fn run(self, shared: &Arc<Shared>, grant: Grant) {
        let followers = shared.plan().followers(&self.job, &shared.site);
        let assignment = Arc::new(Assignment {
            run: self.waiting.run,
            job: self.job,
            trigger: self.waiting.trigger,
            attempt: self.waiting.attempt,
            kind: self.waiting.kind,
            owner: self.claimant.owner,
            resource: self.claimant.resource,
            retries: self.waiting.retries,
            followers,
        });
        let permit = self.permit;
        let shared = shared.clone();
        shared.tasks.clone().spawn(async move { shared.run(assignment, grant, permit).await });
    }
}

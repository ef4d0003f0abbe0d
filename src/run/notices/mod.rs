//! Who is told how jobs fare: commands after failures and recoveries, pings of monitoring services.
//!
//! All of it happens beside the runs: nothing here holds a lock, delays a run or is waited for longer than a
//! moment when the daemon stops. A streak of failures is counted over the fleet, in the shared history, so that it
//! doesn't matter which host had which run.
//!
//! ```text
//!   failure, failure, ... (failures_before_notice in a row) -> on_failure, once a streak
//!   success after a streak that was told                    -> on_recovery
//! ```
//! Failed, lost and missed runs are failures; skipped and cancelled ones count neither way, and of the attempts at
//! one trigger the last one counts.

mod command;
mod decision;
mod ping;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use crate::events;
use crate::fleet::HostName;
use crate::job::Job;
use crate::lock::{FencingToken, Resource};
use crate::shim::Spawner;
use crate::store::{OutcomeQuery, SharedStore, StoreError, TriggerOutcome};
use crate::trigger::{MissedReason, RunId, RunState, Target, Trigger, TriggerKind};
use decision::{Verdict, decide};
pub(super) use ping::{Pings, RunPings, Signal};

/// How many notices may wait; what comes beyond is dropped and counted.
const QUEUE: usize = 1_000;

/// How many commands run at once.
const AT_ONCE: usize = 8;

/// How often the history is asked for while the database is away, and the pause between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(2);

/// Something that may be worth a notice.
#[derive(Clone, Debug)]
pub enum Occasion {
    /// A run is over, and the history has it.
    Ended(Box<EndedRun>),
    /// Triggers are over without a row each, and the history has them.
    Missed {
        /// The first.
        from: DateTime<Utc>,
        /// The last.
        to: DateTime<Utc>,
        /// How many, at least.
        count: u64,
        /// Why.
        reason: MissedReason,
    },
}

/// What is told of a run that is over.
#[derive(Clone, Debug)]
pub struct EndedRun {
    /// Which run.
    pub run: RunId,
    /// Of which trigger.
    pub trigger: Trigger,
    /// Which attempt.
    pub attempt: u32,
    /// What made it; `None` where whoever found it doesn't know.
    pub kind: Option<TriggerKind>,
    /// What it came to.
    pub state: RunState,
    /// Why, where the state alone doesn't say.
    pub reason: Option<String>,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whose it was.
    pub host: Option<String>,
    /// What it locked.
    pub resource: Resource,
    /// Its lock's token.
    pub token: Option<FencingToken>,
    /// When its process was started.
    pub started_at: Option<DateTime<Utc>>,
    /// When it was over.
    pub finished_at: Option<DateTime<Utc>>,
    /// The last lines of its output.
    pub output_tail: Option<String>,
}

/// An occasion that waits.
#[derive(Debug)]
struct Queued {
    job: Arc<Job>,
    target: Target,
    occasion: Occasion,
}

/// The way to those who tell. Dropped, what is under way is told no more.
#[derive(Debug)]
pub struct Notifier {
    /// `None` once it is to finish.
    queue: Mutex<Option<mpsc::Sender<Queued>>>,
    /// How many were dropped since the last that was not.
    dropped: AtomicU64,
    task: JoinHandle<()>,
    /// Closed by the task when it ends.
    told: watch::Receiver<()>,
    pub(super) pings: Pings,
}

/// What telling takes.
#[derive(Clone, Debug)]
struct Teller {
    host: HostName,
    store: SharedStore,
    spawner: Arc<Spawner>,
}

impl Notifier {
    /// Starts the task that tells.
    #[expect(clippy::disallowed_methods, reason = "its handle is kept and aborts it on drop")]
    pub fn start(host: HostName, store: SharedStore, spawner: Arc<Spawner>) -> Self {
        let (queue, inbox) = mpsc::channel(QUEUE);
        let (telling, told) = watch::channel(());
        let teller = Teller { host, store, spawner };
        let task = tokio::spawn(async move {
            tell_on(teller, inbox).await;
            drop(telling);
        });
        Self { queue: Mutex::new(Some(queue)), dropped: AtomicU64::new(0), task, told, pings: Pings::new() }
    }

    /// Takes an occasion in, if the job has commands for any.
    pub fn take(&self, job: &Arc<Job>, target: &Target, occasion: Occasion) {
        let has_commands =
            job.notices.as_ref().is_some_and(|notices| notices.on_failure.is_some() || notices.on_recovery.is_some());
        if !has_commands {
            return;
        }
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let queued = Queued { job: job.clone(), target: target.clone(), occasion };
        if queue.as_ref().is_some_and(|queue| queue.try_send(queued).is_ok()) {
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                events::notices_dropped(dropped);
            }
        } else if self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
            events::notice_failed(&job.name, "too many notices wait, or the daemon is ending");
        }
    }

    /// As [`Self::take`], for a failure that this host has found and not made: monitoring services hear of it
    /// from nobody else.
    pub fn take_found(&self, job: &Arc<Job>, target: &Target, occasion: Occasion) {
        if let Some(url) = job.notices.as_ref().and_then(|notices| notices.ping_url.as_ref()) {
            let what = match &occasion {
                Occasion::Ended(ended) => ended.reason.clone().unwrap_or_else(|| ended.state.to_string()),
                Occasion::Missed { count, reason, .. } => format!("missed {count}: {reason}"),
            };
            self.pings.end(None, &job.name, url, Signal::Failure, &what);
        }
        self.take(job, target, occasion);
    }

    /// Waits until everything is told that was taken in before, and takes nothing in any more; for a daemon that ends.
    ///
    /// # Cancel safety
    /// Safe: what was not told by then is told no more.
    pub async fn finish(&self) {
        // Without it the task ends by itself.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut told = self.told.clone();
        while told.changed().await.is_ok() {}
        self.pings.finish().await;
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Tells until nobody can ask any more, and all is told. Notices may overtake one another.
async fn tell_on(teller: Teller, mut inbox: mpsc::Receiver<Queued>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut telling = tokio::task::JoinSet::new();
    while let Some(Queued { job, target, occasion }) = inbox.recv().await {
        while telling.try_join_next().is_some() {}
        // The semaphore is never closed.
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let teller = teller.clone();
        telling.spawn(async move {
            match teller.judge(&job, &target, occasion).await {
                Ok(Some(verdict)) => command::tell(&teller.spawner, &teller.host, &job, &verdict).await,
                Ok(None) => {}
                Err(error) => events::notice_failed(&job.name, &format!("the history can't be read: {error}")),
            }
            drop(permit);
        });
    }
    while telling.join_next().await.is_some() {}
}

impl Teller {
    async fn judge(&self, job: &Job, target: &Target, occasion: Occasion) -> Result<Option<Verdict>, StoreError> {
        let Some(notices) = &job.notices else { return Ok(None) };
        let through = match &occasion {
            Occasion::Ended(ended) => ended.trigger.scheduled_at,
            Occasion::Missed { to, .. } => *to,
        };
        let query = OutcomeQuery {
            job: job.name.clone(),
            target: target.clone(),
            through,
            // A few at the same instant, by request, are among them.
            limit: notices.failures_before_notice.saturating_add(10),
        };
        let outcomes = self.outcomes(&query).await?;
        Ok(decide(&outcomes, occasion, notices.failures_before_notice))
    }

    async fn outcomes(&self, query: &OutcomeQuery) -> Result<Vec<TriggerOutcome>, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.store.outcomes(query).await {
                Err(error) if tries < TRIES && error.is_transient() => tokio::time::sleep(PAUSE).await,
                answer => return answer,
            }
        }
    }
}

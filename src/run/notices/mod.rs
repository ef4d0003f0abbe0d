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

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use crate::events;
use crate::fleet::HostName;
use crate::job::Job;
use crate::shim::Spawner;
use crate::store::{RunFilter, RunRow, SharedStore, StoreError};
use crate::trigger::{MissedReason, RunId, RunState, Target};
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
#[derive(Debug)]
pub enum Occasion {
    /// A run is over; the history has it.
    Ended(RunId),
    /// Triggers are over without a row each.
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
        Self { queue: Mutex::new(Some(queue)), task, told, pings: Pings::new() }
    }

    /// Takes an occasion in, if the job tells anybody at all.
    pub fn take(&self, job: &Arc<Job>, target: &Target, occasion: Occasion) {
        let tells = |job: &Job| {
            job.notices.as_ref().is_some_and(|notices| notices.on_failure.is_some() || notices.on_recovery.is_some())
        };
        if !tells(job) {
            return;
        }
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let queued = Queued { job: job.clone(), target: target.clone(), occasion };
        let taken = queue.as_ref().is_some_and(|queue| queue.try_send(queued).is_ok());
        if !taken {
            events::notice_failed(&job.name, "too many notices wait, or the daemon is ending");
        }
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

/// Tells until nobody can ask any more, and all is told. Of one job in the order in which it came about, as far
/// as decisions go; its commands may overtake one another.
async fn tell_on(teller: Teller, mut inbox: mpsc::Receiver<Queued>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut telling = tokio::task::JoinSet::new();
    while let Some(Queued { job, target, occasion }) = inbox.recv().await {
        while telling.try_join_next().is_some() {}
        let verdict = match teller.judge(&job, &target, occasion).await {
            Ok(Some(verdict)) => verdict,
            Ok(None) => continue,
            Err(error) => {
                events::notice_failed(&job.name, &format!("the history can't be read: {error}"));
                continue;
            }
        };
        // The semaphore is never closed.
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let teller = teller.clone();
        telling.spawn(async move {
            command::tell(&teller.spawner, &teller.host, &job, &verdict).await;
            drop(permit);
        });
    }
    while telling.join_next().await.is_some() {}
}

impl Teller {
    async fn judge(&self, job: &Job, target: &Target, occasion: Occasion) -> Result<Option<Verdict>, StoreError> {
        let Some(notices) = &job.notices else { return Ok(None) };
        match occasion {
            Occasion::Missed { from, to, count, reason } => Ok((count >= u64::from(notices.failures_before_notice))
                .then_some(Verdict::Missed { from, to, count, reason })),
            Occasion::Ended(run) => {
                let rows = self.history(job, notices.failures_before_notice).await?;
                let rows: Vec<RunRow> = rows.into_iter().filter(|row| row.target == *target).collect();
                Ok(decide(rows, run, notices.failures_before_notice))
            }
        }
    }

    /// The newest runs of a job: so many that a streak and what came before it are among them, whatever was skipped
    /// in between.
    async fn history(&self, job: &Job, failures: u32) -> Result<Vec<RunRow>, StoreError> {
        let limit = failures.saturating_add(1).saturating_mul(10).clamp(50, 1_000);
        let filter = RunFilter { job: Some(job.name.clone()), state: None, since: None, before: None, limit };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.store.history(&filter).await {
                Err(error) if tries < TRIES && error.is_transient() => tokio::time::sleep(PAUSE).await,
                answer => return answer,
            }
        }
    }
}

/// Whether a run in this state has ended badly.
fn is_failure(state: RunState) -> bool {
    matches!(state, RunState::Failed | RunState::Lost | RunState::Missed)
}

//! Floor 6: the daemon: ticks, claims, reloads, drains.
//!
//! Tasks, and what they share in `Shared`:
//!
//! | task | does |
//! |---|---|
//! | `tick` | hands each trigger out when its time comes by the database's clock (`ticker` decides, `queue` keeps) |
//! | `attend` | one task a trigger: rank, look, claim (`pursuit`), run |
//! | `waiting` | takes runs that wait for a host |
//! | `recovery` | finds runs whose host is gone |
//! | `beat` | says that this daemon lives, hears who else does, reads the clock |
//! | `catch_up` | settles triggers that nobody took |
//! | `requests` | stops runs that somebody wants stopped |
//! | `pruning` | forgets what is older than it is kept |
//! | `stopping` | obeys the orders, drains |
//!
//! A database that is away is weather: every task goes on trying, `health` says so once, and
//! what was passed over is settled when it answers again.

mod attend;
mod beat;
mod catch_up;
mod claims;
mod crowd;
mod health;
mod plan;
mod pruning;
mod pursuit;
mod queue;
mod recovery;
mod requests;
mod site;
mod stopping;
#[cfg(test)]
mod test_job;
mod tick;
mod ticker;
mod under_way;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub use plan::Plan;

use crate::clock::DatabaseClock;
use crate::events;
use crate::fleet::{HostName, InstanceId, Label};
use crate::lease::Keeper;
use crate::run::{Exhaustion, Notifier, Runner, Stop, Stops};
use crate::shim::{Executable, Spawner};
use crate::store::{SharedStore, StoreError};
use beat::Heard;
use catch_up::Unsettled;
use claims::ClaimGates;
use crowd::Crowd;
use health::Health;
use site::{Peer, Site};
use under_way::UnderWay;

/// The longest pause between attempts to reach a database at the start.
const LONGEST_START_PAUSE: Duration = Duration::from_secs(5);

/// How this daemon works.
#[derive(Clone, Debug)]
pub struct Options {
    /// This host's name.
    pub host: HostName,
    /// This host's labels.
    pub labels: BTreeSet<Label>,
    /// How many runs may be under way here at once.
    pub max_running_jobs: u32,
    /// How long runs may go on after the first signal; `None` for as long as they take.
    pub drain: Option<Duration>,
    /// The time between two beats.
    pub heartbeat: Duration,
    /// How long the history is kept.
    pub keep: Duration,
    /// How many runs of a job are kept.
    pub keep_runs: u32,
    /// Whether the tables are brought to this version at the start.
    pub migrate: bool,
    /// The database, fit to be shown.
    pub database: String,
}

/// What somebody asked a running daemon for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stop: drain at the first time, be gone at the second.
    Stop(&'static str),
    /// Say in the log what you are at.
    State,
}

/// Why a daemon ended that was not told to.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The tables can never be used by this binary.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What every job needs can't be had or is gone: the fork server, or the heartbeat.
    #[error("no job can be run: {0}")]
    Spawner(std::io::Error),
}

/// What the tasks share.
#[derive(Debug)]
struct Shared {
    /// This host.
    site: Site,
    instance: InstanceId,
    options: Options,
    store: SharedStore,
    clock: Arc<DatabaseClock>,
    runner: Runner,
    health: Health,
    gates: ClaimGates,
    unsettled: Unsettled,
    /// Written by reloads; read by all.
    plan: watch::Sender<Arc<Plan>>,
    /// The plan that the tables know of. Written when it is registered; read by catch-up, which would
    /// take an edited job for one that was neglected.
    registered: watch::Sender<Arc<Plan>>,
    /// Written by `beat`; read where ranks are computed.
    live: watch::Sender<Vec<Peer>>,
    /// Written by `tick`; read for the state in the log.
    queued: watch::Sender<usize>,
    /// Written by the orders; read by all.
    stop: watch::Sender<Stop>,
    /// A permit for each run.
    room: Arc<Semaphore>,
    /// Written by whoever finds no room; read by `beat`.
    crowd: Crowd,
    under_way: UnderWay,
    /// Written by each run; read where a drain ends.
    longest_grace: watch::Sender<Duration>,
    /// Notified when a run may have become free to take.
    look_for_waiting: Notify,
    /// Notified when the time of a waiting run is over.
    look_for_lost: Notify,
    /// Claims and runs.
    tasks: TaskTracker,
}

/// A daemon that was set up, and has not begun.
#[derive(Debug)]
pub struct Daemon {
    shared: Arc<Shared>,
    /// Outlives every run: it renews until the last tree is reaped.
    keeper: Keeper,
}

impl Daemon {
    /// Sets a daemon up, inside a runtime. Nothing is asked of the database yet. `executable` is what fork
    /// servers are made of.
    ///
    /// # Errors
    /// [`DaemonError::Spawner`].
    pub fn new(
        options: Options,
        store: SharedStore,
        plan: Arc<Plan>,
        executable: Executable,
    ) -> Result<Self, DaemonError> {
        let instance = InstanceId::generate();
        events::identify(&options.host, instance);
        let keeper = Keeper::start(store.clone());
        let clock = Arc::new(DatabaseClock::new());
        let stop = watch::Sender::new(Stop::No);
        let spawner = Arc::new(Spawner::start(executable).map_err(DaemonError::Spawner)?);
        let runner = Runner {
            host: options.host.clone(),
            instance,
            store: store.clone(),
            keeper: keeper.handle(),
            notices: Notifier::start(options.host.clone(), store.clone(), spawner.clone()),
            spawner,
            exhaustion: Exhaustion::default(),
            stops: Stops::default(),
            clock: clock.clone(),
            stop: stop.subscribe(),
        };
        let shared = Shared {
            site: Site { host: options.host.clone(), labels: options.labels.clone() },
            instance,
            room: Arc::new(Semaphore::new(usize::try_from(options.max_running_jobs.max(1)).unwrap_or(1))),
            options,
            store,
            clock,
            runner,
            health: Health::new(),
            gates: ClaimGates::default(),
            unsettled: Unsettled::default(),
            plan: watch::Sender::new(plan.clone()),
            registered: watch::Sender::new(plan),
            live: watch::Sender::new(Vec::new()),
            queued: watch::Sender::new(0),
            stop,
            crowd: Crowd::default(),
            under_way: UnderWay::default(),
            longest_grace: watch::Sender::default(),
            look_for_waiting: Notify::new(),
            look_for_lost: Notify::new(),
            tasks: TaskTracker::new(),
        };
        Ok(Self { shared: Arc::new(shared), keeper })
    }

    /// Works until it is told to stop and all runs have ended, or can't be waited for any longer.
    ///
    /// `orders` and `plans` come from the signals: an order to stop, a schedule that was read again.
    ///
    /// # Errors
    /// [`DaemonError::Store`] only when the tables can never be used, [`DaemonError::Spawner`] when
    /// what every job needs is gone, which is a bug.
    ///
    /// # Cancel safety
    /// Dropped, all jobs are killed and their leases run out.
    pub async fn run(
        mut self,
        mut orders: tokio::sync::mpsc::Receiver<Order>,
        mut plans: tokio::sync::mpsc::Receiver<Arc<Plan>>,
    ) -> Result<(), DaemonError> {
        let shared = self.shared.clone();
        let mut said = beat::Said::default();
        let heard = tokio::select! {
            heard = shared.begin(&mut said) => heard?,
            never = shared.health.remind_on() => match never {},
            () = shared.obey_until_stop(&mut orders) => {
                events::daemon_stopped(0);
                return Ok(());
            }
        };
        let from = shared.clock.now();
        shared.unsettled.add(shared.plan().jobs().map(|job| job.name.clone()));
        shared.tasks.spawn(waiting::take_on(shared.clone()));
        let (gone_by, outcome) = tokio::select! {
            gone_by = shared.work(&mut said, &mut plans, &mut orders, from, heard) => (gone_by, Ok(())),
            what = self.broken() => (shared.give_up().await, Err(DaemonError::Spawner(std::io::Error::other(what)))),
        };
        if let Err(error) = tokio::time::timeout_at(gone_by, shared.store.leave(shared.instance)).await {
            tracing::debug!("did not say goodbye: {error}");
        }
        shared.tell_the_last(&mut orders, gone_by).await;
        events::daemon_stopped(shared.running());
        drop(self.keeper);
        outcome
    }

    /// Waits until something is gone that every job needs: a panic, and so a bug. Without it jobs
    /// would be claimed only to be killed.
    async fn broken(&mut self) -> &'static str {
        tokio::select! {
            () = self.keeper.gone() => "the heartbeat is gone, which is a bug",
            () = self.shared.runner.spawner.gone() => "the task that starts fork servers is gone, which is a bug",
        }
    }
}

impl Shared {
    /// All tasks, until the daemon has stopped. Gives the instant by which it is to be gone.
    async fn work(
        self: &Arc<Self>,
        said: &mut beat::Said,
        plans: &mut tokio::sync::mpsc::Receiver<Arc<Plan>>,
        orders: &mut tokio::sync::mpsc::Receiver<Order>,
        from: DateTime<Utc>,
        heard: Heard,
    ) -> Instant {
        let until_stopped = async {
            tokio::join!(tick::tick_on(self, from), self.obey_until_stop(orders));
            self.drain(orders).await
        };
        let for_ever = async {
            tokio::join!(
                beat::beat_on(self, said),
                recovery::recover_on(self, self.options.heartbeat),
                catch_up::sweep_on(self, heard),
                requests::heed_on(self),
                pruning::prune_on(self),
                self.reload_on(plans),
                self.health.remind_on(),
            );
            std::future::pending().await
        };
        tokio::select! {
            gone_by = until_stopped => gone_by,
            gone_by = for_ever => gone_by,
        }
    }

    fn plan(&self) -> Arc<Plan> {
        self.plan.borrow().clone()
    }

    /// Who lives and takes runs, this daemon always included.
    fn live(&self) -> Vec<Peer> {
        let mut live = self.live.borrow().clone();
        if !live.iter().any(|peer| peer.instance == self.instance) {
            live.push(Peer { instance: self.instance, site: self.site.clone() });
        }
        live
    }

    /// Whether of all live daemons this one has the smallest id: it does what one of them is to do. If
    /// two believe so for a moment, both do, which must do no harm.
    fn is_first(&self) -> bool {
        self.live().iter().map(|peer| peer.instance).min() == Some(self.instance)
    }

    /// Reaches the database, brings the tables to this version, and makes this daemon and its jobs
    /// known. Tries until it can.
    async fn begin(&self, said: &mut beat::Said) -> Result<Heard, StoreError> {
        let mut pause = Duration::from_millis(100);
        let heard = loop {
            match self.try_to_begin(said).await {
                Ok(heard) => break heard,
                Err(error) if error.is_transient() => self.health.failed(&error),
                Err(error) => return Err(error),
            }
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(LONGEST_START_PAUSE);
        };
        let plan = self.plan();
        events::daemon_started(env!("CARGO_PKG_VERSION"), plan.len(), &self.options.database, &plan.digest);
        Ok(heard)
    }

    async fn try_to_begin(&self, said: &mut beat::Said) -> Result<Heard, StoreError> {
        if self.options.migrate {
            self.store.migrate().await?;
        }
        self.store.check_schema().await?;
        let plan = self.plan();
        self.store.register(self.instance, &plan.seen(&self.site, &plan)).await?;
        beat::beat(self, said).await
    }

    /// Takes new plans on until it is dropped.
    async fn reload_on(&self, plans: &mut tokio::sync::mpsc::Receiver<Arc<Plan>>) {
        while let Some(plan) = plans.recv().await {
            events::daemon_reloaded(plan.len(), &plan.digest);
            let before = self.plan.send_replace(plan.clone());
            let seen = plan.seen(&self.site, &before);
            let mut pause = Duration::from_millis(100);
            while let Err(error) = self.store.register(self.instance, &seen).await {
                self.health.failed(&error);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_START_PAUSE);
            }
            self.registered.send_replace(plan.clone());
            // What was about to be claimed when the job was edited has to be accounted for.
            self.unsettled.add(plan.edited(&before));
        }
        std::future::pending().await
    }

    /// How many runs are under way here.
    fn running(&self) -> usize {
        let room = usize::try_from(self.options.max_running_jobs.max(1)).unwrap_or(1);
        room.saturating_sub(self.room.available_permits())
    }
}

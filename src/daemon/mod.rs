//! Floor 6: the daemon: ticks, claims, reloads, drains.
//!
//! Tasks, and what they share in `Shared`:
//!
//! | task | does |
//! |---|---|
//! | `tick` | hands each trigger out when its instant comes by the database's clock |
//! | `attend` | one task a trigger: rank, look, claim, run |
//! | `waiting` | takes runs that wait for a host |
//! | `recovery` | finds runs whose host is gone |
//! | `beat` | says that this daemon lives, hears who else does, reads the clock |
//! | `catch_up` | settles triggers that nobody took |
//! | `pruning` | forgets what is older than it is kept |
//!
//! A database that is away is weather: every task goes on trying, `health` says so once, and
//! what was passed over is settled when it answers again.

mod attend;
mod beat;
mod catch_up;
mod claims;
mod health;
mod plan;
mod pruning;
mod queue;
mod recovery;
mod tick;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub use plan::Plan;

use crate::clock::DatabaseClock;
use crate::events;
use crate::fleet::{HostName, InstanceId};
use crate::lease::Keeper;
use crate::run::{Exhaustion, Runner, Stop};
use crate::shim::{Spawner, User};
use crate::store::{SharedStore, StoreError};
use catch_up::Unsettled;
use claims::ClaimGates;
use health::Health;

/// The longest pause between attempts to reach a database at the start.
const LONGEST_START_PAUSE: Duration = Duration::from_secs(5);

/// How long the daemon waits, after the last signal, for what can't be stopped any faster, its
/// goodbye included.
const LAST_WAIT: Duration = Duration::from_millis(1_500);

/// How this daemon works.
#[derive(Clone, Debug)]
pub struct Options {
    /// This host's name.
    pub host: HostName,
    /// This host's labels.
    pub labels: Vec<String>,
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
    /// Who jobs run as.
    pub user: User,
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
    /// The system gives not even a thread.
    #[error("can't start the thread that starts jobs: {0}")]
    Spawner(std::io::Error),
}

/// What the tasks share.
#[derive(Debug)]
struct Shared {
    host: HostName,
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
    /// Written by `beat`; read where ranks are computed.
    live: watch::Sender<Vec<InstanceId>>,
    /// Written by `tick`; read for the state in the log.
    queued: watch::Sender<usize>,
    /// Written by the orders; read by all.
    stop: watch::Sender<Stop>,
    /// A permit for each run.
    room: Arc<Semaphore>,
    /// Notified when a run may have become free to take.
    look_for_waiting: Notify,
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
    /// Sets a daemon up. Nothing is asked of the database yet.
    ///
    /// # Errors
    /// [`DaemonError::Spawner`].
    pub fn new(options: Options, store: SharedStore, plan: Arc<Plan>) -> Result<Self, DaemonError> {
        let instance = InstanceId::generate();
        events::identify(&options.host, instance);
        let keeper = Keeper::start(store.clone());
        let clock = Arc::new(DatabaseClock::new());
        let stop = watch::Sender::new(Stop::No);
        let runner = Runner {
            host: options.host.clone(),
            instance,
            user: options.user.clone(),
            store: store.clone(),
            keeper: keeper.handle(),
            spawner: Spawner::start().map_err(DaemonError::Spawner)?,
            exhaustion: Exhaustion::default(),
            clock: clock.clone(),
            stop: stop.subscribe(),
        };
        let shared = Shared {
            host: options.host.clone(),
            instance,
            room: Arc::new(Semaphore::new(usize::try_from(options.max_running_jobs.max(1)).unwrap_or(1))),
            options,
            store,
            clock,
            runner,
            health: Health::new(),
            gates: ClaimGates::default(),
            unsettled: Unsettled::default(),
            plan: watch::Sender::new(plan),
            live: watch::Sender::new(vec![instance]),
            queued: watch::Sender::new(0),
            stop,
            look_for_waiting: Notify::new(),
            tasks: TaskTracker::new(),
        };
        Ok(Self { shared: Arc::new(shared), keeper })
    }

    /// Works until it is told to stop and all runs have ended, or can't be waited for any longer.
    ///
    /// `orders` and `plans` come from the signals: an order to stop, a schedule that was read again.
    ///
    /// # Errors
    /// [`DaemonError::Store`] only when the tables can never be used.
    ///
    /// # Cancel safety
    /// Dropped, all jobs are killed and their leases run out.
    pub async fn run(
        self,
        mut orders: tokio::sync::mpsc::Receiver<Order>,
        mut plans: tokio::sync::mpsc::Receiver<Arc<Plan>>,
    ) -> Result<(), DaemonError> {
        let shared = &self.shared;
        let mut said = beat::Said::default();
        tokio::select! {
            begun = shared.begin(&mut said) => begun?,
            () = shared.obey_until_stop(&mut orders) => return Ok(()),
        }
        let from = shared.clock.now();
        shared.unsettled.add(shared.plan().jobs().map(|job| job.name.clone()));
        shared.tasks.spawn(waiting::take_on(shared.clone()));
        let mut gone_by = Instant::now() + LAST_WAIT;
        tokio::select! {
            () = beat::beat_on(shared, &mut said) => {}
            () = recovery::recover_on(shared, shared.options.heartbeat) => {}
            () = catch_up::sweep_on(shared) => {}
            () = pruning::prune_on(shared) => {}
            () = shared.reload_on(&mut plans) => {}
            () = async {
                tokio::join!(tick::tick_on(shared, from), shared.obey_until_stop(&mut orders));
                gone_by = shared.drain(&mut orders).await;
            } => {}
        }
        if let Err(error) = tokio::time::timeout_at(gone_by, shared.store.leave(shared.instance)).await {
            tracing::debug!("did not say goodbye: {error}");
        }
        events::daemon_stopped(shared.tasks.len());
        drop(self.keeper);
        Ok(())
    }
}

impl Shared {
    fn plan(&self) -> Arc<Plan> {
        self.plan.borrow().clone()
    }

    /// Who lives, this daemon always included.
    fn live(&self) -> Vec<InstanceId> {
        let mut live = self.live.borrow().clone();
        if !live.contains(&self.instance) {
            live.push(self.instance);
        }
        live
    }

    /// Reaches the database, brings the tables to this version, and makes this daemon and its jobs
    /// known. Tries until it can.
    async fn begin(&self, said: &mut beat::Said) -> Result<(), StoreError> {
        let mut pause = Duration::from_millis(100);
        loop {
            match self.try_to_begin(said).await {
                Ok(()) => break,
                Err(error) if error.is_transient() => self.health.failed(&error),
                Err(error) => return Err(error),
            }
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(LONGEST_START_PAUSE);
        }
        let plan = self.plan();
        events::daemon_started(env!("CARGO_PKG_VERSION"), plan.len(), &self.options.database, &plan.digest);
        Ok(())
    }

    async fn try_to_begin(&self, said: &mut beat::Said) -> Result<(), StoreError> {
        if self.options.migrate {
            self.store.migrate().await?;
        }
        self.store.check_schema().await?;
        self.store.register(self.instance, &self.plan().seen()).await?;
        beat::beat(self, said).await
    }

    /// Takes new plans on until it is dropped.
    async fn reload_on(&self, plans: &mut tokio::sync::mpsc::Receiver<Arc<Plan>>) {
        while let Some(plan) = plans.recv().await {
            events::daemon_reloaded(plan.len(), &plan.digest);
            self.plan.send_replace(plan.clone());
            let mut pause = Duration::from_millis(100);
            while let Err(error) = self.store.register(self.instance, &plan.seen()).await {
                self.health.failed(&error);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_START_PAUSE);
            }
        }
        std::future::pending().await
    }

    /// Obeys until the first order to stop.
    async fn obey_until_stop(&self, orders: &mut tokio::sync::mpsc::Receiver<Order>) {
        while let Some(order) = orders.recv().await {
            match order {
                Order::State => self.say_state(),
                Order::Stop(signal) => {
                    events::daemon_draining(signal, self.running(), self.options.drain);
                    self.stop.send_replace(Stop::Draining);
                    return;
                }
            }
        }
    }

    /// Waits for all runs: as long as they may, then as long as their kill takes, then no longer.
    /// Gives the instant by which the daemon is to be gone.
    async fn drain(&self, orders: &mut tokio::sync::mpsc::Receiver<Order>) -> Instant {
        self.tasks.close();
        let again = async {
            while let Some(order) = orders.recv().await {
                match order {
                    Order::State => self.say_state(),
                    Order::Stop(_) => return,
                }
            }
            std::future::pending().await
        };
        let patience = async {
            match self.options.drain {
                Some(drain) => tokio::time::sleep(drain).await,
                None => std::future::pending().await,
            }
            self.stop.send_replace(Stop::Terminate);
            std::future::pending::<()>().await
        };
        tokio::select! {
            biased;
            () = self.tasks.wait() => return Instant::now() + LAST_WAIT,
            () = again => {}
            () = patience => {}
        }
        self.stop.send_replace(Stop::Kill);
        let gone_by = Instant::now() + LAST_WAIT;
        tokio::time::timeout_at(gone_by, self.tasks.wait()).await.ok();
        gone_by
    }

    /// How many runs are under way here.
    fn running(&self) -> usize {
        let room = usize::try_from(self.options.max_running_jobs.max(1)).unwrap_or(1);
        room.saturating_sub(self.room.available_permits())
    }

    fn say_state(&self) {
        let database = if self.health.is_reachable() { "reachable" } else { "away" };
        let offset = self.clock.offset().map(|offset| offset.num_milliseconds());
        events::daemon_state(self.running(), *self.queued.borrow(), self.live().len(), database, offset);
    }
}

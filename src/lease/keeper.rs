use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::{Deadline, LeaseState};
use crate::clock::BootInstant;
use crate::events::{self, LeaseLabel};
use crate::lock::{FencingToken, LeaseTiming, Owner, PublicOwner, Resource};
use crate::store::{Grant, Loss, Renewal, Renewed, SharedStore, StoreError};

/// How many leases may be on their way to the keeper.
const QUEUE: usize = 1_024;

/// The first pause after a renewal that brought no answer; doubles up to
/// [`LeaseTiming::retry_pause`].
const FIRST_RETRY: Duration = Duration::from_millis(50);

/// How long nothing is due when there is no lease.
const IDLE: Duration = Duration::from_secs(3_600);

/// The one heartbeat task. Dropped, it stops and every lease runs out by itself.
#[derive(Debug)]
pub struct Keeper {
    handle: KeeperHandle,
    task: JoinHandle<()>,
}

/// The way to the keeper.
#[derive(Clone, Debug)]
pub struct KeeperHandle {
    commands: mpsc::Sender<Command>,
}

/// Our timed hold of a lock. Not `Clone`: it is consumed by [`Lease::stop`], after which its lock
/// may be released. Dropped without, it is renewed no more and expires.
#[derive(Debug)]
pub struct Lease {
    resource: Resource,
    owner: Owner,
    token: FencingToken,
    /// Written by the keeper, read by the run.
    state: watch::Receiver<LeaseState>,
    keeper: KeeperHandle,
}

/// A lease that no renewal touches any more: what is needed to release its lock.
#[derive(Debug)]
pub struct StoppedLease {
    /// What is locked.
    pub resource: Resource,
    /// For whom.
    pub owner: Owner,
    /// Under which token.
    pub token: FencingToken,
}

#[derive(Debug)]
enum Command {
    Hold(Box<Held>),
    Stop { token: FencingToken, done: oneshot::Sender<()> },
}

/// A lease as the keeper has it.
#[derive(Debug)]
struct Held {
    renewal: Renewal,
    token: FencingToken,
    public: PublicOwner,
    timing: LeaseTiming,
    next_at: BootInstant,
    retry: Duration,
    /// Whether its lateness was logged.
    late: bool,
    state: watch::Sender<LeaseState>,
}

impl Keeper {
    /// Starts the task.
    #[expect(clippy::disallowed_methods, reason = "its handle is kept and aborts it on drop")]
    pub fn start(store: SharedStore) -> Self {
        let (commands, inbox) = mpsc::channel(QUEUE);
        let task = tokio::spawn(Beating { store, inbox, leases: BTreeMap::new() }.run());
        Self { handle: KeeperHandle { commands }, task }
    }

    /// The way to it.
    pub fn handle(&self) -> KeeperHandle {
        self.handle.clone()
    }

    /// Waits until the task is gone, which is a bug: no lease is renewed any more. To be waited for
    /// once.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn gone(&mut self) {
        // It ends by itself only without any handle, and we hold one: it panicked.
        (&mut self.task).await.ok();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl KeeperHandle {
    /// Takes a grant on: from now on it is renewed.
    ///
    /// # Cancel safety
    /// Dropped, the lease is not renewed.
    pub async fn hold(&self, grant: &Grant, resource: Resource, owner: Owner, timing: LeaseTiming) -> Lease {
        let (sender, state) = watch::channel(LeaseState::Held(Deadline::of(grant.valid_until, &timing)));
        let renewal =
            Renewal { resource: resource.clone(), owner: owner.clone(), token: Some(grant.token), ttl: timing.ttl() };
        let granted_at = grant.valid_until - timing.ttl().get();
        let held = Held {
            renewal,
            token: grant.token,
            public: owner.public(),
            timing,
            next_at: granted_at + timing.heartbeat(),
            retry: FIRST_RETRY,
            late: false,
            state: sender,
        };
        if self.commands.send(Command::Hold(Box::new(held))).await.is_err() {
            // The keeper is gone with the daemon: the deadline stands, and the run stops by it.
            tracing::debug!(lock = resource.as_str(), "no keeper: the lease will not be renewed");
        }
        Lease { resource, owner, token: grant.token, state, keeper: self.clone() }
    }
}

impl Lease {
    /// What is known of it, as it changes.
    pub fn watch(&self) -> watch::Receiver<LeaseState> {
        self.state.clone()
    }

    /// Its lock's token.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// Ends the renewals and waits until none is under way, so that none can follow the release.
    ///
    /// # Cancel safety
    /// Dropped, the renewals end all the same, but possibly later.
    pub async fn stop(self) -> StoppedLease {
        let (done, stopped) = oneshot::channel();
        // Either way round, an error means that the keeper is gone, and its renewals with it.
        if self.keeper.commands.send(Command::Stop { token: self.token, done }).await.is_ok() {
            stopped.await.ok();
        }
        StoppedLease { resource: self.resource, owner: self.owner, token: self.token }
    }
}

/// The task itself.
struct Beating {
    store: SharedStore,
    inbox: mpsc::Receiver<Command>,
    leases: BTreeMap<FencingToken, Held>,
}

impl Beating {
    async fn run(mut self) {
        loop {
            let next = self.leases.values().map(|held| held.next_at).min();
            let due = next.unwrap_or_else(|| BootInstant::now() + IDLE);
            tokio::select! {
                biased;
                command = self.inbox.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                () = due.reached() => self.beat().await,
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Hold(held) => {
                self.leases.insert(held.token, *held);
            }
            Command::Stop { token, done } => {
                self.leases.remove(&token);
                // The run may have stopped waiting; there is nobody else to tell.
                done.send(()).ok();
            }
        }
    }

    /// Renews everything that is due, or nearly: one statement for many.
    async fn beat(&mut self) {
        let now = BootInstant::now();
        self.leases.retain(|_, held| !held.state.is_closed());
        let due: Vec<FencingToken> = self
            .leases
            .iter()
            .filter(|(_, held)| held.next_at <= now + held.timing.heartbeat() / 4)
            .map(|(token, _)| *token)
            .collect();
        if due.is_empty() {
            return;
        }
        let batch: Vec<_> = due.iter().map(|token| self.leases[token].renewal.clone()).collect();
        // As long as the most impatient of them allows: a call that hangs outlives no lease.
        let within = due.iter().map(|token| self.leases[token].timing.call_timeout()).min().unwrap_or(IDLE);
        let answers = self.store.renew(&batch, within).await;
        match answers {
            Ok(answers) => {
                for (token, answer) in due.into_iter().zip(answers) {
                    self.learn(token, now, answer);
                }
            }
            Err(error) => due.into_iter().for_each(|token| self.miss(token, &error)),
        }
    }

    fn learn(&mut self, token: FencingToken, sent: BootInstant, answer: Renewed) {
        let Some(held) = self.leases.get_mut(&token) else { return };
        match answer {
            Renewed::Renewed { valid_until, .. } => held.renewed(sent, valid_until),
            Renewed::Unknown => held.missed("its row is locked by somebody else"),
            Renewed::Lost(loss) => {
                if let Some(held) = self.leases.remove(&token) {
                    held.lost(loss);
                }
            }
        }
    }

    fn miss(&mut self, token: FencingToken, error: &StoreError) {
        if let Some(held) = self.leases.get_mut(&token) {
            held.missed(&error.to_string());
        }
    }
}

impl Held {
    fn label(&self) -> LeaseLabel<'_> {
        LeaseLabel { lock: &self.renewal.resource, owner: &self.public, token: self.token }
    }

    fn renewed(&mut self, sent: BootInstant, valid_until: BootInstant) {
        self.retry = FIRST_RETRY;
        self.late = false;
        self.next_at = sent + self.timing.heartbeat();
        self.state.send_replace(LeaseState::Held(Deadline::of(valid_until, &self.timing)));
        events::lock_renewed(self.label(), valid_until.remaining());
    }

    /// No answer, or not for this row: the deadline stays, and it is tried again at once, then with
    /// doubling pauses, jittered so that many daemons don't come back in step.
    fn missed(&mut self, why: &str) {
        let pause = self.retry.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next_at = BootInstant::now() + pause;
        self.retry = (self.retry * 2).min(self.timing.retry_pause());
        if !self.late {
            self.late = true;
            let left = self.state.borrow().deadline().term_at.remaining();
            events::lock_renew_late(self.label(), left, why);
        }
    }

    fn lost(self, loss: Loss) {
        let reason = match &loss {
            Loss::Expired => "it expired before it could be renewed".to_owned(),
            Loss::TakenOver(other) => format!("{other} holds it now"),
            Loss::Gone => "its row is gone or released".to_owned(),
        };
        events::lock_lost(self.label(), &reason);
        self.state.send_modify(|state| *state = LeaseState::Lost(loss, state.deadline()));
    }
}

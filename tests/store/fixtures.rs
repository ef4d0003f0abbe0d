//! The words of the cases: short makers for what the port takes, and short ways into its answers.

use std::time::Duration;

use chrono::{DateTime, TimeZone, Utc};
pub use cronlatch::clock::Expected;

use cronlatch::clock::BootInstant;
use cronlatch::fleet::{HostName, InstanceId};
use cronlatch::job::JobName;
use cronlatch::lock::{FencingToken, Owner, PublicOwner, Resource, Ttl};
use cronlatch::store::{
    Acquire, Acquired, Cancel, CatchUpPlan, Claim, Claimant, Claimed, Ending, Follower, Grant, Holder, HostBeat,
    JobSeen, LockRow, Pausing, Renewal, RunFilter, RunKey, RunRow, SharedStore, Taken, WhenHeld,
};
use cronlatch::trigger::{RunId, RunState, Target, Trigger, TriggerKind};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::database::TestDb;

pub const SECOND: Duration = Duration::from_secs(1);
pub const MILLISECOND: Duration = Duration::from_millis(1);

/// The TTL, unless a case is about another.
pub const TTL: Duration = Duration::from_secs(60);

/// How long a renewal may take in these tests.
pub const WITHIN: Duration = Duration::from_secs(20);

/// The instant at which clocks are made to stand still. No host's clock is near it.
pub fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2031, 5, 1, 12, 0, 0).unwrap()
}

pub fn resource(name: &str) -> Resource {
    Resource::new(name).unwrap()
}

pub fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

pub fn job(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

pub fn ttl(ttl: Duration) -> Ttl {
    Ttl::new(ttl).unwrap()
}

/// An attempt to get a lock for a minute.
pub fn attempt(resource_name: &str, owner_name: &str) -> Acquire {
    Acquire { resource: resource(resource_name), owner: owner(owner_name), ttl: ttl(TTL), expected_now: None }
}

/// A renewal for a minute.
pub fn renewal(resource_name: &str, owner_name: &str, token: impl Into<Option<FencingToken>>) -> Renewal {
    Renewal { resource: resource(resource_name), owner: owner(owner_name), token: token.into(), ttl: ttl(TTL) }
}

/// A holder as it is seen at `now`, if it guards no run.
pub fn holder(resource_name: &str, owner_name: &str, grant: &Grant, now: DateTime<Utc>) -> Holder {
    Holder {
        resource: resource(resource_name),
        owner: PublicOwner::of(owner_name),
        token: grant.token,
        acquired_at: grant.acquired_at,
        expires_at: grant.expires_at,
        held: (now - grant.acquired_at).to_std().unwrap(),
        remaining: (grant.expires_at - now).to_std().unwrap(),
        run: None,
    }
}

/// Asserts that a local deadline was counted from after `before` and from no later than now.
#[track_caller]
pub fn assert_counted_from(before: BootInstant, valid_until: BootInstant, left: Duration) {
    let after = BootInstant::now();
    assert!(before + left <= valid_until, "{:?} too early", (before + left).since(valid_until));
    assert!(valid_until <= after + left, "{:?} too late", valid_until.since(after + left));
}

/// An answer that may hold a grant.
pub trait MayBeGranted: std::fmt::Debug + Sized {
    fn grant(self) -> Option<Grant>;

    fn is_granted(&self) -> bool;

    #[track_caller]
    fn granted(self) -> Grant {
        assert!(self.is_granted(), "not granted: {self:?}");
        self.grant().unwrap()
    }
}

macro_rules! may_be_granted {
    ($($answer:ident),+) => {
        $(impl MayBeGranted for $answer {
            fn grant(self) -> Option<Grant> {
                match self {
                    Self::Granted(grant) => Some(grant),
                    _ => None,
                }
            }

            fn is_granted(&self) -> bool {
                matches!(self, Self::Granted(_))
            }
        })+
    };
}

may_be_granted!(Acquired, Claimed, Taken);

/// Acquires for a minute, which has to be granted.
pub async fn acquire(store: &SharedStore, resource: &str, owner: &str) -> Grant {
    store.acquire(&attempt(resource, owner)).await.unwrap().granted()
}

/// The row of a lock that is held.
pub async fn lock(store: &SharedStore, name: &str) -> LockRow {
    store.lock(&resource(name)).await.unwrap().unwrap_or_else(|| panic!("{name} is not held"))
}

pub async fn is_held(store: &SharedStore, name: &str) -> bool {
    store.lock(&resource(name)).await.unwrap().is_some()
}

/// A row of the history.
pub async fn row(store: &SharedStore, run: RunId) -> RunRow {
    let rows = store.history(&everything()).await.unwrap();
    rows.into_iter().find(|row| row.run == run).unwrap_or_else(|| panic!("no row of {run}"))
}

/// All of the history.
pub fn everything() -> RunFilter {
    RunFilter { job: None, state: None, since: None, before: None, limit: 10_000 }
}

/// One daemon on one host.
#[derive(Clone)]
pub struct Host {
    pub name: HostName,
    pub instance: InstanceId,
    pub store: SharedStore,
}

impl Host {
    /// With a store of its own.
    pub fn new(db: &TestDb, name: &str) -> Self {
        Self::with_store(db.store(), name)
    }

    pub fn with_store(store: SharedStore, name: &str) -> Self {
        Self { name: HostName::new(name).unwrap(), instance: InstanceId::generate(), store }
    }

    /// This host with a new owner.
    pub fn claimant(&self, resource_name: &str) -> Claimant {
        Claimant {
            host: self.name.clone(),
            instance: self.instance,
            owner: Owner::generate(&self.name, self.instance),
            resource: resource(resource_name),
            ttl: ttl(TTL),
            expected_now: None,
        }
    }

    /// A claim to a scheduled trigger, with the lock `job:NAME`. It doesn't wait for the lock, may
    /// be given back for a minute, and isn't run again.
    pub fn claim(&self, name: &str, at: DateTime<Utc>) -> Claim {
        Claim {
            run: RunId::generate(),
            trigger: Trigger::scheduled(job(name), at),
            attempt: 1,
            kind: TriggerKind::Schedule,
            claimant: self.claimant(&format!("job:{name}")),
            when_held: WhenHeld::Skip,
            start_deadline: TTL,
            reruns_left: 0,
        }
    }

    /// Claims, which has to be granted.
    pub async fn run(&self, claim: &Claim) -> RunKey {
        let grant = self.store.claim(claim).await.unwrap().granted();
        key(claim, &grant)
    }

    /// Takes a waiting run, which has to be granted.
    pub async fn take(&self, run: RunId, resource: &str) -> RunKey {
        let claimant = self.claimant(resource);
        let grant = self.store.take(run, &claimant).await.unwrap().granted();
        RunKey { run, owner: claimant.owner, resource: claimant.resource, token: grant.token }
    }

    /// Reads this host's file: so that the job has a row.
    pub async fn register(&self, name: &str, digest: &str) {
        self.store.register(self.instance, &[seen(name, digest)]).await.unwrap();
    }

    /// Beats: so that it is seen to live, for 30 s.
    pub async fn beat(&self) {
        self.store.beat(&beat(self)).await.unwrap();
    }
}

/// A job of one host of the fleet, that starts at its instants.
pub fn seen(name: &str, digest: &str) -> JobSeen {
    JobSeen {
        job: job(name),
        digest: digest.to_owned(),
        target: Target::fleet(),
        serves: true,
        start_delay: Duration::ZERO,
    }
}

/// A follower of these jobs, with the lock `job:NAME`.
pub fn follower(name: &str, upstreams: &[&str]) -> Follower {
    Follower {
        run: RunId::generate(),
        job: job(name),
        upstreams: upstreams.iter().map(|name| job(name)).collect(),
        resource: resource(&format!("job:{name}")),
        start_deadline: 90 * SECOND,
        reruns_left: 2,
    }
}

/// A pause without an end.
pub fn pausing() -> Pausing {
    Pausing { by: "anna".to_owned(), reason: "a test".to_owned(), until: None }
}

/// What a host says of itself.
pub fn beat(host: &Host) -> HostBeat {
    HostBeat {
        instance: host.instance,
        name: host.name.clone(),
        version: "0.1.0".to_owned(),
        labels: vec!["ssd".to_owned(), "rack=7".to_owned()],
        schedule_digest: "digest".to_owned(),
        clock_offset_ms: None,
        draining: false,
        stale_after: 30 * SECOND,
    }
}

/// Makes a job known as if long ago: no trigger of these tests lies before.
pub async fn register_long_ago(db: &TestDb, host: &Host, name: &str, digest: &str) {
    host.register(name, digest).await;
    db.sql(format!("UPDATE job_progress SET caught_up_through = '2001-01-01T00:00:00.000Z' WHERE job = '{name}'"))
        .await;
}

/// What proves that a claimed run is the claimant's.
pub fn key(claim: &Claim, grant: &Grant) -> RunKey {
    RunKey {
        run: claim.run,
        owner: claim.claimant.owner.clone(),
        resource: claim.claimant.resource.clone(),
        token: grant.token,
    }
}

/// An ending without details.
pub fn ending(state: RunState) -> Ending {
    Ending {
        state,
        exit_code: None,
        signal: None,
        reason: None,
        started_at: None,
        finished_at: noon() + SECOND,
        output_tail: None,
        cpu: None,
        memory_peak_kib: None,
    }
}

/// The ending of a run that went well.
pub fn success() -> Ending {
    Ending { exit_code: Some(0), ..ending(RunState::Succeeded) }
}

/// As many stores as hosts, each with a connection that is open already.
pub async fn warm_stores(db: &TestDb, hosts: usize) -> Vec<SharedStore> {
    let stores: Vec<_> = (0..hosts).map(|_| db.store()).collect();
    for store in &stores {
        store.locks().await.unwrap();
    }
    stores
}

/// Runs all of them, each from the same moment on, and returns their answers in order.
pub async fn at_once<F>(contenders: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let contenders: Vec<_> = contenders.into_iter().collect();
    let barrier = std::sync::Arc::new(Barrier::new(contenders.len()));
    let mut set = JoinSet::new();
    for (place, contender) in contenders.into_iter().enumerate() {
        let barrier = barrier.clone();
        set.spawn(async move {
            barrier.wait().await;
            (place, contender.await)
        });
    }
    let mut answers = set.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// A plan that accounts for everything up to an instant.
pub fn accounted(from: DateTime<Utc>, through: DateTime<Utc>) -> CatchUpPlan {
    CatchUpPlan {
        job: job("backup"),
        target: Target::fleet(),
        from,
        through,
        rows_seen: 0,
        rows_since: from,
        only_newest: false,
        ranges: vec![],
        late: vec![],
    }
}

/// The ending of a run whose process failed.
pub fn failure() -> Ending {
    Ending { exit_code: Some(1), ..ending(RunState::Failed) }
}

/// The key of the attempt that follows one under the same lease.
pub fn next_attempt(key: &RunKey) -> RunKey {
    RunKey { run: RunId::generate(), ..key.clone() }
}

/// A wish that a run stop.
pub fn cancel() -> Cancel {
    Cancel { by: "anna@laptop".to_owned(), reason: Some("it hangs".to_owned()) }
}

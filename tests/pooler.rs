//! Through a stock pgbouncer in transaction mode: no statement of one host meets the session of
//! another's.

#![allow(clippy::unwrap_used, reason = "a test says by its panic what went wrong")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use cronlatch::fleet::{HostName, InstanceId};
use cronlatch::job::JobName;
use cronlatch::lock::{Owner, Resource, Ttl};
use cronlatch::store::{
    Claim, Claimant, Claimed, Ending, HostBeat, JobSeen, Location, OpenOptions, Renewal, Renewed, RunKey, SharedStore,
    WhenHeld, open,
};
use cronlatch::trigger::{RunId, RunState, Target, Trigger, TriggerKind};
use support::pgbouncer::Pgbouncer;
use support::postgres::Cluster;
use tokio::task::JoinSet;

const TIMEOUT: Duration = Duration::from_secs(20);
const HOSTS: usize = 4;
const TRIGGERS: u32 = 50;

fn host_behind(pooled: &str, direct: &str) -> SharedStore {
    let location = Location::Postgres {
        url: pooled.to_owned(),
        password: None,
        pooler: true,
        direct_url: Some(direct.to_owned()),
    };
    let application = "cronlatch test".to_owned();
    open(&OpenOptions {
        location,
        create: false,
        max_connections: 3,
        call_timeout: TIMEOUT,
        heartbeat_timeout: TIMEOUT,
        application,
    })
    .unwrap()
}

fn claim(host: &HostName, instance: InstanceId, number: u32) -> Claim {
    let job = JobName::new(format!("job-{}", number % 5)).unwrap();
    let at = Utc::now() - TimeDelta::minutes(5) + TimeDelta::seconds(i64::from(number));
    let at = at - TimeDelta::nanoseconds(i64::from(at.timestamp_subsec_nanos()));
    Claim {
        run: RunId::generate(),
        trigger: Trigger::scheduled(job, at),
        attempt: 1,
        kind: TriggerKind::Schedule,
        claimant: Claimant {
            host: host.clone(),
            instance,
            owner: Owner::generate(host, instance),
            resource: Resource::new(format!("lock-{number}")).unwrap(),
            ttl: Ttl::new(Duration::from_secs(60)).unwrap(),
            expected_now: None,
        },
        when_held: WhenHeld::Skip,
        start_deadline: Duration::from_secs(60),
        reruns_left: 0,
    }
}

/// One host's whole life, over and over: how many triggers it won.
async fn live(store: SharedStore, number: usize, epoch: Arc<Vec<Trigger>>) -> usize {
    let host = HostName::new(format!("host-{number}")).unwrap();
    let instance = InstanceId::generate();
    store
        .beat(&HostBeat {
            instance,
            name: host.clone(),
            version: "test".to_owned(),
            labels: vec![],
            schedule_digest: "digest".to_owned(),
            clock_offset_ms: None,
            draining: false,
            stale_after: TIMEOUT,
        })
        .await
        .unwrap();
    let mut won = 0;
    for (at, trigger) in epoch.iter().enumerate() {
        let claim = Claim { trigger: trigger.clone(), ..claim(&host, instance, u32::try_from(at).unwrap()) };
        let answer = store.claim(&claim).await.unwrap();
        let Claimed::Granted(grant) = answer else {
            assert!(matches!(answer, Claimed::AlreadyClaimed { .. }), "{answer:?}");
            continue;
        };
        won += 1;
        let key = RunKey {
            run: claim.run,
            owner: claim.claimant.owner.clone(),
            resource: claim.claimant.resource.clone(),
            token: grant.token,
        };
        let renewal = Renewal {
            resource: key.resource.clone(),
            owner: key.owner.clone(),
            token: Some(key.token),
            ttl: claim.claimant.ttl,
        };
        let renewed = store.renew(&[renewal], TIMEOUT).await.unwrap();
        assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{renewed:?}");
        let ending = Ending {
            state: RunState::Succeeded,
            exit_code: Some(0),
            signal: None,
            reason: None,
            started_at: None,
            finished_at: Utc::now(),
            output_tail: None,
            cpu: None,
            memory_peak_kib: None,
        };
        assert!(store.finish(&key, &ending, &[]).await.unwrap().recorded);
        store.recover(None).await.unwrap();
    }
    won
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_behind_a_transaction_pooler_win_each_trigger_once() {
    let cluster = Cluster::shared();
    let direct = cluster.create_database().await;
    let pooler = Pgbouncer::before(cluster, 4);
    let pooled = pooler.url(&direct, cluster);
    let first = host_behind(&pooled, &direct);
    first.migrate().await.unwrap();
    first.check_schema().await.unwrap();
    let host = HostName::new("planner").unwrap();
    let instance = InstanceId::generate();
    let epoch: Vec<_> = (0..TRIGGERS).map(|number| claim(&host, instance, number).trigger).collect();
    let mut hosts = JoinSet::new();
    let epoch = Arc::new(epoch);
    for number in 0..HOSTS {
        hosts.spawn(live(host_behind(&pooled, &direct), number, epoch.clone()));
    }
    let won: usize = hosts.join_all().await.into_iter().sum();
    assert_eq!(won, epoch.len());
    let seen = [JobSeen {
        job: JobName::new("job-1").unwrap(),
        digest: "digest".to_owned(),
        target: Target::fleet(),
        serves: true,
        start_delay: Duration::ZERO,
    }];
    first.register(instance, &seen).await.unwrap();
    assert_eq!(first.hosts().await.unwrap().len(), HOSTS);
}

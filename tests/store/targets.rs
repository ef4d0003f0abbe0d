//! Jobs that run on every host: each has its own triggers, and accounts for them by itself.

use chrono::{DateTime, Utc};
use cronlatch::store::{CatchUpPlan, Claim, Claimed, JobProgress, JobSeen, ProgressQuery};
use cronlatch::trigger::{RunState, Target};

use super::catching_up::{claimed_and_finished, minute, plan, progress_for};
use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    each_target_has_its_own_watermark_and_rows,
    a_plan_for_one_target_leaves_the_others_alone,
    of_ten_hosts_with_one_plan_for_one_target_one_carries_it_out,
    targets_that_are_caught_up_at_once_are_all_caught_up,
);

fn web(number: u32) -> Target {
    Target::from_column(format!("web-{number}"))
}

/// A host that registered the job for itself at noon, as one of many that all run it.
async fn registered_for_itself(db: &TestDb, number: u32) -> Host {
    db.freeze_clock(noon()).await;
    let host = Host::new(db, web(number).as_str());
    host.store.register(host.instance, &[JobSeen { target: web(number), ..seen("backup", "digest") }]).await.unwrap();
    host
}

/// A claim of a host to its own trigger.
fn own_claim(host: &Host, at: DateTime<Utc>) -> Claim {
    let mut claim = host.claim("backup", at);
    claim.trigger.target = Target::from_column(host.name.as_str());
    claim.claimant.resource = resource(&format!("job:backup@{}", host.name));
    claim
}

async fn each_target_has_its_own_watermark_and_rows(db: &TestDb) {
    let one = registered_for_itself(db, 1).await;
    let two = registered_for_itself(db, 2).await;
    one.register("backup", "digest").await;
    db.freeze_clock(minute(10)).await;
    for (host, number) in [(&one, 1), (&two, 1), (&two, 3), (&two, 4)] {
        claimed_and_finished(host, &own_claim(host, minute(number))).await;
    }
    db.sql(format!("UPDATE job_progress SET caught_up_through = '{}' WHERE target = 'web-2'", text(minute(2)))).await;
    claimed_and_finished(&one, &one.claim("backup", minute(5))).await;
    let asked = [web(2), Target::fleet(), web(1), web(3)];
    let asked = asked.map(|target| ProgressQuery { job: job("backup"), target });
    let found = one.store.progress(&asked).await.unwrap();
    let progress = |target, caught_up_through, with_row: &[i64]| JobProgress {
        job: job("backup"),
        target,
        caught_up_through,
        settled_through: caught_up_through,
        with_row: with_row.iter().copied().map(minute).collect(),
        pause: None,
        edited_at: None,
    };
    let expected =
        [progress(Target::fleet(), noon(), &[5]), progress(web(1), noon(), &[1]), progress(web(2), minute(2), &[3, 4])];
    assert_eq!(found, expected);
}

async fn a_plan_for_one_target_leaves_the_others_alone(db: &TestDb) {
    let one = registered_for_itself(db, 1).await;
    let two = registered_for_itself(db, 2).await;
    db.freeze_clock(minute(4)).await;
    // Another target's rows are none of the plan's business.
    claimed_and_finished(&two, &own_claim(&two, minute(2))).await;
    let plan = CatchUpPlan { target: web(1), ..plan(noon()) };
    assert!(one.store.catch_up(&plan).await.unwrap());
    assert_eq!(progress_for(&one, web(1)).await.caught_up_through, minute(3));
    assert_eq!(progress_for(&one, web(2)).await.caught_up_through, noon());
    assert_eq!(one.store.claim(&own_claim(&one, minute(2))).await.unwrap(), Claimed::Settled);
    one.run(&own_claim(&one, minute(4))).await;
    two.run(&own_claim(&two, minute(3))).await;
    let late = row(&one.store, plan.late[0].run).await;
    assert_eq!((late.target, late.state), (web(1), RunState::Waiting));
    let missed = one.store.missed(&everything()).await.unwrap();
    assert_eq!(missed.into_iter().map(|range| range.target).collect::<Vec<_>>(), [web(1)]);
    let unknown = CatchUpPlan { target: web(3), ..plan.clone() };
    assert!(!one.store.catch_up(&unknown).await.unwrap());
}

async fn of_ten_hosts_with_one_plan_for_one_target_one_carries_it_out(db: &TestDb) {
    let host = registered_for_itself(db, 1).await;
    registered_for_itself(db, 2).await;
    let plans = warm_stores(db, 10).await.into_iter().map(|store| {
        let plan = CatchUpPlan { target: web(1), ..plan(noon()) };
        async move { store.catch_up(&plan).await.unwrap() }
    });
    let carried_out = at_once(plans).await;
    assert_eq!(carried_out.iter().filter(|done| **done).count(), 1);
    assert_eq!((db.count("trigger_ranges", "1 = 1").await, db.count("runs", "1 = 1").await), (1, 1));
    assert_eq!(progress_for(&host, web(2)).await.caught_up_through, noon());
}

async fn targets_that_are_caught_up_at_once_are_all_caught_up(db: &TestDb) {
    for number in 0..5 {
        registered_for_itself(db, number).await;
    }
    let plans = (0_u32..).zip(warm_stores(db, 5).await).map(|(number, store)| {
        let plan = CatchUpPlan { target: web(number), ..plan(noon()) };
        async move { store.catch_up(&plan).await.unwrap() }
    });
    assert_eq!(at_once(plans).await, [true; 5]);
    assert_eq!(db.count("job_progress", &format!("caught_up_through = '{}'", text(minute(3)))).await, 5);
}

//! Which triggers are accounted for, and what becomes of those that are not: decided by one host.

use chrono::{DateTime, TimeDelta, Utc};
use cronlatch::store::{
    CatchUpPlan, Claim, Claimed, JobProgress, LateRun, MissedRow, Pausing, ProgressQuery, RangeKind, RunFilter,
    TriggerRange,
};
use cronlatch::trigger::{MissedReason, Origin, RunId, RunState, Target, Trigger, TriggerKind};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    progress_is_the_watermark_and_the_rows_past_it,
    progress_looks_no_further_back_than_the_pruned_history,
    progress_counts_the_schedules_own_triggers_only,
    a_job_that_is_not_registered_has_no_progress,
    a_plan_moves_the_watermark_and_writes_what_was_missed,
    a_plan_made_from_an_old_watermark_writes_nothing,
    of_ten_hosts_with_one_plan_one_carries_it_out,
    a_late_run_waits_and_any_host_takes_it,
    a_plan_is_not_carried_out_when_a_trigger_was_claimed_meanwhile,
    a_trigger_that_catch_up_has_settled_is_not_claimed_any_more,
    a_late_run_that_nobody_takes_is_missed,
    a_plan_for_a_job_that_is_not_registered_writes_nothing,
    a_claim_and_a_plan_at_once_never_both_have_the_trigger,
    a_watermark_in_the_future_means_nothing_to_claims,
    a_watermark_in_the_future_is_put_right,
    ranges_say_what_took_the_triggers,
    a_plan_for_the_newest_trigger_is_not_carried_out_once_a_newer_one_was_claimed,
    what_is_no_newer_trigger_of_the_schedule_stops_no_plan,
    a_plan_without_a_late_run_is_carried_out_whatever_is_newer,
    nothing_is_to_run_late_of_a_paused_job,
    what_a_pause_took_is_recorded_in_it,
);

pub fn minute(number: i64) -> DateTime<Utc> {
    noon() + TimeDelta::minutes(number)
}

/// A host that registered the job at noon.
async fn registered(db: &TestDb) -> Host {
    db.freeze_clock(noon()).await;
    let host = Host::new(db, "web-1");
    host.register("backup", "digest").await;
    host
}

pub async fn claimed_and_finished(host: &Host, claim: &Claim) {
    let run = host.run(claim).await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
}

pub async fn progress_for(host: &Host, target: Target) -> JobProgress {
    let asked = [ProgressQuery { job: job("backup"), target }];
    let mut progress = host.store.progress(&asked).await.unwrap();
    assert_eq!(progress.len(), 1);
    progress.remove(0)
}

async fn progress(host: &Host) -> JobProgress {
    progress_for(host, Target::fleet()).await
}

/// A plan from noon on: two triggers are missed, the third is run late.
pub fn plan(db_now: DateTime<Utc>) -> CatchUpPlan {
    CatchUpPlan {
        job: job("backup"),
        target: Target::fleet(),
        from: db_now,
        through: minute(3),
        rows_seen: 0,
        rows_since: db_now,
        only_newest: false,
        ranges: vec![TriggerRange {
            kind: RangeKind::Missed,
            from: minute(1),
            to: minute(2),
            count: 2,
            reason: MissedReason::Superseded,
        }],
        late: vec![LateRun {
            run: RunId::generate(),
            scheduled_at: minute(3),
            resource: resource("job:backup"),
            not_before: None,
            waits: TTL,
            start_deadline: TTL,
            reruns_left: 1,
        }],
    }
}

async fn progress_is_the_watermark_and_the_rows_past_it(db: &TestDb) {
    db.freeze_clock(noon()).await;
    let host = Host::new(db, "web-1");
    for number in [-1, 0] {
        claimed_and_finished(&host, &host.claim("backup", minute(number))).await;
    }
    host.register("backup", "digest").await;
    db.freeze_clock(minute(10)).await;
    for number in [5, 2, 9] {
        claimed_and_finished(&host, &host.claim("backup", minute(number))).await;
    }
    let expected = JobProgress {
        job: job("backup"),
        target: Target::fleet(),
        caught_up_through: noon(),
        settled_through: noon(),
        with_row: vec![minute(2), minute(5), minute(9)],
        pause: None,
        edited_at: None,
    };
    assert_eq!(progress(&host).await, expected);
}

async fn progress_looks_no_further_back_than_the_pruned_history(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(10)).await;
    for number in [1, 3, 5] {
        claimed_and_finished(&host, &host.claim("backup", minute(number))).await;
    }
    let pruned = async |through| {
        db.sql(format!("UPDATE jobs SET pruned_through = '{}'", text(through))).await;
        let found = progress(&host).await;
        (found.caught_up_through, found.settled_through, found.with_row)
    };
    let all = vec![minute(1), minute(3), minute(5)];
    assert_eq!(pruned(minute(-60)).await, (noon(), noon(), all.clone()));
    assert_eq!(pruned(minute(1) - MILLISECOND).await, (noon(), minute(1) - MILLISECOND, all));
    assert_eq!(pruned(minute(3)).await, (noon(), minute(3), vec![minute(5)]));
}

async fn progress_counts_the_schedules_own_triggers_only(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(10)).await;
    let trigger = |number| Trigger::scheduled(job("backup"), minute(number));
    let others = [
        Claim {
            trigger: Trigger { origin: Origin::from_column("request-1"), ..trigger(1) },
            kind: TriggerKind::Manual,
            ..host.claim("backup", noon())
        },
        Claim {
            trigger: Trigger { target: Target::from_column("web-1"), ..trigger(2) },
            ..host.claim("backup", noon())
        },
        host.claim("restore", minute(3)),
    ];
    for claim in &others {
        claimed_and_finished(&host, claim).await;
    }
    // Two attempts at one trigger are one trigger.
    claimed_and_finished(&host, &host.claim("backup", minute(4))).await;
    claimed_and_finished(&host, &Claim { attempt: 2, ..host.claim("backup", minute(4)) }).await;
    assert_eq!(progress(&host).await.with_row, [minute(4)]);
}

async fn a_job_that_is_not_registered_has_no_progress(db: &TestDb) {
    let host = registered(db).await;
    let asked = ["unknown", "backup"].map(|name| ProgressQuery { job: job(name), target: Target::fleet() });
    let progress = host.store.progress(&asked).await.unwrap();
    assert_eq!(progress.into_iter().map(|progress| progress.job).collect::<Vec<_>>(), [job("backup")]);
    assert_eq!(host.store.progress(&[]).await.unwrap(), []);
}

async fn a_plan_moves_the_watermark_and_writes_what_was_missed(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(4)).await;
    assert!(host.store.catch_up(&plan(noon())).await.unwrap());
    assert_eq!(progress(&host).await.caught_up_through, minute(3));
    let range = format!(
        "job = 'backup' AND kind = 'missed' AND reason = 'superseded' AND count = 2 \
         AND range_from = '{}' AND range_to = '{}' AND recorded_at = '{}'",
        text(minute(1)),
        text(minute(2)),
        text(minute(4))
    );
    assert_eq!(db.count("trigger_ranges", &range).await, 1);
    assert_eq!(db.count("trigger_ranges", "1 = 1").await, 1);
    // The late run has a row by now.
    let nothing =
        CatchUpPlan { from: minute(3), through: minute(4), rows_seen: 1, ranges: vec![], late: vec![], ..plan(noon()) };
    assert!(host.store.catch_up(&nothing).await.unwrap());
    assert_eq!(progress(&host).await.caught_up_through, minute(4));
}

async fn a_plan_made_from_an_old_watermark_writes_nothing(db: &TestDb) {
    let host = registered(db).await;
    assert!(host.store.catch_up(&plan(noon())).await.unwrap());
    for from in [noon(), noon() - MILLISECOND, minute(1)] {
        let stale = CatchUpPlan { through: minute(9), ..plan(from) };
        assert!(!host.store.catch_up(&stale).await.unwrap());
    }
    assert_eq!(progress(&host).await.caught_up_through, minute(3));
    assert_eq!((db.count("trigger_ranges", "1 = 1").await, db.count("runs", "1 = 1").await), (1, 1));
}

async fn of_ten_hosts_with_one_plan_one_carries_it_out(db: &TestDb) {
    let host = registered(db).await;
    let plans = warm_stores(db, 10).await.into_iter().map(|store| {
        let plan = plan(noon());
        async move { store.catch_up(&plan).await.unwrap() }
    });
    let carried_out = at_once(plans).await;
    assert_eq!(carried_out.iter().filter(|done| **done).count(), 1);
    assert_eq!((db.count("trigger_ranges", "1 = 1").await, db.count("runs", "1 = 1").await), (1, 1));
    assert_eq!(progress(&host).await.caught_up_through, minute(3));
    assert_eq!(db.errors_logged(), [""; 0]);
}

async fn a_late_run_waits_and_any_host_takes_it(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(4)).await;
    let plan = plan(noon());
    host.store.catch_up(&plan).await.unwrap();
    let late = plan.late[0].run;
    let waiting = host.store.waiting(&host.name).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].run, waiting[0].attempt, waiting[0].kind), (late, 1, TriggerKind::CatchUp));
    assert_eq!(waiting[0].trigger, Trigger::scheduled(job("backup"), minute(3)));
    assert_eq!(waiting[0].wait_until, minute(4) + TTL);
    let other = Host::new(db, "web-2");
    let run = other.take(late, "job:backup").await;
    assert!(other.store.finish(&run, &success(), &[]).await.unwrap().recorded);
    assert_eq!(progress(&host).await.caught_up_through, minute(3));
}

async fn a_plan_is_not_carried_out_when_a_trigger_was_claimed_meanwhile(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(4)).await;
    let claim = host.claim("backup", minute(3));
    claimed_and_finished(&host, &claim).await;
    assert!(!host.store.catch_up(&plan(noon())).await.unwrap());
    assert_eq!(progress(&host).await.caught_up_through, noon());
    assert_eq!(db.count("trigger_ranges", "1 = 1").await, 0);
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), []);
    assert_eq!(row(&host.store, claim.run).await.state, RunState::Succeeded);
    assert_eq!(db.count("runs", "1 = 1").await, 1);
}

async fn a_trigger_that_catch_up_has_settled_is_not_claimed_any_more(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(4)).await;
    let only_missed = CatchUpPlan { late: vec![], ..plan(noon()) };
    assert!(host.store.catch_up(&only_missed).await.unwrap());
    for number in [1, 2, 3] {
        assert_eq!(host.store.claim(&host.claim("backup", minute(number))).await.unwrap(), Claimed::Settled);
    }
    assert_eq!(db.count("runs", "1 = 1").await, 0);
    host.run(&host.claim("backup", minute(4))).await;
}

async fn a_late_run_that_nobody_takes_is_missed(db: &TestDb) {
    let host = registered(db).await;
    let plan = plan(noon());
    host.store.catch_up(&plan).await.unwrap();
    db.freeze_clock(noon() + TTL).await;
    host.store.recover(None).await.unwrap();
    let late = row(&host.store, plan.late[0].run).await;
    assert_eq!((late.state, late.reason.as_deref()), (RunState::Missed, Some("start_deadline")));
}

async fn a_plan_for_a_job_that_is_not_registered_writes_nothing(db: &TestDb) {
    let host = registered(db).await;
    let unknown = CatchUpPlan { job: job("unknown"), ..plan(noon()) };
    assert!(!host.store.catch_up(&unknown).await.unwrap());
    assert_eq!(db.count("trigger_ranges", "1 = 1").await + db.count("runs", "1 = 1").await, 0);
}

async fn a_claim_and_a_plan_at_once_never_both_have_the_trigger(db: &TestDb) {
    let hosts: Vec<_> = warm_stores(db, 2).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    db.freeze_clock(noon()).await;
    for round in 0..25 {
        let name = format!("backup-{round}");
        hosts[0].register(&name, "digest").await;
        db.freeze_clock(minute(4)).await;
        let both = [true, false].into_iter().zip(&hosts).map(|(claims, host)| {
            let (claim, host) = (host.claim(&name, minute(2)), host.clone());
            let plan = CatchUpPlan { job: job(&name), late: vec![], ..plan(noon()) };
            async move {
                if claims {
                    return host.store.claim(&claim).await.unwrap().is_granted();
                }
                host.store.catch_up(&plan).await.unwrap()
            }
        });
        let answers = at_once(both).await;
        assert_eq!(answers.iter().filter(|done| **done).count(), 1, "round {round}: {answers:?}");
        db.freeze_clock(noon()).await;
    }
    assert_eq!(db.errors_logged(), [""; 0]);
}

async fn a_watermark_in_the_future_means_nothing_to_claims(db: &TestDb) {
    let host = registered(db).await;
    db.sql(format!("UPDATE job_progress SET caught_up_through = '{}'", text(minute(60)))).await;
    db.freeze_clock(minute(2)).await;
    host.store.finish(&host.run(&host.claim("backup", minute(2))).await, &success(), &[]).await.unwrap();
    // Once it is past, it means what it says again.
    db.freeze_clock(minute(60)).await;
    assert_eq!(host.store.claim(&host.claim("backup", minute(3))).await.unwrap(), Claimed::Settled);
    assert_eq!(host.store.claim(&host.claim("backup", minute(60))).await.unwrap(), Claimed::Settled);
}

async fn a_watermark_in_the_future_is_put_right(db: &TestDb) {
    let host = registered(db).await;
    let wrong = minute(60 * 24);
    db.sql(format!("UPDATE job_progress SET caught_up_through = '{}'", text(wrong))).await;
    db.freeze_clock(minute(2)).await;
    host.run(&host.claim("backup", minute(1))).await;
    let found = progress(&host).await;
    assert_eq!((found.caught_up_through, found.settled_through, found.with_row), (wrong, wrong, vec![]));
    let right = CatchUpPlan { through: minute(2), rows_since: minute(2), ranges: vec![], late: vec![], ..plan(wrong) };
    assert!(host.store.catch_up(&right).await.unwrap());
    assert_eq!(progress(&host).await.caught_up_through, minute(2));
    assert!(!host.store.catch_up(&right).await.unwrap());
}

async fn ranges_say_what_took_the_triggers(db: &TestDb) {
    let host = registered(db).await;
    let kinds = [
        (RangeKind::Missed, MissedReason::TooMany),
        (RangeKind::Paused, MissedReason::Paused),
        (RangeKind::Blackout, MissedReason::Blackout),
        (RangeKind::Missed, MissedReason::NoHost),
    ];
    let range = |(number, (kind, reason)): (i64, (RangeKind, MissedReason))| TriggerRange {
        kind,
        from: minute(number),
        to: minute(number),
        count: u64::try_from(number).unwrap(),
        reason,
    };
    let ranges: Vec<_> = (1..).zip(kinds).map(range).collect();
    db.freeze_clock(minute(9)).await;
    let plan = CatchUpPlan { through: minute(5), ranges, late: vec![], ..plan(noon()) };
    assert!(host.store.catch_up(&plan).await.unwrap());
    let listed = host.store.missed(&everything()).await.unwrap();
    let expected = (1..).zip(kinds).map(|(number, (kind, reason))| MissedRow {
        job: "backup".to_owned(),
        target: Target::fleet(),
        kind,
        from: minute(number),
        to: minute(number),
        count: u64::try_from(number).unwrap(),
        reason: reason.as_str().to_owned(),
        recorded_at: minute(9),
    });
    let mut expected: Vec<_> = expected.collect();
    expected.reverse();
    assert_eq!(listed, expected);
    let of_another = RunFilter { job: Some(job("restore")), ..everything() };
    assert_eq!(host.store.missed(&of_another).await.unwrap(), []);
    let recent = RunFilter { since: Some(minute(4)), ..everything() };
    assert_eq!(host.store.missed(&recent).await.unwrap(), expected[..1]);
    for state in RunState::ALL {
        let listed = host.store.missed(&RunFilter { state: Some(*state), ..everything() }).await.unwrap();
        let in_state = |row: &&MissedRow| *state == RunState::Missed && row.kind == RangeKind::Missed;
        assert_eq!(listed, expected.iter().filter(in_state).cloned().collect::<Vec<_>>(), "{state:?}");
    }
    // What is not listed doesn't count.
    let newest = RunFilter { state: Some(RunState::Missed), limit: 2, ..everything() };
    assert_eq!(host.store.missed(&newest).await.unwrap().len(), 2);
}

async fn a_plan_for_the_newest_trigger_is_not_carried_out_once_a_newer_one_was_claimed(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(5)).await;
    let newer = host.claim("backup", minute(4));
    claimed_and_finished(&host, &newer).await;
    let of_two = |only_newest| {
        let late = &plan(noon()).late[0];
        let older = LateRun { run: RunId::generate(), scheduled_at: minute(2), ..late.clone() };
        CatchUpPlan { only_newest, ranges: vec![], late: vec![late.clone(), older], ..plan(noon()) }
    };
    assert!(!host.store.catch_up(&of_two(true)).await.unwrap());
    assert_eq!((db.count("runs", "1 = 1").await, progress(&host).await.caught_up_through), (1, noon()));
    // A job that catches up on all of them doesn't mind.
    assert!(host.store.catch_up(&of_two(false)).await.unwrap());
    assert_eq!(db.count("runs", "1 = 1").await, 3);
}

async fn what_is_no_newer_trigger_of_the_schedule_stops_no_plan(db: &TestDb) {
    let host = registered(db).await;
    // A clock that was ahead has left a row for a time to come.
    db.freeze_clock(minute(9)).await;
    claimed_and_finished(&host, &host.claim("backup", minute(9))).await;
    db.freeze_clock(minute(8)).await;
    let trigger = |number| Trigger::scheduled(job("backup"), minute(number));
    let others = [
        host.claim("restore", minute(4)),
        Claim {
            trigger: Trigger { target: Target::from_column("web-1"), ..trigger(5) },
            ..host.claim("backup", noon())
        },
        Claim {
            trigger: Trigger { origin: Origin::from_column("request-1"), ..trigger(6) },
            kind: TriggerKind::Manual,
            ..host.claim("backup", noon())
        },
        Claim { attempt: 2, kind: TriggerKind::Rerun, ..host.claim("backup", minute(7)) },
    ];
    for claim in &others {
        claimed_and_finished(&host, claim).await;
    }
    let plan = CatchUpPlan { only_newest: true, ..plan(noon()) };
    assert!(host.store.catch_up(&plan).await.unwrap());
    assert_eq!(row(&host.store, plan.late[0].run).await.state, RunState::Waiting);
}

async fn a_plan_without_a_late_run_is_carried_out_whatever_is_newer(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(5)).await;
    claimed_and_finished(&host, &host.claim("backup", minute(4))).await;
    let plan = CatchUpPlan { only_newest: true, late: vec![], ..plan(noon()) };
    assert!(host.store.catch_up(&plan).await.unwrap());
}

async fn nothing_is_to_run_late_of_a_paused_job(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(4)).await;
    host.store.pause(&job("backup"), &Pausing { until: Some(minute(5)), ..pausing() }).await.unwrap();
    assert!(!host.store.catch_up(&plan(noon())).await.unwrap());
    assert_eq!(db.count("runs", "1 = 1").await + db.count("trigger_ranges", "1 = 1").await, 0);
    assert_eq!(progress(&host).await.caught_up_through, noon());
    db.freeze_clock(minute(5)).await;
    assert!(host.store.catch_up(&plan(noon())).await.unwrap());
}

async fn what_a_pause_took_is_recorded_in_it(db: &TestDb) {
    let host = registered(db).await;
    db.freeze_clock(minute(4)).await;
    host.store.pause(&job("backup"), &pausing()).await.unwrap();
    assert!(host.store.catch_up(&CatchUpPlan { late: vec![], ..plan(noon()) }).await.unwrap());
    assert_eq!(db.count("trigger_ranges", "1 = 1").await, 1);
}

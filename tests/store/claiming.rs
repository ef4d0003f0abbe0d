//! One claim to a trigger, in every situation that it can meet.

use std::time::Duration;

use chrono::TimeDelta;
use cronlatch::clock::BootInstant;
use cronlatch::job::JobName;
use cronlatch::lock::PublicOwner;
use cronlatch::store::{Became, Claim, Claimed, RunRow, WhenHeld};
use cronlatch::trigger::{Origin, RunState, SkipReason, Target, Trigger, TriggerKind};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    a_free_trigger_is_granted_with_its_lock,
    the_same_claim_sent_again_is_granted_again_under_the_same_token,
    the_same_claim_sent_again_after_its_end_is_not_granted,
    the_same_claim_sent_again_once_its_lock_is_anothers_is_not_granted,
    a_claimed_trigger_answers_whose_it_is_for_ever,
    another_attempt_origin_target_or_instant_is_another_trigger,
    a_trigger_whose_lock_is_held_is_skipped_and_says_by_which_run,
    a_trigger_whose_lock_is_held_by_no_run_is_skipped,
    a_trigger_that_may_wait_waits_without_an_owner,
    at_most_one_trigger_of_a_job_waits_for_its_lock,
    at_most_one_trigger_of_a_job_waits_though_hosts_claim_at_once,
    a_claim_given_back_does_not_keep_another_from_waiting_for_the_lock,
    a_claim_that_was_held_off_answers_the_same_when_sent_again,
    a_claim_more_than_a_second_early_is_refused_and_writes_nothing,
    a_paused_job_is_not_claimed_and_nothing_is_written,
    a_pause_ends_at_its_end,
    a_trigger_before_the_pruned_history_is_forgotten,
    a_live_run_under_another_lock_holds_the_job,
    hosts_that_disagree_about_a_jobs_lock_never_run_it_at_once,
    a_live_run_for_another_host_does_not_hold_a_job_of_every_host,
    jobs_that_share_a_lock_exclude_one_another,
    a_dead_runs_lock_is_taken_over_by_the_next_claim,
    a_claim_while_the_clock_is_off_waits_and_takes_nothing_over,
    triggers_without_a_first_attempt_are_told_apart,
);

async fn a_free_trigger_is_granted_with_its_lock(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let claim = host.claim("backup", noon());
    let before = BootInstant::now();
    let grant = host.store.claim(&claim).await.unwrap().granted();
    assert_counted_from(before, grant.valid_until, TTL);
    assert_eq!((grant.acquired_at, grant.expires_at), (noon(), noon() + TTL));
    assert_eq!(grant.taken_from, None);
    let expected = RunRow {
        run: claim.run,
        job: "backup".to_owned(),
        scheduled_at: noon(),
        target: Target::fleet(),
        origin: Origin::schedule(),
        attempt: 1,
        kind: TriggerKind::Schedule,
        state: RunState::Claimed,
        host: Some("web-1".to_owned()),
        resource: "job:backup".to_owned(),
        token: Some(grant.token),
        claimed_at: Some(noon()),
        started_at: None,
        finished_at: None,
        wait_until: None,
        not_before: None,
        exit_code: None,
        signal: None,
        reason: None,
        blocked_by: None,
        output_tail: None,
        cpu: None,
        memory_peak_kib: None,
    };
    assert_eq!(row(&host.store, claim.run).await, expected);
    let held = lock(&host.store, "job:backup").await.holder;
    assert_eq!(held.owner, claim.claimant.owner.public());
    assert_eq!((held.token, held.run), (grant.token, Some(claim.run)));
}

async fn the_same_claim_sent_again_is_granted_again_under_the_same_token(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let claim = host.claim("backup", noon());
    let first = host.store.claim(&claim).await.unwrap().granted();
    db.freeze_clock(noon() + 20 * SECOND).await;
    let before = BootInstant::now();
    let again = host.store.claim(&claim).await.unwrap().granted();
    assert_eq!((again.token, again.acquired_at), (first.token, first.acquired_at));
    // What the first one had; a claim sent again renews nothing.
    assert_eq!(again.expires_at, first.expires_at);
    assert_counted_from(before, again.valid_until, TTL - 20 * SECOND);
    host.store.start(&key(&claim, &first), noon()).await.unwrap();
    assert_eq!(host.store.claim(&claim).await.unwrap().granted().token, first.token);
    assert_eq!(db.count("runs", "1 = 1").await, 1);
}

async fn the_same_claim_sent_again_after_its_end_is_not_granted(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let claim = host.claim("backup", db.now().await);
    let run = host.run(&claim).await;
    host.store.finish(&run, &success(), &[]).await.unwrap();
    let answer = host.store.claim(&claim).await.unwrap();
    let Claimed::AlreadyClaimed { run, state, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((run, state), (claim.run, RunState::Succeeded));
    assert!(!is_held(&host.store, "job:backup").await);
}

async fn the_same_claim_sent_again_once_its_lock_is_anothers_is_not_granted(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let claim = host.claim("backup", db.now().await);
    host.run(&claim).await;
    db.let_expire("job:backup").await;
    let theirs = acquire(&host.store, "job:backup", "b").await;
    let answer = host.store.claim(&claim).await.unwrap();
    assert!(matches!(answer, Claimed::AlreadyClaimed { .. }), "{answer:?}");
    assert_eq!(lock(&host.store, "job:backup").await.holder.token, theirs.token);
}

async fn a_claimed_trigger_answers_whose_it_is_for_ever(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let at = db.now().await;
    let claim = one.claim("backup", at);
    let run = one.run(&claim).await;
    let answer = async || other.store.claim(&other.claim("backup", at)).await.unwrap();
    let claimed = |state| Claimed::AlreadyClaimed { run: claim.run, host: Some("web-1".to_owned()), state };
    assert_eq!(answer().await, claimed(RunState::Claimed));
    one.store.start(&run, at).await.unwrap();
    assert_eq!(answer().await, claimed(RunState::Running));
    one.store.finish(&run, &success(), &[]).await.unwrap();
    // The job was short and its lock is free: the trigger is not.
    assert_eq!(answer().await, claimed(RunState::Succeeded));
    assert!(!is_held(&one.store, "job:backup").await);
    assert_eq!(db.count("runs", "1 = 1").await, 1);
}

async fn another_attempt_origin_target_or_instant_is_another_trigger(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let at = db.now().await;
    let base = host.claim("backup", at);
    let trigger = base.trigger.clone();
    let claims = [
        base,
        Claim { attempt: 2, ..host.claim("backup", at) },
        Claim {
            trigger: Trigger { origin: Origin::from_column("request-1"), ..trigger.clone() },
            ..host.claim("backup", at)
        },
        Claim { trigger: Trigger { target: Target::from_column("web-1"), ..trigger }, ..host.claim("backup", at) },
        host.claim("backup", at - MILLISECOND),
        host.claim("Backup", at),
    ];
    for claim in &claims {
        let run = host.run(claim).await;
        host.store.finish(&run, &success(), &[]).await.unwrap();
    }
    assert_eq!(db.count("runs", "state = 'succeeded'").await, 6);
}

async fn a_trigger_whose_lock_is_held_is_skipped_and_says_by_which_run(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    let first = one.claim("backup", noon());
    let grant = one.store.claim(&first).await.unwrap().granted();
    let now = noon() + 7 * SECOND;
    db.freeze_clock(now).await;
    let second = other.claim("backup", now);
    let answer = other.store.claim(&second).await.unwrap();
    let Claimed::Held { holder: Some(held), became } = answer else { panic!("{answer:?}") };
    assert_eq!(became, Became::Skipped(SkipReason::LockHeld));
    let mut expected = holder("job:backup", first.claimant.owner.reveal(), &grant, now);
    expected.run = Some(first.run);
    assert_eq!(held, expected);
    let skipped = row(&one.store, second.run).await;
    assert_eq!((skipped.state, skipped.reason.as_deref()), (RunState::Skipped, Some("lock_held")));
    assert_eq!((skipped.blocked_by, skipped.host.as_deref()), (Some(first.run), Some("web-2")));
    assert_eq!((skipped.token, skipped.claimed_at, skipped.finished_at), (None, None, Some(now)));
    // It is over: nobody else runs it either.
    let answer = one.store.claim(&one.claim("backup", now)).await.unwrap();
    let host = Some("web-2".to_owned());
    assert_eq!(answer, Claimed::AlreadyClaimed { run: second.run, host, state: RunState::Skipped });
}

async fn a_trigger_whose_lock_is_held_by_no_run_is_skipped(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let grant = acquire(&host.store, "job:backup", "by hand").await;
    let claim = host.claim("backup", db.now().await);
    let answer = host.store.claim(&claim).await.unwrap();
    let Claimed::Held { holder: Some(held), became } = answer else { panic!("{answer:?}") };
    assert_eq!(became, Became::Skipped(SkipReason::LockHeld));
    assert_eq!((held.owner, held.token, held.run), (PublicOwner::of("by hand"), grant.token, None));
    assert_eq!(row(&host.store, claim.run).await.blocked_by, None);
}

async fn a_trigger_that_may_wait_waits_without_an_owner(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    let first = host.claim("backup", noon());
    host.run(&first).await;
    let now = noon() + SECOND;
    db.freeze_clock(now).await;
    let second = Claim { when_held: WhenHeld::Wait(300 * SECOND), ..host.claim("backup", now) };
    let answer = host.store.claim(&second).await.unwrap();
    let Claimed::Held { holder: Some(held), became } = answer else { panic!("{answer:?}") };
    assert_eq!(became, Became::Waiting { until: now + 300 * SECOND });
    assert_eq!(held.run, Some(first.run));
    let waiting = row(&host.store, second.run).await;
    assert_eq!((waiting.state, waiting.reason.as_deref()), (RunState::Waiting, Some("lock_held")));
    assert_eq!((waiting.host, waiting.token, waiting.finished_at), (None, None, None));
    assert_eq!((waiting.wait_until, waiting.blocked_by), (Some(now + 300 * SECOND), Some(first.run)));
    assert_eq!(db.count("runs", "owner IS NOT NULL AND state = 'waiting'").await, 0);
}

async fn at_most_one_trigger_of_a_job_waits_for_its_lock(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let at = db.now().await - TimeDelta::minutes(1);
    host.run(&host.claim("backup", at)).await;
    let waits = |claim: Claim| Claim { when_held: WhenHeld::Wait(TTL), ..claim };
    let mut became = Vec::new();
    for after in 1..4 {
        let answer = host.store.claim(&waits(host.claim("backup", at + after * SECOND))).await.unwrap();
        let Claimed::Held { became: this, .. } = answer else { panic!("{answer:?}") };
        became.push(this);
    }
    assert!(matches!(became[0], Became::Waiting { .. }), "{became:?}");
    assert_eq!(became[1..], [Became::Skipped(SkipReason::AlreadyWaiting); 2]);
    // Another job that waits for the same lock does so for itself.
    let mut other = waits(host.claim("restore", at));
    other.claimant.resource = resource("job:backup");
    let answer = host.store.claim(&other).await.unwrap();
    assert!(matches!(answer, Claimed::Held { became: Became::Waiting { .. }, .. }), "{answer:?}");
}

async fn at_most_one_trigger_of_a_job_waits_though_hosts_claim_at_once(db: &TestDb) {
    let hosts: Vec<_> = warm_stores(db, 8).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    for round in 0..5 {
        let name = format!("backup-{round}");
        register_long_ago(db, &hosts[0], &name, "digest").await;
        let at = db.now().await - TimeDelta::minutes(1);
        hosts[0].run(&hosts[0].claim(&name, at)).await;
        let claims = hosts.iter().cloned().enumerate().map(|(number, host)| {
            let at = at + u32::try_from(number + 1).unwrap() * SECOND;
            let claim = Claim { when_held: WhenHeld::Wait(TTL), ..host.claim(&name, at) };
            async move { host.store.claim(&claim).await.unwrap() }
        });
        for answer in at_once(claims).await {
            assert!(matches!(answer, Claimed::Held { .. }), "{answer:?}");
        }
        assert_eq!(db.count("runs", &format!("job = '{name}' AND state = 'waiting'")).await, 1, "round {round}");
    }
}

async fn a_claim_given_back_does_not_keep_another_from_waiting_for_the_lock(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let at = db.now().await;
    let run = host.run(&host.claim("backup", at - SECOND)).await;
    assert!(host.store.give_back(&run, "drain").await.unwrap());
    acquire(&host.store, "job:backup", "by hand").await;
    let waits = Claim { when_held: WhenHeld::Wait(TTL), ..host.claim("backup", at) };
    let answer = host.store.claim(&waits).await.unwrap();
    assert!(matches!(answer, Claimed::Held { became: Became::Waiting { .. }, .. }), "{answer:?}");
}

async fn a_claim_that_was_held_off_answers_the_same_when_sent_again(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let at = db.now().await;
    acquire(&host.store, "job:backup", "by hand").await;
    let skips = host.claim("backup", at - 2 * SECOND);
    let waits = Claim { when_held: WhenHeld::Wait(TTL), ..host.claim("backup", at - SECOND) };
    for claim in [skips, waits] {
        let Claimed::Held { became: first, .. } = host.store.claim(&claim).await.unwrap() else { panic!() };
        let Claimed::Held { became: again, .. } = host.store.claim(&claim).await.unwrap() else { panic!() };
        assert_eq!(first, again);
    }
    assert_eq!(db.count("runs", "1 = 1").await, 2);
}

async fn a_claim_more_than_a_second_early_is_refused_and_writes_nothing(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    for by in [Duration::from_millis(1_001), 3_600 * SECOND] {
        let answer = host.store.claim(&host.claim("backup", noon() + by)).await.unwrap();
        assert_eq!(answer, Claimed::TooEarly { by });
    }
    assert_eq!(db.count("runs", "1 = 1").await + db.count("distributed_locks", "1 = 1").await, 0);
    host.run(&host.claim("backup", noon() + SECOND)).await;
}

async fn a_paused_job_is_not_claimed_and_nothing_is_written(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let at = db.now().await;
    for name in ["backup", "restore"] {
        register_long_ago(db, &host, name, "digest").await;
    }
    db.sql("UPDATE jobs SET paused = true WHERE name = 'backup'").await;
    assert_eq!(host.store.claim(&host.claim("backup", at)).await.unwrap(), Claimed::Paused);
    assert_eq!(db.count("runs", "1 = 1").await + db.count("distributed_locks", "1 = 1").await, 0);
    host.run(&host.claim("restore", at)).await;
    db.sql("UPDATE jobs SET paused = false WHERE name = 'backup'").await;
    host.run(&host.claim("backup", at)).await;
}

async fn a_pause_ends_at_its_end(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    register_long_ago(db, &host, "backup", "digest").await;
    let pause = async |until| db.sql(format!("UPDATE jobs SET paused = true, paused_until = '{}'", text(until))).await;
    pause(noon() + MILLISECOND).await;
    assert_eq!(host.store.claim(&host.claim("backup", noon())).await.unwrap(), Claimed::Paused);
    pause(noon()).await;
    host.run(&host.claim("backup", noon())).await;
}

async fn a_trigger_before_the_pruned_history_is_forgotten(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    register_long_ago(db, &host, "backup", "digest").await;
    db.sql(format!("UPDATE jobs SET pruned_through = '{}'", text(noon()))).await;
    for at in [noon(), noon() - TimeDelta::hours(1)] {
        assert_eq!(host.store.claim(&host.claim("backup", at)).await.unwrap(), Claimed::Forgotten);
    }
    assert_eq!(db.count("runs", "1 = 1").await + db.count("distributed_locks", "1 = 1").await, 0);
    host.run(&host.claim("backup", noon() + MILLISECOND)).await;
    host.run(&host.claim("not registered", noon())).await;
}

async fn a_live_run_under_another_lock_holds_the_job(db: &TestDb) {
    let (old, new) = (Host::new(db, "old"), Host::new(db, "new"));
    let at = db.now().await - TimeDelta::minutes(1);
    let first = old.claim("backup", at);
    let grant = old.store.claim(&first).await.unwrap().granted();
    let relocked = |at| {
        let mut claim = new.claim("backup", at);
        claim.claimant.resource = resource("storage");
        claim
    };
    let second = relocked(at + SECOND);
    let answer = new.store.claim(&second).await.unwrap();
    let Claimed::Held { holder: Some(held), became } = answer else { panic!("{answer:?}") };
    assert_eq!((held.resource, held.token, held.run), (resource("job:backup"), grant.token, Some(first.run)));
    assert_eq!(became, Became::Skipped(SkipReason::LockHeld));
    assert_eq!(row(&new.store, second.run).await.blocked_by, Some(first.run));
    assert!(!is_held(&new.store, "storage").await);
    db.let_expire("job:backup").await;
    new.run(&relocked(at + 2 * SECOND)).await;
}

async fn hosts_that_disagree_about_a_jobs_lock_never_run_it_at_once(db: &TestDb) {
    let hosts: Vec<_> = warm_stores(db, 2).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    for round in 0..25 {
        let name = format!("backup-{round}");
        register_long_ago(db, &hosts[0], &name, "digest").await;
        let at = db.now().await - TimeDelta::minutes(1);
        let claims = hosts.iter().cloned().enumerate().map(|(number, host)| {
            let mut claim = host.claim(&name, at + u32::try_from(number).unwrap() * SECOND);
            claim.claimant.resource = resource(&format!("lock-{number}-{round}"));
            async move { host.store.claim(&claim).await.unwrap() }
        });
        let granted = at_once(claims).await.into_iter().filter(Claimed::is_granted).count();
        assert_eq!(granted, 1, "round {round}");
    }
}

async fn a_live_run_for_another_host_does_not_hold_a_job_of_every_host(db: &TestDb) {
    let at = db.now().await;
    for name in ["web-1", "web-2", "web-3"] {
        let host = Host::new(db, name);
        let mut claim = host.claim("logrotate", at);
        claim.trigger.target = Target::from_column(name);
        claim.claimant.resource = resource(&format!("job:logrotate@{name}"));
        host.run(&claim).await;
    }
    assert_eq!(db.count("runs", "state = 'claimed'").await, 3);
}

async fn jobs_that_share_a_lock_exclude_one_another(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let at = db.now().await;
    let claim = |name| {
        let mut claim = host.claim(name, at);
        claim.claimant.resource = resource("storage");
        claim
    };
    let first = claim("backup");
    let run = host.run(&first).await;
    let answer = host.store.claim(&claim("restore")).await.unwrap();
    let Claimed::Held { holder: Some(held), .. } = answer else { panic!("{answer:?}") };
    assert_eq!(held.run, Some(first.run));
    host.store.finish(&run, &success(), &[]).await.unwrap();
    host.run(&claim("prune")).await;
}

async fn a_dead_runs_lock_is_taken_over_by_the_next_claim(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let at = db.now().await - TimeDelta::minutes(1);
    let dead = one.claim("backup", at);
    let run = one.run(&dead).await;
    db.let_expire("job:backup").await;
    let grant = other.store.claim(&other.claim("backup", at + SECOND)).await.unwrap().granted();
    assert!(grant.token > run.token);
    let from = grant.taken_from.unwrap();
    assert_eq!((from.owner, from.token), (dead.claimant.owner.public(), run.token));
}

async fn a_claim_while_the_clock_is_off_waits_and_takes_nothing_over(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    let run = one.run(&one.claim("backup", noon())).await;
    let now = noon() + 10 * TTL;
    db.freeze_clock(now).await;
    let mut claim = other.claim("backup", now);
    claim.claimant.expected_now = Some(Expected::new(noon()));
    let answer = other.store.claim(&claim).await.unwrap();
    let Claimed::Held { became, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(became, Became::Waiting { until: now + claim.start_deadline });
    let waiting = row(&other.store, claim.run).await;
    assert_eq!((waiting.state, waiting.token), (RunState::Waiting, None));
    assert_eq!(db.count("distributed_locks", &format!("token = {}", run.token)).await, 1);
}

async fn triggers_without_a_first_attempt_are_told_apart(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let at = db.now().await;
    let later = at + SECOND;
    host.run(&host.claim("claimed", at)).await;
    host.run(&Claim { attempt: 2, ..host.claim("second attempt", at) }).await;
    let trigger = |name: &str, at| Trigger::scheduled(JobName::new(name).unwrap(), at);
    let asked = [
        trigger("new", later),
        trigger("claimed", at),
        trigger("claimed", later),
        trigger("second attempt", at),
        Trigger { target: Target::from_column("web-1"), ..trigger("claimed", at) },
        Trigger { origin: Origin::from_column("request-1"), ..trigger("claimed", at) },
    ];
    let mut expected = asked.to_vec();
    expected.remove(1);
    assert_eq!(host.store.unclaimed(&asked).await.unwrap(), expected);
    assert_eq!(host.store.unclaimed(&[]).await.unwrap(), []);
}

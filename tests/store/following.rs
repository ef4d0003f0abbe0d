//! Jobs that run after others: each success makes its followers wait, in the transaction that
//! records it, once.

use chrono::{DateTime, TimeDelta, Utc};
use cronlatch::store::{Claim, Finished, Follower, LockAtEnd, RunKey, StoreError};
use cronlatch::trigger::{Origin, RunId, RunState, Target, Trigger, TriggerKind};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(
    a_success_makes_its_follower_wait,
    an_ending_that_is_no_success_makes_nothing_wait,
    an_ending_that_is_not_recorded_makes_nothing_wait,
    a_follower_of_two_waits_for_both_for_the_same_instant_and_target,
    each_of_several_followers_is_looked_at_by_itself,
    of_two_upstreams_that_succeed_at_once_one_makes_the_follower_wait,
    upstreams_and_followers_in_any_order_never_deadlock,
    the_same_success_sent_again_answers_the_same_and_makes_nothing_wait,
    a_success_sent_again_does_not_bring_a_pruned_follower_back,
    a_late_success_is_followed_too,
    a_trigger_that_succeeds_twice_is_followed_once,
    a_follower_that_is_paused_is_missed,
    a_follower_whose_history_is_pruned_does_not_run_again,
    what_follows_a_run_on_each_host_waits_for_that_host,
    a_run_that_somebody_asked_for_is_followed_too,
    a_follower_that_is_not_registered_waits_all_the_same,
    a_follower_that_waits_already_is_skipped,
    what_waits_for_another_reason_or_target_or_is_over_skips_no_follower,
);

async fn succeed(host: &Host, claim: &Claim, followers: &[Follower]) -> Finished {
    let run = host.run(claim).await;
    host.store.finish(&run, &success(), followers).await.unwrap()
}

/// The runs of a job.
async fn runs_of(host: &Host, name: &str) -> Vec<RunId> {
    let rows = host.store.history(&everything()).await.unwrap();
    rows.into_iter().filter(|row| row.job == name).map(|row| row.run).collect()
}

async fn a_success_makes_its_follower_wait(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    let upstream = one.run(&one.claim("extract", noon())).await;
    let now = noon() + 9 * SECOND;
    db.freeze_clock(now).await;
    let load = follower("load", &["extract"]);
    let answer = one.store.finish(&upstream, &success(), std::slice::from_ref(&load)).await.unwrap();
    let followed = vec![(job("load"), load.run)];
    assert_eq!(answer, Finished { recorded: true, lock: LockAtEnd::Released, followed });
    let waiting = row(&one.store, load.run).await;
    assert_eq!((waiting.state, waiting.kind), (RunState::Waiting, TriggerKind::After));
    assert_eq!((waiting.job.as_str(), waiting.scheduled_at, waiting.attempt), ("load", noon(), 1));
    assert_eq!((waiting.target, waiting.origin.as_str()), (Target::fleet(), upstream.run.to_string().as_str()));
    assert_eq!((waiting.reason.as_deref(), waiting.resource.as_str()), (Some("after"), "job:load"));
    assert_eq!((waiting.wait_until, waiting.not_before, waiting.host), (Some(now + 90 * SECOND), None, None));
    let rest = format!("start_by = '{}' AND reruns_left = 2 AND start_deadline_ms = 90000", text(now + 90 * SECOND));
    assert_eq!(db.count("runs", &format!("job = 'load' AND created_at = '{}' AND {rest}", text(now))).await, 1);
    let listed = other.store.waiting(&other.name).await.unwrap();
    assert_eq!(listed.iter().map(|run| (run.run, run.kind)).collect::<Vec<_>>(), [(load.run, TriggerKind::After)]);
    let run = other.take(load.run, "job:load").await;
    assert!(other.store.finish(&run, &success(), &[]).await.unwrap().recorded);
}

async fn an_ending_that_is_no_success_makes_nothing_wait(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let others = RunState::ALL.iter().copied().filter(|state| state.is_final() && *state != RunState::Succeeded);
    for state in others {
        let run = host.run(&host.claim(state.as_str(), now)).await;
        let load = follower("load", &[state.as_str()]);
        assert_eq!(host.store.finish(&run, &ending(state), &[load]).await.unwrap().followed, []);
    }
    assert_eq!(runs_of(&host, "load").await, []);
}

async fn an_ending_that_is_not_recorded_makes_nothing_wait(db: &TestDb) {
    let (host, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let run = host.run(&host.claim("extract", db.now().await)).await;
    let foreign = RunKey { owner: other.claimant("job:extract").owner, ..run.clone() };
    let load = follower("load", &["extract"]);
    let answer = host.store.finish(&foreign, &success(), std::slice::from_ref(&load)).await.unwrap();
    assert_eq!((answer.recorded, answer.followed), (false, vec![]));
    // Nor does a success after another ending.
    host.store.finish(&run, &ending(RunState::Failed), &[]).await.unwrap();
    let answer = host.store.finish(&run, &success(), &[load]).await.unwrap();
    assert_eq!((answer.recorded, answer.followed), (false, vec![]));
    assert_eq!(runs_of(&host, "load").await, []);
}

async fn a_follower_of_two_waits_for_both_for_the_same_instant_and_target(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon() + TTL).await;
    let both = || [follower("report", &["extract", "clean"])];
    let clean = |at| host.claim("clean", at);
    let on_host = |at| {
        let mut claim = clean(at);
        claim.trigger.target = Target::from_column("web-1");
        claim
    };
    // None of these is the success of the other one for noon.
    assert_eq!(succeed(&host, &clean(noon() + SECOND), &both()).await.followed, []);
    assert_eq!(succeed(&host, &on_host(noon()), &both()).await.followed, []);
    let failed = host.run(&Claim { attempt: 2, ..clean(noon()) }).await;
    host.store.finish(&failed, &ending(RunState::Failed), &both()).await.unwrap();
    let open = host.run(&Claim { attempt: 3, ..clean(noon()) }).await;
    host.store.give_back(&open, "drain").await.unwrap();
    assert_eq!(succeed(&host, &host.claim("extract", noon()), &both()).await.followed, []);
    assert_eq!(runs_of(&host, "report").await, []);

    let answer = succeed(&host, &clean(noon()), &both()).await;
    assert_eq!(answer.followed.len(), 1);
    let (_, run) = answer.followed[0];
    assert_eq!(runs_of(&host, "report").await, [run]);
    assert_eq!(row(&host.store, run).await.scheduled_at, noon());
}

async fn each_of_several_followers_is_looked_at_by_itself(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let followers = [
        follower("waits", &["extract"]),
        follower("waits for another", &["extract", "clean"]),
        follower("waits, too", &["extract", "extract"]),
    ];
    let mut answer = succeed(&host, &host.claim("extract", now), &followers).await.followed;
    answer.sort();
    assert_eq!(answer, [(job("waits"), followers[0].run), (job("waits, too"), followers[2].run)]);
    assert_eq!(db.count("runs", "state = 'waiting'").await, 2);
}

/// Ends a run, as a host does: until there is an answer.
async fn end(host: &Host, run: &RunKey, followers: &[Follower]) -> Finished {
    loop {
        match host.store.finish(run, &success(), followers).await {
            Ok(answer) => return answer,
            Err(StoreError::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Ends what waits, so that the next success finds none of it.
async fn nothing_waits(db: &TestDb) {
    db.sql("UPDATE runs SET state = 'cancelled', wait_until = NULL WHERE state = 'waiting'").await;
}

async fn of_two_upstreams_that_succeed_at_once_one_makes_the_follower_wait(db: &TestDb) {
    db.look_for_deadlocks().await;
    let hosts: Vec<_> = warm_stores(db, 2).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    let now = db.now().await;
    for round in 0..25 {
        let at = now - round * SECOND;
        let mut ends = Vec::new();
        for (host, name) in hosts.iter().zip(["extract", "clean"]) {
            let (host, run) = (host.clone(), host.run(&host.claim(name, at)).await);
            ends.push(async move { end(&host, &run, &[follower("report", &["extract", "clean"])]).await });
        }
        let answers = at_once(ends).await;
        let followed: Vec<_> = answers.iter().flat_map(|answer| &answer.followed).collect();
        assert_eq!(followed.len(), 1, "round {round}: {answers:?}");
        assert_eq!(db.count("runs", &format!("job = 'report' AND scheduled_at = '{}'", text(at))).await, 1);
        nothing_waits(db).await;
    }
    assert_eq!(db.deadlocks_logged(), [""; 0]);
}

async fn upstreams_and_followers_in_any_order_never_deadlock(db: &TestDb) {
    const JOBS: usize = 6;
    db.look_for_deadlocks().await;
    let hosts: Vec<_> = warm_stores(db, JOBS).await.into_iter().map(|store| Host::with_store(store, "web")).collect();
    let upstreams: Vec<_> = (0..JOBS).map(|number| format!("upstream-{number}")).collect();
    let upstreams: Vec<_> = upstreams.iter().map(String::as_str).collect();
    let now = db.now().await;
    for round in 0..5 {
        let mut ends = Vec::new();
        for (number, (host, name)) in hosts.iter().zip(&upstreams).enumerate() {
            let run = host.run(&host.claim(name, now - round * SECOND)).await;
            let mut followers: Vec<_> =
                (0..8).map(|follower_number| follower(&format!("follower-{follower_number}"), &upstreams)).collect();
            followers.rotate_left(number);
            let host = host.clone();
            ends.push(async move { end(&host, &run, &followers).await });
        }
        let answers = at_once(ends).await;
        assert_eq!(answers.iter().map(|answer| answer.followed.len()).sum::<usize>(), 8, "{answers:?}");
        assert_eq!(db.count("runs", "state = 'waiting'").await, 8);
        nothing_waits(db).await;
    }
    assert_eq!(db.deadlocks_logged(), [""; 0]);
}

async fn the_same_success_sent_again_answers_the_same_and_makes_nothing_wait(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("extract", db.now().await)).await;
    let first = host.store.finish(&run, &success(), &[follower("load", &["extract"])]).await.unwrap();
    let mut last = first.followed[0].1;
    // Under another name, too, and whatever has become of the first one's.
    for _ in 0..2 {
        let again = host.store.finish(&run, &success(), &[follower("load", &["extract"])]).await.unwrap();
        assert_eq!(again, Finished { lock: LockAtEnd::Gone, ..first.clone() });
        assert_eq!(runs_of(&host, "load").await, [first.followed[0].1]);
        if row(&host.store, last).await.state == RunState::Waiting {
            let load = host.take(last, "job:load").await;
            host.store.finish(&load, &ending(RunState::Failed), &[]).await.unwrap();
            last = load.run;
        }
    }
}

async fn a_success_sent_again_does_not_bring_a_pruned_follower_back(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("extract", db.now().await)).await;
    let load = follower("load", &["extract"]);
    host.store.finish(&run, &success(), std::slice::from_ref(&load)).await.unwrap();
    db.sql("DELETE FROM runs WHERE job = 'load'").await;
    let again = host.store.finish(&run, &success(), &[load]).await.unwrap();
    assert_eq!((again.recorded, again.followed), (true, vec![]));
    assert_eq!(runs_of(&host, "load").await, []);
}

async fn a_late_success_is_followed_too(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let run = host.run(&host.claim("extract", db.now().await)).await;
    db.let_expire("job:extract").await;
    host.store.recover(None).await.unwrap();
    assert_eq!(row(&host.store, run.run).await.state, RunState::Lost);
    let load = follower("load", &["extract"]);
    let answer = host.store.finish(&run, &success(), std::slice::from_ref(&load)).await.unwrap();
    assert_eq!(answer.followed, [(job("load"), load.run)]);
    assert_eq!(row(&host.store, load.run).await.origin, Origin::from_column(run.run.to_string()));
}

async fn a_trigger_that_succeeds_twice_is_followed_once(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let run = one.run(&Claim { reruns_left: 1, ..one.claim("extract", db.now().await) }).await;
    db.let_expire("job:extract").await;
    let rerun = other.store.recover(None).await.unwrap().lost[0].rerun.unwrap();
    let rerun = other.take(rerun, "job:extract").await;
    let first = other.store.finish(&rerun, &success(), &[follower("load", &["extract"])]).await.unwrap();
    assert_eq!(first.followed.len(), 1);
    let late = one.store.finish(&run, &success(), &[follower("load", &["extract"])]).await.unwrap();
    assert_eq!((late.recorded, late.followed), (true, vec![]));
    assert_eq!(runs_of(&one, "load").await, [first.followed[0].1]);
}

async fn a_follower_that_is_paused_is_missed(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    host.register("load", "digest").await;
    host.store.pause(&job("load"), &pausing()).await.unwrap();
    let run = host.run(&host.claim("extract", noon())).await;
    let load = follower("load", &["extract"]);
    for _ in 0..2 {
        let answer = host.store.finish(&run, &success(), std::slice::from_ref(&load)).await.unwrap();
        assert_eq!((answer.recorded, answer.followed), (true, vec![]));
    }
    let missed = row(&host.store, load.run).await;
    assert_eq!((missed.state, missed.reason.as_deref()), (RunState::Missed, Some("paused")));
    assert_eq!((missed.kind, missed.finished_at, missed.wait_until), (TriggerKind::After, Some(noon()), None));
    // It is over: a resumed job doesn't run it.
    host.store.resume(&job("load")).await.unwrap();
    assert_eq!(host.store.waiting(&host.name).await.unwrap(), []);
    assert_eq!(
        succeed(&host, &host.claim("extract", noon() - SECOND), &[follower("load", &["extract"])]).await.followed.len(),
        1
    );
}

async fn a_follower_whose_history_is_pruned_does_not_run_again(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    host.register("load", "digest").await;
    db.sql(format!("UPDATE jobs SET pruned_through = '{}'", text(noon()))).await;
    let followed = async |at: DateTime<Utc>| {
        succeed(&host, &host.claim("extract", at), &[follower("load", &["extract"])]).await.followed.len()
    };
    assert_eq!(followed(noon() - TimeDelta::hours(1)).await, 0);
    assert_eq!(followed(noon()).await, 0);
    assert_eq!(followed(noon() + MILLISECOND).await, 1);
}

async fn what_follows_a_run_on_each_host_waits_for_that_host(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let now = db.now().await;
    let mut waiting = Vec::new();
    for host in [&one, &other] {
        let mut claim = host.claim("rotate", now);
        claim.trigger.target = Target::from_column(host.name.as_str());
        claim.claimant.resource = resource(&format!("job:rotate@{}", host.name));
        let answer = succeed(host, &claim, &[follower("ship", &["rotate"])]).await;
        waiting.push(answer.followed[0].1);
    }
    for (host, run) in [&one, &other].into_iter().zip(waiting) {
        let listed = host.store.waiting(&host.name).await.unwrap();
        assert_eq!(listed.iter().map(|waiting| waiting.run).collect::<Vec<_>>(), [run]);
        assert_eq!(listed[0].trigger.target.as_str(), host.name.as_str());
    }
    let third = Host::new(db, "web-3");
    assert_eq!(third.store.waiting(&third.name).await.unwrap(), []);
}

async fn a_run_that_somebody_asked_for_is_followed_too(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let now = db.now().await;
    let trigger = Trigger { origin: Origin::from_column("request-1"), ..Trigger::scheduled(job("extract"), now) };
    let by_hand = Claim { trigger, kind: TriggerKind::Manual, ..host.claim("extract", now) };
    assert_eq!(succeed(&host, &by_hand, &[follower("load", &["extract"])]).await.followed.len(), 1);
}

async fn a_follower_that_is_not_registered_waits_all_the_same(db: &TestDb) {
    let host = Host::new(db, "web-1");
    host.register("extract", "digest").await;
    let claim = host.claim("extract", db.now().await + SECOND / 2);
    assert_eq!(succeed(&host, &claim, &[follower("load", &["extract"])]).await.followed.len(), 1);
}

async fn a_follower_that_waits_already_is_skipped(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon() + SECOND).await;
    let first = succeed(&host, &host.claim("extract", noon()), &[follower("load", &["extract"])]).await.followed;
    let second = host.run(&host.claim("extract", noon() + SECOND)).await;
    let load = follower("load", &["extract"]);
    for _ in 0..2 {
        let answer = host.store.finish(&second, &success(), std::slice::from_ref(&load)).await.unwrap();
        assert_eq!((answer.recorded, answer.followed), (true, vec![]));
    }
    let skipped = row(&host.store, load.run).await;
    assert_eq!((skipped.state, skipped.reason.as_deref()), (RunState::Skipped, Some("already_waiting")));
    assert_eq!((skipped.scheduled_at, skipped.kind), (noon() + SECOND, TriggerKind::After));
    assert_eq!((skipped.finished_at, skipped.wait_until), (Some(noon() + SECOND), None));
    assert_eq!(db.count("runs", "job = 'load' AND state = 'waiting'").await, 1);
    // Once that has begun, the next one waits.
    host.take(first[0].1, "job:load").await;
    let third = host.claim("extract", noon() + 2 * SECOND);
    assert_eq!(succeed(&host, &third, &[follower("load", &["extract"])]).await.followed.len(), 1);
}

async fn what_waits_for_another_reason_or_target_or_is_over_skips_no_follower(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    // Given back by its host.
    let given_back = host.run(&host.claim("load", noon() - SECOND)).await;
    host.store.give_back(&given_back, "drain").await.unwrap();
    let followed = async |at: DateTime<Utc>, target: Target| {
        let mut claim = host.claim("extract", at);
        claim.trigger.target = target;
        succeed(&host, &claim, &[follower("load", &["extract"])]).await.followed.len()
    };
    assert_eq!(followed(noon(), Target::fleet()).await, 1);
    assert_eq!(followed(noon(), Target::from_column("web-1")).await, 1);
    let until = noon() + 90 * SECOND;
    db.freeze_clock(until - MILLISECOND).await;
    assert_eq!(followed(noon() + SECOND, Target::fleet()).await, 0);
    // Nobody takes that any more.
    db.freeze_clock(until).await;
    assert_eq!(followed(noon() + 2 * SECOND, Target::fleet()).await, 1);
}

//! Which daemons live.

use std::collections::BTreeSet;

use cronlatch::clock::BootInstant;
use cronlatch::fleet::{HostRow, Label};
use cronlatch::store::HostBeat;

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_beat_tells_who_lives_the_caller_included,
    a_beat_again_keeps_the_start_and_takes_the_rest_over,
    a_daemon_without_a_beat_is_left_out_by_its_own_measure,
    a_daemon_that_goes_is_left_out,
    two_daemons_of_one_name_are_two,
    a_beat_brings_a_reading_of_the_databases_clock,
    a_label_that_this_version_refuses_is_left_out,
);

fn labels(words: &[&str]) -> BTreeSet<Label> {
    words.iter().map(|word| Label::new(*word).unwrap()).collect()
}

async fn names(host: &Host) -> Vec<String> {
    let mut names: Vec<_> =
        host.store.hosts().await.unwrap().into_iter().map(|row| row.name.as_str().to_owned()).collect();
    names.sort();
    names
}

async fn a_beat_tells_who_lives_the_caller_included(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    let alone = one.store.beat(&beat(&one)).await.unwrap().live;
    let row = |host: &Host| HostRow {
        instance: host.instance,
        name: host.name.clone(),
        version: "0.1.0".to_owned(),
        labels: labels(&["rack=7", "ssd"]),
        schedule_digest: "digest".to_owned(),
        clock_offset_ms: None,
        draining: false,
        started_at: noon(),
        seen_at: noon(),
    };
    assert_eq!(alone, [row(&one)]);
    let both = other.store.beat(&beat(&other)).await.unwrap().live;
    let mut expected = [row(&one), row(&other)];
    expected.sort_by_key(|row| row.instance);
    assert_eq!(both, expected);
    assert_eq!(one.store.hosts().await.unwrap(), expected);
}

async fn a_beat_again_keeps_the_start_and_takes_the_rest_over(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    host.store.beat(&beat(&host)).await.unwrap();
    db.freeze_clock(noon() + 9 * SECOND).await;
    let changed =
        HostBeat { schedule_digest: "edited".to_owned(), clock_offset_ms: Some(-1500), draining: true, ..beat(&host) };
    let live = host.store.beat(&changed).await.unwrap().live;
    assert_eq!(live.len(), 1);
    assert_eq!((live[0].started_at, live[0].seen_at), (noon(), noon() + 9 * SECOND));
    assert_eq!(
        (live[0].schedule_digest.as_str(), live[0].clock_offset_ms, live[0].draining),
        ("edited", Some(-1500), true)
    );
}

async fn a_daemon_without_a_beat_is_left_out_by_its_own_measure(db: &TestDb) {
    let (quick, slow) = (Host::new(db, "quick"), Host::new(db, "slow"));
    db.freeze_clock(noon()).await;
    quick.store.beat(&HostBeat { stale_after: 10 * SECOND, ..beat(&quick) }).await.unwrap();
    slow.store.beat(&HostBeat { stale_after: 100 * SECOND, ..beat(&slow) }).await.unwrap();
    for (after, expected) in [(9, vec!["quick", "slow"]), (11, vec!["slow"]), (99, vec!["slow"]), (101, vec![])] {
        db.freeze_clock(noon() + after * SECOND).await;
        assert_eq!(names(&quick).await, expected, "after {after} s");
    }
    quick.store.beat(&beat(&quick)).await.unwrap();
    assert_eq!(names(&slow).await, ["quick"]);
}

async fn a_daemon_that_goes_is_left_out(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    one.store.beat(&beat(&one)).await.unwrap();
    other.store.beat(&beat(&other)).await.unwrap();
    for _ in 0..2 {
        one.store.leave(one.instance).await.unwrap();
        assert_eq!(names(&one).await, ["web-2"]);
    }
}

async fn two_daemons_of_one_name_are_two(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-1"));
    one.store.beat(&beat(&one)).await.unwrap();
    other.store.beat(&beat(&other)).await.unwrap();
    assert_eq!(names(&one).await, ["web-1", "web-1"]);
    one.store.leave(one.instance).await.unwrap();
    assert_eq!(other.store.hosts().await.unwrap()[0].instance, other.instance);
}

async fn a_beat_brings_a_reading_of_the_databases_clock(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.set_clock(chrono::TimeDelta::days(100)).await;
    let (before, earliest) = (BootInstant::now(), db.now().await);
    let sample = host.store.beat(&beat(&host)).await.unwrap().sample;
    let (after, latest) = (BootInstant::now(), db.now().await + MILLISECOND);
    assert!(before <= sample.sent && sample.sent <= sample.received && sample.received <= after, "{sample:?}");
    assert!(earliest <= sample.at && sample.at <= latest, "{sample:?} between {earliest} and {latest}");
}

async fn a_label_that_this_version_refuses_is_left_out(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let words = ["ssd", "it's \"big\"", "", "ssd", "größe:9"].map(str::to_owned).to_vec();
    let live = host.store.beat(&HostBeat { labels: words, ..beat(&host) }).await.unwrap().live;
    assert_eq!(live[0].labels, labels(&["größe:9", "ssd"]));
    db.sql("UPDATE hosts SET labels = 'no list'").await;
    assert_eq!(host.store.hosts().await.unwrap()[0].labels, labels(&[]));
}

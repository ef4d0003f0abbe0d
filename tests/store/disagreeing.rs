//! Jobs that are not the same in all hosts' files.

use cronlatch::fleet::HostName;
use cronlatch::store::{Disagreement, HostBeat};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    hosts_with_one_schedule_agree,
    versions_are_told_with_their_hosts,
    a_job_that_a_host_lacks_is_told,
    hosts_that_are_gone_have_no_say,
    daemons_of_one_host_are_one_host,
    a_hundred_are_told_by_name,
    nobody_looks_at_the_jobs_of_equal_schedules,
);

/// A live host with these jobs and digests in its file.
async fn host(db: &TestDb, name: &str, jobs: &[(&str, &str)]) -> Host {
    let host = Host::new(db, name);
    read(&host, jobs).await;
    host
}

async fn read(host: &Host, jobs: &[(&str, &str)]) {
    let seen: Vec<_> = jobs.iter().map(|(name, digest)| seen(name, digest)).collect();
    host.store.register(host.instance, &seen).await.unwrap();
    let schedule_digest = jobs.iter().map(|(name, digest)| format!("{name} {digest}")).collect::<Vec<_>>().join(";");
    host.store.beat(&HostBeat { schedule_digest, ..beat(host) }).await.unwrap();
}

fn names(hosts: &[&str]) -> Vec<HostName> {
    hosts.iter().map(|name| HostName::new(*name).unwrap()).collect()
}

fn disagreement(job: &str, versions: &[(&str, &[&str])], missing_on: &[&str]) -> Disagreement {
    let versions = versions.iter().map(|(digest, hosts)| ((*digest).to_owned(), names(hosts))).collect();
    Disagreement { job: job.to_owned(), versions, missing_on: names(missing_on) }
}

async fn hosts_with_one_schedule_agree(db: &TestDb) {
    let alone = host(db, "web-1", &[("backup", "one")]).await;
    assert_eq!(alone.store.disagreements().await.unwrap(), []);
    host(db, "web-2", &[("backup", "one")]).await;
    assert_eq!(alone.store.disagreements().await.unwrap(), []);
}

async fn versions_are_told_with_their_hosts(db: &TestDb) {
    host(db, "web-3", &[("backup", "b"), ("same", "s")]).await;
    host(db, "web-1", &[("backup", "b"), ("same", "s")]).await;
    let two = host(db, "web-2", &[("backup", "a"), ("same", "s")]).await;
    let expected = disagreement("backup", &[("a", &["web-2"]), ("b", &["web-1", "web-3"])], &[]);
    assert_eq!(two.store.disagreements().await.unwrap(), [expected]);
    read(&two, &[("backup", "b"), ("same", "s")]).await;
    assert_eq!(two.store.disagreements().await.unwrap(), []);
}

async fn a_job_that_a_host_lacks_is_told(db: &TestDb) {
    let one = host(db, "web-1", &[("backup", "one"), ("same", "s")]).await;
    host(db, "web-2", &[("same", "s"), ("zone", "z")]).await;
    host(db, "web-3", &[]).await;
    let expected = [
        disagreement("backup", &[("one", &["web-1"])], &["web-2", "web-3"]),
        disagreement("same", &[("s", &["web-1", "web-2"])], &["web-3"]),
        disagreement("zone", &[("z", &["web-2"])], &["web-1", "web-3"]),
    ];
    assert_eq!(one.store.disagreements().await.unwrap(), expected);
}

async fn hosts_that_are_gone_have_no_say(db: &TestDb) {
    db.freeze_clock(noon()).await;
    host(db, "dead", &[("backup", "old")]).await;
    db.freeze_clock(noon() + 31 * SECOND).await;
    let leaving = host(db, "leaving", &[("backup", "older")]).await;
    let one = host(db, "web-1", &[("backup", "new")]).await;
    let expected = disagreement("backup", &[("new", &["web-1"]), ("older", &["leaving"])], &[]);
    assert_eq!(one.store.disagreements().await.unwrap(), [expected]);
    leaving.store.leave(leaving.instance).await.unwrap();
    assert_eq!(one.store.disagreements().await.unwrap(), []);
}

async fn daemons_of_one_host_are_one_host(db: &TestDb) {
    let one = host(db, "web-1", &[("backup", "new")]).await;
    host(db, "web-1", &[("backup", "new")]).await;
    host(db, "web-1", &[("backup", "old")]).await;
    for _ in 0..2 {
        host(db, "web-2", &[]).await;
    }
    let expected = disagreement("backup", &[("new", &["web-1"]), ("old", &["web-1"])], &["web-2"]);
    assert_eq!(one.store.disagreements().await.unwrap(), [expected]);
}

async fn a_hundred_are_told_by_name(db: &TestDb) {
    // Upper case before lower case, on both databases.
    let named: Vec<_> = (0..130).map(|number| format!("{}-{number:03}", if number < 5 { 'Z' } else { 'a' })).collect();
    let jobs: Vec<_> = named.iter().map(|name| (name.as_str(), "one")).collect();
    let one = host(db, "web-1", &jobs).await;
    host(db, "web-2", &[]).await;
    let told: Vec<_> = one.store.disagreements().await.unwrap().into_iter().map(|found| found.job).collect();
    assert_eq!(told, named[..100]);
}

async fn nobody_looks_at_the_jobs_of_equal_schedules(db: &TestDb) {
    let one = host(db, "web-1", &[("backup", "one")]).await;
    let two = host(db, "web-2", &[("backup", "one")]).await;
    // As no daemons leave it: their schedules are said to be equal.
    two.store.register(two.instance, &[seen("backup", "two")]).await.unwrap();
    assert_eq!(one.store.disagreements().await.unwrap(), []);
}

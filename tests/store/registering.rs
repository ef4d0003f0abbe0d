//! What the tables learn of the jobs in the hosts' files.

use chrono::{DateTime, Utc};
use cronlatch::store::ProgressQuery;
use cronlatch::trigger::Target;

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_new_job_begins_now,
    an_edited_job_begins_anew,
    a_job_that_did_not_change_goes_on_where_it_was,
    an_edited_job_never_falls_behind_what_is_accounted_for,
    a_job_keeps_its_pause_when_it_is_edited,
    what_each_daemon_last_read_is_kept_apart,
    many_hosts_register_the_same_jobs_at_once,
);

async fn watermark(host: &Host) -> DateTime<Utc> {
    let asked = [ProgressQuery { job: job("backup"), target: Target::fleet(), since: noon() }];
    host.store.progress(&asked).await.unwrap()[0].caught_up_through
}

async fn a_new_job_begins_now(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    host.register("backup", "one").await;
    assert_eq!(watermark(&host).await, noon());
}

async fn an_edited_job_begins_anew(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    host.register("backup", "one").await;
    db.freeze_clock(noon() + TTL).await;
    host.register("backup", "two").await;
    // But for the last seconds, whose claims may be on their way.
    assert_eq!(watermark(&host).await, noon() + TTL - 10 * SECOND);
}

async fn a_job_that_did_not_change_goes_on_where_it_was(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    one.register("backup", "one").await;
    db.freeze_clock(noon() + TTL).await;
    one.register("backup", "one").await;
    other.register("backup", "one").await;
    assert_eq!(watermark(&one).await, noon());
}

async fn an_edited_job_never_falls_behind_what_is_accounted_for(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    host.register("backup", "one").await;
    db.freeze_clock(noon() - TTL).await;
    host.register("backup", "two").await;
    assert_eq!(watermark(&host).await, noon());
}

async fn a_job_keeps_its_pause_when_it_is_edited(db: &TestDb) {
    let host = Host::new(db, "web-1");
    host.register("backup", "one").await;
    db.sql("UPDATE jobs SET paused = true, paused_by = 'anna'").await;
    host.register("backup", "two").await;
    assert_eq!(db.count("jobs", "paused AND paused_by = 'anna' AND digest = 'two'").await, 1);
}

async fn what_each_daemon_last_read_is_kept_apart(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    one.register("backup", "new").await;
    other.register("backup", "old").await;
    let digests = db.sql("SELECT digest FROM job_definitions ORDER BY digest").await;
    assert_eq!(digests, ["new", "old"]);
    // A job that is in its file no more is not in the table either.
    other.register("restore", "new").await;
    let jobs = db.sql("SELECT job, digest FROM job_definitions ORDER BY job").await;
    assert_eq!(jobs, ["backup|new", "restore|new"]);
}

async fn many_hosts_register_the_same_jobs_at_once(db: &TestDb) {
    let names: Vec<_> = (0..50).map(|number| format!("job-{number}")).collect();
    let hosts = warm_stores(db, 8).await.into_iter().map(|store| Host::with_store(store, "web")).enumerate();
    let registering = hosts.map(|(number, host)| {
        let digest = format!("digest-{}", number % 2);
        let mut jobs: Vec<_> = names.iter().map(|name| seen(name, &digest)).collect();
        // Files differ in their order, too.
        jobs.rotate_left(number * 6);
        async move {
            for _ in 0..5 {
                host.store.register(host.instance, &jobs).await.unwrap();
            }
        }
    });
    at_once(registering).await;
    assert_eq!((db.count("jobs", "1 = 1").await, db.count("job_definitions", "1 = 1").await), (50, 400));
    assert_eq!(db.errors_logged(), [""; 0]);
}

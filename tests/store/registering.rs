//! What the tables learn of the jobs in the hosts' files.

use chrono::{DateTime, Utc};
use cronlatch::store::{JobProgress, JobSeen, ProgressQuery};
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
    an_edited_job_that_starts_late_leaves_the_claims_that_are_on_their_way,
    each_target_begins_and_is_edited_by_itself,
    a_job_that_moves_from_one_host_to_every_host_and_back_begins_now,
    a_job_that_was_taken_out_begins_anew_when_it_comes_back,
    a_job_that_another_host_still_has_goes_on_when_one_takes_it_out,
    another_hosts_watermark_is_left_alone_when_a_job_is_taken_out,
    a_job_that_a_host_may_not_run_has_no_watermark_there,
    a_job_that_a_host_may_run_again_counts_as_edited_there,
    a_job_of_one_host_of_the_fleet_has_its_watermark_wherever_it_may_run,
    when_a_job_was_edited_is_kept_for_each_target,
    an_edit_by_a_clock_that_was_ahead_means_nothing,
);

async fn watermark(host: &Host) -> DateTime<Utc> {
    watermark_of(host, Target::fleet()).await
}

async fn watermark_of(host: &Host, target: Target) -> DateTime<Utc> {
    progress_of(host, target).await.unwrap().caught_up_through
}

async fn progress_of(host: &Host, target: Target) -> Option<JobProgress> {
    let asked = [ProgressQuery { job: job("backup"), target }];
    host.store.progress(&asked).await.unwrap().pop()
}

/// A job that this host runs beside all others.
fn own(host: &Host, digest: &str) -> JobSeen {
    JobSeen { target: Target::from_column(host.name.as_str()), ..seen("backup", digest) }
}

async fn register(host: &Host, jobs: &[JobSeen]) {
    host.store.register(host.instance, jobs).await.unwrap();
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

async fn an_edited_job_that_starts_late_leaves_the_claims_that_are_on_their_way(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let late = |digest| JobSeen { start_delay: 90 * SECOND, ..seen("backup", digest) };
    db.freeze_clock(noon()).await;
    register(&host, &[late("one")]).await;
    // A new job has nothing on its way.
    assert_eq!(watermark(&host).await, noon());
    db.freeze_clock(noon() + 5 * TTL).await;
    register(&host, &[late("two")]).await;
    assert_eq!(watermark(&host).await, noon() + 5 * TTL - 100 * SECOND);
}

async fn each_target_begins_and_is_edited_by_itself(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let watermarks = async || {
        let mut found = Vec::new();
        for name in ["web-1", "web-2"] {
            found.push(watermark_of(&one, Target::from_column(name)).await);
        }
        found
    };
    db.freeze_clock(noon()).await;
    register(&one, &[own(&one, "one")]).await;
    db.freeze_clock(noon() + TTL).await;
    register(&other, &[own(&other, "one")]).await;
    assert_eq!(watermarks().await, [noon(), noon() + TTL]);
    db.freeze_clock(noon() + 2 * TTL).await;
    register(&one, &[own(&one, "two")]).await;
    assert_eq!(watermarks().await, [noon() + 2 * TTL - 10 * SECOND, noon() + TTL]);
    // The other host reads its file later, and is no less edited for it.
    db.freeze_clock(noon() + 3 * TTL).await;
    register(&other, &[own(&other, "two")]).await;
    assert_eq!(watermarks().await, [noon() + 2 * TTL - 10 * SECOND, noon() + 3 * TTL - 10 * SECOND]);
}

async fn a_job_that_moves_from_one_host_to_every_host_and_back_begins_now(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let fleet = seen("backup", "one");
    db.freeze_clock(noon()).await;
    for (number, job) in (0..).zip([fleet.clone(), own(&host, "every"), fleet, own(&host, "every")]) {
        let now = noon() + number * TTL;
        db.freeze_clock(now).await;
        register(&host, std::slice::from_ref(&job)).await;
        let begins = if number < 2 { now } else { now - 10 * SECOND };
        assert_eq!(watermark_of(&host, job.target).await, begins, "reading {number}");
    }
}

async fn a_job_that_was_taken_out_begins_anew_when_it_comes_back(db: &TestDb) {
    let host = Host::new(db, "web-1");
    let both = [seen("backup", "one"), JobSeen { job: job("rotate"), ..own(&host, "one") }];
    db.freeze_clock(noon()).await;
    host.beat().await;
    register(&host, &both).await;
    register(&host, &[seen("restore", "one")]).await;
    db.freeze_clock(noon() + TTL).await;
    register(&host, &both).await;
    assert_eq!(watermark(&host).await, noon() + TTL - 10 * SECOND);
    let begun = super::database::text(noon() + TTL - 10 * SECOND);
    assert_eq!(db.count("job_progress", &format!("job = 'rotate' AND caught_up_through = '{begun}'")).await, 1);
}

async fn a_job_that_another_host_still_has_goes_on_when_one_takes_it_out(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    for host in [&one, &other] {
        host.beat().await;
        register(host, &[seen("backup", "one")]).await;
    }
    register(&one, &[]).await;
    db.freeze_clock(noon() + TTL).await;
    register(&one, &[seen("backup", "one")]).await;
    assert_eq!(watermark(&one).await, noon());
}

async fn another_hosts_watermark_is_left_alone_when_a_job_is_taken_out(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    for host in [&one, &other] {
        host.beat().await;
        register(host, &[own(host, "one")]).await;
    }
    // Away for a while, and it will account for that itself.
    other.store.leave(other.instance).await.unwrap();
    register(&one, &[]).await;
    db.freeze_clock(noon() + TTL).await;
    for host in [&one, &other] {
        register(host, &[own(host, "one")]).await;
    }
    assert_eq!(watermark_of(&one, Target::from_column("web-1")).await, noon() + TTL - 10 * SECOND);
    assert_eq!(watermark_of(&one, Target::from_column("web-2")).await, noon());
}

async fn a_job_that_a_host_may_not_run_has_no_watermark_there(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    register(&one, &[JobSeen { serves: false, ..own(&one, "one") }]).await;
    register(&other, &[own(&other, "one")]).await;
    let target = |host: &Host| Target::from_column(host.name.as_str());
    assert_eq!(progress_of(&one, target(&one)).await, None);
    assert_eq!(watermark_of(&one, target(&other)).await, noon());
    // It is in its file all the same.
    assert_eq!(db.count("job_definitions", "job = 'backup' AND digest = 'one'").await, 2);
    // New there, once it may run it.
    db.freeze_clock(noon() + TTL).await;
    register(&one, &[own(&one, "one")]).await;
    let begun = progress_of(&one, target(&one)).await.unwrap();
    assert_eq!((begun.caught_up_through, begun.edited_at), (noon() + TTL, None));
}

async fn a_job_that_a_host_may_run_again_counts_as_edited_there(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let target = |host: &Host| Target::from_column(host.name.as_str());
    db.freeze_clock(noon()).await;
    for host in [&one, &other] {
        register(host, &[own(host, "one")]).await;
    }
    for _ in 0..2 {
        register(&one, &[JobSeen { serves: false, ..own(&one, "one") }]).await;
        assert_eq!(watermark_of(&one, target(&one)).await, noon());
    }
    let again = noon() + TTL;
    db.freeze_clock(again).await;
    for host in [&one, &other] {
        register(host, &[own(host, "one")]).await;
    }
    let edited = progress_of(&one, target(&one)).await.unwrap();
    assert_eq!((edited.caught_up_through, edited.edited_at), (again - 10 * SECOND, Some(again)));
    let untouched = progress_of(&one, target(&other)).await.unwrap();
    assert_eq!((untouched.caught_up_through, untouched.edited_at), (noon(), None));
}

async fn a_job_of_one_host_of_the_fleet_has_its_watermark_wherever_it_may_run(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    register(&one, &[JobSeen { serves: false, ..seen("backup", "one") }]).await;
    assert_eq!(watermark(&one).await, noon());
    db.freeze_clock(noon() + TTL).await;
    register(&other, &[seen("backup", "one")]).await;
    assert_eq!(watermark(&one).await, noon());
}

async fn when_a_job_was_edited_is_kept_for_each_target(db: &TestDb) {
    let (one, other) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    let edits = async || {
        let mut found = Vec::new();
        for name in ["web-1", "web-2"] {
            found.push(progress_of(&one, Target::from_column(name)).await.unwrap().edited_at);
        }
        found
    };
    for (number, digest) in [(0, "one"), (1, "one"), (2, "two"), (3, "two")] {
        db.freeze_clock(noon() + number * TTL).await;
        register(&one, &[own(&one, digest)]).await;
        register(&other, &[own(&other, "one")]).await;
        let edited_at = (number >= 2).then(|| noon() + 2 * TTL);
        assert_eq!(edits().await, [edited_at, None], "{digest}, reading {number}");
    }
    // Nor does a reading that only says that it is still there.
    db.sql("UPDATE job_progress SET seen_at = '2001-01-01T00:00:00.000Z'").await;
    register(&one, &[own(&one, "two")]).await;
    assert_eq!(edits().await, [Some(noon() + 2 * TTL), None]);
    register(&one, &[own(&one, "three")]).await;
    assert_eq!(edits().await, [Some(noon() + 3 * TTL), None]);
}

async fn an_edit_by_a_clock_that_was_ahead_means_nothing(db: &TestDb) {
    let host = Host::new(db, "web-1");
    db.freeze_clock(noon()).await;
    host.register("backup", "one").await;
    let ahead = noon() + 60 * TTL;
    db.freeze_clock(ahead).await;
    host.register("backup", "two").await;
    let edited_at = async || progress_of(&host, Target::fleet()).await.unwrap().edited_at;
    assert_eq!(edited_at().await, Some(ahead));
    db.freeze_clock(noon() + TTL).await;
    assert_eq!(edited_at().await, None);
}

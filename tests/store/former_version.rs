//! Hosts of the version before, on tables of this one: they claim, end and take as they did, and the new
//! ones understand what they leave.

use cronlatch::store::{Claimed, RunKey};
use cronlatch::trigger::{RunId, RunState};

use super::database::{TestDb, text};
use super::fixtures::*;

on_both_databases!(a_run_of_the_version_before_is_a_run_like_any_other,);

/// What version 2 sends for a claim of `backup`, and the token that it gets.
async fn claim_as_before(db: &TestDb, run: RunId, host: &Host, key: &RunKey) {
    let (owner, public, at) = (key.owner.reveal(), key.owner.public(), text(noon()));
    match db {
        TestDb::Postgres(_) => {
            let sql = format!(
                "SELECT (c).outcome FROM cronlatch_claim_v2('{run}', 'backup', '{at}', '', 'schedule', 1, 'schedule', \
                 'web-1', '{}', '{owner}', '{}', 'job:backup', 60000, NULL, NULL, NULL, 60000, 2) AS c",
                host.instance,
                public.as_str()
            );
            assert_eq!(db.sql(sql).await, ["granted"]);
        }
        TestDb::Sqlite(_) => {
            let sql = format!(
                "UPDATE fencing_tokens SET last = last + 1; \
                 INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, created_at, host, \
                 instance, owner, resource, start_deadline_ms, start_by, reruns_left) VALUES ('{run}', 'backup', '{at}', \
                 '', 'schedule', 1, 'schedule', 'claimed', '{at}', 'web-1', '{}', '{}', 'job:backup', 60000, '{at}', 2); \
                 INSERT INTO distributed_locks (resource, owner, token, acquired_at, renewed_at, expires_at) \
                 SELECT 'job:backup', '{owner}', last, '{at}', '{at}', '{}' FROM fencing_tokens; \
                 UPDATE runs SET token = (SELECT last FROM fencing_tokens), claimed_at = '{at}' WHERE id = '{run}'",
                host.instance,
                public.as_str(),
                text(noon() + TTL)
            );
            db.sql(sql).await;
        }
    }
}

async fn a_run_of_the_version_before_is_a_run_like_any_other(db: &TestDb) {
    let (before, new) = (Host::new(db, "web-1"), Host::new(db, "web-2"));
    db.freeze_clock(noon()).await;
    let run = RunId::generate();
    let mut claimant = before.claimant("job:backup");
    let mut key = RunKey {
        run,
        owner: claimant.owner.clone(),
        resource: claimant.resource.clone(),
        token: cronlatch::lock::FencingToken::new(0),
    };
    claim_as_before(db, run, &before, &key).await;
    key.token = row(&new.store, run).await.token.unwrap();
    let answer = new.store.claim(&new.claim("backup", noon())).await.unwrap();
    assert!(matches!(answer, Claimed::AlreadyClaimed { .. }), "{answer:?}");
    // What was asked of it is seen by nobody until its host is of this version.
    new.store.request_cancel(run, &cancel()).await.unwrap();
    if let TestDb::Postgres(_) = db {
        let public = key.owner.public();
        let (owner, token, at) = (key.owner.reveal(), key.token.get(), text(noon()));
        let finished = format!(
            "SELECT cronlatch_start_v1('{run}', '{0}', {token}, '{at}'); \
             SELECT recorded, lock FROM cronlatch_finish_v2('{run}', '{owner}', '{0}', 'job:backup', {token}, 'lost', \
             NULL, NULL, NULL, NULL, '{at}', NULL, gen_random_uuid(), NULL)",
            public.as_str()
        );
        assert_eq!(db.sql(finished).await, ["t", "t|released"]);
    } else {
        db.freeze_clock(noon() + TTL).await;
        assert_eq!(new.store.recover(None).await.unwrap().lost[0].rerun, None);
        return;
    }
    assert_eq!(row(&new.store, run).await.state, RunState::Lost);
    // Its rerun is one of version 2, which knows nothing of requests, and is taken by either.
    let rerun = new.store.waiting(&new.name).await.unwrap()[0].run;
    claimant.owner = before.claimant("job:backup").owner;
    let taken = format!(
        "SELECT (c).outcome FROM cronlatch_take_v2('{rerun}', 'web-1', '{}', '{}', '{}', 'job:backup', 60000, NULL, \
         NULL) AS c",
        before.instance,
        claimant.owner.reveal(),
        claimant.owner.public().as_str()
    );
    assert_eq!(db.sql(taken).await, ["granted"]);
    let key = RunKey { run: rerun, owner: claimant.owner, token: row(&new.store, rerun).await.token.unwrap(), ..key };
    assert!(new.store.finish(&key, &success(), &[]).await.unwrap().recorded);
}

//! The port `Locks`.

pub(in crate::store::postgres) const ACQUIRE: &str =
    concat!("SELECT ", grant_columns!("g"), " FROM cronlatch_acquire_v1($1, $2, $3, $4) AS g");

/// All of a batch. A row that somebody has locked is skipped and told apart from one that is lost;
/// sorted, so that two batches can't deadlock.
pub(in crate::store::postgres) const RENEW: &str = "
WITH input AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
        WITH ORDINALITY AS i (resource, owner, token, ttl_ms, place)
), locked AS MATERIALIZED (
    SELECT l.id, i.place, i.ttl_ms, l.expires_at
    FROM distributed_locks l JOIN input i ON l.resource = i.resource
    WHERE l.owner = i.owner AND l.released_at IS NULL AND (i.token IS NULL OR l.token = i.token)
    ORDER BY l.resource
    FOR NO KEY UPDATE OF l SKIP LOCKED
), clock AS MATERIALIZED (
    SELECT cronlatch_now_v1() AS now FROM (SELECT count(*) FROM locked) AS after_locking
), renewed AS (
    UPDATE distributed_locks l
    SET renewed_at = clock.now, expires_at = clock.now + locked.ttl_ms * interval '1 millisecond'
    FROM locked, clock
    WHERE l.id = locked.id AND locked.expires_at > clock.now
    RETURNING locked.place, l.expires_at
)
SELECT renewed.expires_at, clock.now, l.owner,
       coalesce(l.owner = i.owner AND l.released_at IS NULL AND (i.token IS NULL OR l.token = i.token), false) AS ours,
       coalesce(l.expires_at > clock.now, false) AS live
FROM input i
CROSS JOIN clock
LEFT JOIN renewed ON renewed.place = i.place
LEFT JOIN distributed_locks l ON l.resource = i.resource
ORDER BY i.place";

pub(in crate::store::postgres) const RELEASE: &str = "SELECT cronlatch_release_v1($1, $2, $3) AS released";

/// The columns of a lock's row, with the run that it guards.
macro_rules! lock_columns {
    () => {
        "SELECT l.resource, l.owner, l.token, l.acquired_at, l.renewed_at, l.expires_at, l.released_at, \
                r.id AS lock_run, cronlatch_now_v1() AS now \
         FROM distributed_locks l \
         LEFT JOIN runs r ON r.resource = l.resource AND r.token = l.token AND r.state IN ('claimed', 'running') "
    };
}

pub(in crate::store::postgres) const LOCK: &str =
    concat!(lock_columns!(), "WHERE l.resource = $1 AND l.expires_at > cronlatch_now_v1()");

pub(in crate::store::postgres) const LOCKS: &str =
    concat!(lock_columns!(), "WHERE l.released_at IS NULL ORDER BY l.resource");

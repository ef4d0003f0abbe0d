//! The port `Locks`.

pub(in crate::store::sqlite) const ACQUIRE_LOOK: &str = "
SELECT l.resource, l.owner, l.token, l.acquired_at, l.renewed_at, l.expires_at, l.released_at, r.id AS lock_run,
       c.now
FROM distributed_locks l CROSS JOIN cronlatch_now_v1 c
LEFT JOIN runs r ON r.resource = l.resource AND r.token = l.token AND r.state IN ('claimed', 'running')
WHERE l.resource = $1";

pub(in crate::store::sqlite) const DRAW_TOKEN: &str =
    "UPDATE fencing_tokens SET last = last + 1 WHERE id = 1 RETURNING last";

pub(in crate::store::sqlite) const ACQUIRE: &str = "
INSERT INTO distributed_locks (resource, owner, token, acquired_at, renewed_at, expires_at)
VALUES ($1, $2, $3, $4, $4, $5)
ON CONFLICT (resource) DO UPDATE
SET owner = excluded.owner, token = excluded.token, acquired_at = excluded.acquired_at,
    renewed_at = excluded.renewed_at, expires_at = excluded.expires_at, released_at = NULL
WHERE distributed_locks.expires_at <= excluded.acquired_at OR distributed_locks.owner = excluded.owner
RETURNING token";

pub(in crate::store::sqlite) const RENEW: &str = "
UPDATE distributed_locks SET renewed_at = $4, expires_at = $5
WHERE resource = $1 AND owner = $2 AND ($3 IS NULL OR token = $3) AND released_at IS NULL AND expires_at > $4
RETURNING expires_at";

pub(in crate::store::sqlite) const RENEW_LOOK: &str =
    "SELECT owner, token, expires_at, released_at FROM distributed_locks WHERE resource = $1";

pub(in crate::store::sqlite) const RELEASE: &str = "
UPDATE distributed_locks
SET expires_at = '1970-01-01T00:00:00.000Z', released_at = (SELECT now FROM cronlatch_now_v1)
WHERE resource = $1 AND owner = $2 AND ($3 IS NULL OR token = $3) AND released_at IS NULL
  AND expires_at > (SELECT now FROM cronlatch_now_v1)
RETURNING id";

/// The columns of a lock's row, with the run that it guards.
macro_rules! lock_columns {
    () => {
        "SELECT l.resource, l.owner, l.token, l.acquired_at, l.renewed_at, l.expires_at, l.released_at, \
                r.id AS lock_run, c.now \
         FROM distributed_locks l CROSS JOIN cronlatch_now_v1 c \
         LEFT JOIN runs r ON r.resource = l.resource AND r.token = l.token AND r.state IN ('claimed', 'running') "
    };
}

pub(in crate::store::sqlite) const LOCK: &str =
    concat!(lock_columns!(), "WHERE l.resource = $1 AND l.expires_at > c.now");

pub(in crate::store::sqlite) const LOCKS: &str =
    concat!(lock_columns!(), "WHERE l.released_at IS NULL ORDER BY l.resource");

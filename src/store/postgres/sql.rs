//! The statements, in the order of the port. `../sqlite/sql.rs` has the same names.

/// Begins a transaction whose waits for rows are bounded.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '500ms'";

pub(super) const COMMIT: &str = "COMMIT";

/// Columns of a grant's answer, from `g`.
macro_rules! grant_columns {
    ($g:literal) => {
        concat!(
            "(",
            $g,
            ").outcome AS lock_outcome, (",
            $g,
            ").resource AS resource, (",
            $g,
            ").owner AS owner, \
             (",
            $g,
            ").token AS token, (",
            $g,
            ").acquired_at AS acquired_at, (",
            $g,
            ").expires_at AS expires_at, \
             (",
            $g,
            ").now AS now, (",
            $g,
            ").run AS lock_run, (",
            $g,
            ").off_ms AS off_ms, \
             (",
            $g,
            ").prev_owner AS prev_owner, (",
            $g,
            ").prev_token AS prev_token, \
             (",
            $g,
            ").prev_acquired_at AS prev_acquired_at, (",
            $g,
            ").prev_expires_at AS prev_expires_at"
        )
    };
}

pub(super) const ACQUIRE: &str =
    concat!("SELECT ", grant_columns!("g"), " FROM cronlatch_acquire_v1($1, $2, $3, $4) AS g");

/// All of a batch. A row that somebody has locked is skipped and told apart from one that is lost;
/// sorted, so that two batches can't deadlock.
pub(super) const RENEW: &str = "
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

pub(super) const RELEASE: &str = "SELECT cronlatch_release_v1($1, $2, $3) AS released";

/// The columns of a lock's row, with the run that it guards.
macro_rules! lock_columns {
    () => {
        "SELECT l.resource, l.owner, l.token, l.acquired_at, l.renewed_at, l.expires_at, l.released_at, \
                r.id AS lock_run, cronlatch_now_v1() AS now \
         FROM distributed_locks l \
         LEFT JOIN runs r ON r.resource = l.resource AND r.token = l.token AND r.state IN ('claimed', 'running') "
    };
}

pub(super) const LOCK: &str = concat!(lock_columns!(), "WHERE l.resource = $1 AND l.expires_at > cronlatch_now_v1()");

pub(super) const LOCKS: &str = concat!(lock_columns!(), "WHERE l.released_at IS NULL ORDER BY l.resource");

/// Columns of a claim's answer.
macro_rules! claim_columns {
    () => {
        "c.outcome, c.run, c.host, c.state, c.reason, c.wait_until, c.early_ms, "
    };
}

pub(super) const CLAIM: &str = concat!(
    "SELECT ",
    claim_columns!(),
    grant_columns!("c.lock"),
    " FROM cronlatch_claim_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) AS c"
);

pub(super) const UNCLAIMED: &str = "
SELECT i.place
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[])
     WITH ORDINALITY AS i (job, scheduled_at, target, origin, place)
WHERE NOT EXISTS (
    SELECT FROM runs r
    WHERE r.job = i.job AND r.scheduled_at = i.scheduled_at AND r.target = i.target AND r.origin = i.origin
      AND r.attempt = 1
)
ORDER BY i.place";

pub(super) const START: &str = "SELECT cronlatch_start_v1($1, $2, $3, $4) AS started";

pub(super) const FINISH: &str =
    "SELECT recorded, lock FROM cronlatch_finish_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

pub(super) const GIVE_BACK: &str = "SELECT cronlatch_give_back_v1($1, $2, $3, $4, $5, $6) AS given";

pub(super) const WAITING: &str = "
SELECT id, job, scheduled_at, target, origin, attempt, trigger, created_at, wait_until
FROM runs WHERE state = 'waiting' ORDER BY id LIMIT 1000";

pub(super) const TAKE: &str = concat!(
    "SELECT ",
    claim_columns!(),
    grant_columns!("c.lock"),
    " FROM cronlatch_take_v1($1, $2, $3, $4, $5, $6, $7, $8) AS c"
);

/// Open runs without a live lock, and waiting ones whose time is over. Reads only: nearly always
/// there are none.
pub(super) const RECOVERABLE: &str = "
SELECT cronlatch_now_v1() AS now,
       (SELECT count(*) FROM runs r
        WHERE r.state IN ('claimed', 'running') AND NOT EXISTS (
            SELECT FROM distributed_locks l
            WHERE l.resource = r.resource AND l.token = r.token AND l.released_at IS NULL
              AND l.expires_at > cronlatch_now_v1())) AS lost,
       (SELECT count(*) FROM runs WHERE state = 'waiting' AND wait_until <= cronlatch_now_v1()) AS overdue";

pub(super) const LOSE: &str = "
UPDATE runs SET state = 'lost', reason = 'lease_expired', finished_at = cronlatch_now_v1()
WHERE id IN (
    SELECT r.id FROM runs r
    WHERE r.state IN ('claimed', 'running') AND NOT EXISTS (
        SELECT FROM distributed_locks l
        WHERE l.resource = r.resource AND l.token = r.token AND l.released_at IS NULL
          AND l.expires_at > cronlatch_now_v1())
    ORDER BY r.id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING id, job, scheduled_at, target, origin, attempt, host, resource, token, start_deadline_ms, reruns_left";

pub(super) const FREE_LOST: &str = "
UPDATE distributed_locks SET expires_at = 'epoch', released_at = cronlatch_now_v1()
WHERE resource = $1 AND token = $2 AND released_at IS NULL";

pub(super) const RERUN: &str = "SELECT cronlatch_rerun_v1($1, $2) AS made";

pub(super) const OVERDUE: &str = "
UPDATE runs
SET state = CASE WHEN reason = 'lock_held' THEN 'skipped' ELSE 'missed' END,
    reason = CASE WHEN reason = 'lock_held' THEN 'wait_timed_out' ELSE 'start_deadline' END,
    finished_at = cronlatch_now_v1()
WHERE id IN (
    SELECT id FROM runs WHERE state = 'waiting' AND wait_until <= cronlatch_now_v1()
    ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING id, job, scheduled_at, target, origin, attempt, resource, state, reason";

pub(super) const PROGRESS_JOBS: &str = "
SELECT j.name, j.caught_up_through,
       (SELECT max(r.scheduled_at) FROM runs r
        WHERE r.job = j.name AND r.scheduled_at <= i.since AND r.target = '' AND r.origin = 'schedule') AS newest_before
FROM unnest($1::text[], $2::timestamptz[]) AS i (job, since) JOIN jobs j ON j.name = i.job";

pub(super) const PROGRESS_ROWS: &str = "
SELECT r.job, r.scheduled_at
FROM unnest($1::text[], $2::timestamptz[]) AS i (job, since) JOIN jobs j ON j.name = i.job
JOIN runs r ON r.job = i.job AND r.scheduled_at > greatest(j.caught_up_through, i.since)
WHERE r.origin = 'schedule' AND r.target = '' AND r.attempt = 1
ORDER BY r.job, r.scheduled_at";

pub(super) const MOVE_WATERMARK: &str = "
UPDATE jobs SET caught_up_through = $3 WHERE name = $1 AND caught_up_through = $2 RETURNING name";

pub(super) const MISSED_RANGE: &str = "
INSERT INTO trigger_ranges (job, kind, reason, range_from, range_to, count, recorded_at)
VALUES ($1, 'missed', $2, $3, $4, $5, cronlatch_now_v1())";

pub(super) const LATE_RUN: &str = "
INSERT INTO runs (id, job, scheduled_at, trigger, state, reason, created_at, wait_until, resource, start_deadline_ms,
                  reruns_left)
VALUES ($1, $2, $3, 'catch_up', 'waiting', 'catch_up', cronlatch_now_v1(),
        cronlatch_now_v1() + $5 * interval '1 millisecond', $4, $5, $6)
ON CONFLICT DO NOTHING";

/// Runs that are over for longer than they are kept. The job remembers up to where its history is
/// gone.
pub(super) const PRUNE_BY_AGE: &str = "
WITH old AS (
    SELECT id, job, scheduled_at FROM runs
    WHERE finished_at < cronlatch_now_v1() - $1 * interval '1 millisecond'
      AND scheduled_at < cronlatch_now_v1() - $2 * interval '1 millisecond'
    ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED
), remembered AS (
    UPDATE jobs j SET pruned_through = greatest(j.pruned_through, o.through)
    FROM (SELECT job, max(scheduled_at) AS through FROM old GROUP BY job) AS o
    WHERE j.name = o.job
)
DELETE FROM runs WHERE id IN (SELECT id FROM old)";

/// The next jobs, each with the newest instant beyond the runs that are kept of it.
pub(super) const PRUNE_COUNT: &str = "
SELECT j.name, (SELECT r.scheduled_at FROM runs r WHERE r.job = j.name
                ORDER BY r.scheduled_at DESC OFFSET $2 LIMIT 1) AS beyond
FROM jobs j WHERE $1::text IS NULL OR j.name > $1 ORDER BY j.name LIMIT 50";

pub(super) const PRUNE_BY_COUNT: &str = "
WITH old AS (
    SELECT r.id, r.scheduled_at FROM runs r JOIN jobs j ON j.name = r.job
    WHERE r.job = $1 AND r.scheduled_at <= $2
      AND r.scheduled_at < cronlatch_now_v1() - $3 * interval '1 millisecond'
      AND r.state IN ('succeeded', 'cancelled', 'skipped', 'missed')
      AND NOT (r.state = 'succeeded' AND r.scheduled_at IS NOT DISTINCT FROM j.last_success_at)
    ORDER BY r.scheduled_at LIMIT 1000 FOR UPDATE OF r SKIP LOCKED
), remembered AS (
    UPDATE jobs j SET pruned_through = greatest(j.pruned_through, o.through)
    FROM (SELECT max(scheduled_at) AS through FROM old) AS o
    WHERE j.name = $1 AND o.through IS NOT NULL
)
DELETE FROM runs WHERE id IN (SELECT id FROM old)";

/// Tokens come from one sequence, so a lock's next row has a higher one all the same.
pub(super) const PRUNE_LOCKS: &str = "
DELETE FROM distributed_locks WHERE id IN (
    SELECT id FROM distributed_locks
    WHERE released_at < cronlatch_now_v1() - greatest($1, 86400000) * interval '1 millisecond'
    LIMIT 1000 FOR UPDATE SKIP LOCKED)";

pub(super) const PRUNE_RANGES: &str = "
DELETE FROM trigger_ranges WHERE id IN (
    SELECT id FROM trigger_ranges WHERE recorded_at < cronlatch_now_v1() - $1 * interval '1 millisecond' LIMIT 1000)";

pub(super) const HISTORY: &str = "
SELECT id, job, scheduled_at, target, origin, attempt, trigger, state, host, resource, token, claimed_at, started_at,
       finished_at, wait_until, exit_code, signal, reason, blocked_by, output_tail
FROM runs
WHERE ($1::text IS NULL OR job = $1) AND ($2::text IS NULL OR state = $2)
  AND ($3::timestamptz IS NULL OR scheduled_at >= $3) AND ($4::uuid IS NULL OR id < $4)
ORDER BY id DESC LIMIT $5";

/// The beat, and who else lives.
pub(super) const BEAT: &str = "
INSERT INTO hosts (instance, name, version, labels, schedule_digest, clock_offset_ms, draining, stale_after_ms,
                   started_at, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, cronlatch_now_v1(), cronlatch_now_v1())
ON CONFLICT (instance) DO UPDATE
SET labels = excluded.labels, schedule_digest = excluded.schedule_digest, clock_offset_ms = excluded.clock_offset_ms,
    draining = excluded.draining, stale_after_ms = excluded.stale_after_ms, seen_at = cronlatch_now_v1()";

pub(super) const FORGET_DEAD: &str = "DELETE FROM hosts WHERE seen_at < cronlatch_now_v1() - greatest(interval '1 day', stale_after_ms * interval '2 ms')";

pub(super) const LEAVE: &str = "DELETE FROM hosts WHERE instance = $1";

pub(super) const HOSTS: &str = "
SELECT instance, name, version, labels, schedule_digest, clock_offset_ms, draining, started_at, seen_at
FROM hosts WHERE seen_at > cronlatch_now_v1() - stale_after_ms * interval '1 millisecond' ORDER BY instance";

pub(super) const NOW: &str = "SELECT cronlatch_now_v1() AS now";

pub(super) const REGISTER_JOB: &str = "
INSERT INTO jobs (name, digest, caught_up_through)
SELECT i.name, i.digest, cronlatch_now_v1() FROM unnest($1::text[], $2::text[]) AS i (name, digest) ORDER BY i.name
ON CONFLICT (name) DO UPDATE
SET digest = excluded.digest, caught_up_through = greatest(jobs.caught_up_through, cronlatch_now_v1())
WHERE jobs.digest <> excluded.digest";

pub(super) const REGISTER_DEFINITION: &str = "
INSERT INTO job_definitions (job, instance, digest, seen_at)
SELECT i.name, $3, i.digest, cronlatch_now_v1() FROM unnest($1::text[], $2::text[]) AS i (name, digest) ORDER BY i.name
ON CONFLICT (job, instance) DO UPDATE SET digest = excluded.digest, seen_at = excluded.seen_at
WHERE job_definitions.digest <> excluded.digest";

pub(super) const FORGET_DEFINITIONS: &str = "DELETE FROM job_definitions WHERE instance = $1 AND job <> ALL($2)";

/// Makes the schema's own row, if there is none. Two hosts that make the first table at once would
/// meet in the catalogue's unique index, IF NOT EXISTS or not: hence the one advisory lock, which
/// ends with its transaction.
pub(super) const SCHEMA_TABLE: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('cronlatch_schema'));
CREATE TABLE IF NOT EXISTS cronlatch_schema (
    id         integer PRIMARY KEY CHECK (id = 1),
    version    bigint NOT NULL,
    min_reader bigint NOT NULL,
    cluster    text,
    migrated_at timestamptz NOT NULL
);
INSERT INTO cronlatch_schema VALUES (1, 0, 0, NULL, clock_timestamp()) ON CONFLICT DO NOTHING;
COMMIT";

pub(super) const SCHEMA_FOUND: &str = "SELECT to_regclass('cronlatch_schema') IS NOT NULL AS found";

pub(super) const SCHEMA_LOCK: &str = "SELECT version, min_reader FROM cronlatch_schema WHERE id = 1 FOR UPDATE";

pub(super) const SCHEMA_READ: &str = "SELECT version, min_reader FROM cronlatch_schema WHERE id = 1";

pub(super) const SCHEMA_WRITE: &str =
    "UPDATE cronlatch_schema SET version = $1, min_reader = $2, migrated_at = clock_timestamp() WHERE id = 1";

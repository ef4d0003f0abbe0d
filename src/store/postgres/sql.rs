//! The statements, in the order of the port. `../sqlite/sql.rs` has the same names.

/// Begins a transaction that a pooler keeps on one session, and that the server ends by itself if this
/// host falls silent in it.
pub(super) const BEGIN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '5s'";

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
        "c.outcome, c.run, c.host, c.state, c.reason, c.wait_until, c.early_ms, c.read_at, "
    };
}

pub(super) const CLAIM: &str = concat!(
    "SELECT ",
    claim_columns!(),
    grant_columns!("c.lock"),
    " FROM cronlatch_claim_v2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) AS c"
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

pub(super) const FINISH: &str = "
SELECT recorded, lock, followers, followed
FROM cronlatch_finish_v2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

pub(super) const GIVE_BACK: &str = "SELECT cronlatch_give_back_v1($1, $2, $3, $4, $5, $6) AS given";

/// What a take would not refuse: of late runs, the oldest of each job and target.
pub(super) const WAITING: &str = "
WITH clock AS MATERIALIZED (
    SELECT cronlatch_now_v1() AS now
), first AS MATERIALIZED (
    SELECT job, target, min(scheduled_at) AS scheduled_at FROM runs, clock
    WHERE state = 'waiting' AND trigger = 'catch_up' AND target IN ('', $1) AND wait_until > clock.now
    GROUP BY job, target
)
SELECT r.id, r.job, r.scheduled_at, r.target, r.origin, r.attempt, r.trigger, r.created_at, r.wait_until
FROM runs r CROSS JOIN clock LEFT JOIN first f ON f.job = r.job AND f.target = r.target
WHERE r.state = 'waiting' AND r.target IN ('', $1) AND (r.not_before IS NULL OR r.not_before <= clock.now)
  AND (r.trigger <> 'catch_up' OR f.scheduled_at IS NULL OR f.scheduled_at >= r.scheduled_at)
ORDER BY r.id LIMIT 1000";

pub(super) const TAKE: &str = concat!(
    "SELECT ",
    claim_columns!(),
    grant_columns!("c.lock"),
    " FROM cronlatch_take_v2($1, $2, $3, $4, $5, $6, $7, $8, $9) AS c"
);

/// Open runs that seem to have no live lock. Reads only: nearly always there are none.
pub(super) const RECOVERABLE: &str = "
SELECT cronlatch_now_v1() AS now, ARRAY(
    SELECT r.id FROM runs r
    WHERE r.state IN ('claimed', 'running') AND NOT EXISTS (
        SELECT FROM distributed_locks l
        WHERE l.resource = r.resource AND l.token = r.token AND l.released_at IS NULL
          AND l.expires_at > cronlatch_now_v1())
    ORDER BY r.id LIMIT 100) AS lost";

pub(super) const LOSE: &str = "SELECT * FROM cronlatch_lose_v1($1, $2)";

pub(super) const OVERDUE: &str = "
UPDATE runs
SET state = CASE WHEN reason = 'lock_held' THEN 'skipped' ELSE 'missed' END,
    reason = CASE WHEN reason = 'lock_held' THEN 'wait_timed_out' ELSE 'start_deadline' END,
    finished_at = cronlatch_now_v1()
WHERE id IN (
    SELECT id FROM runs WHERE state = 'waiting' AND wait_until <= cronlatch_now_v1()
    ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING id, job, scheduled_at, target, origin, attempt, resource, state, reason";

pub(super) const PRUNE_BY_AGE: &str = "SELECT cronlatch_prune_age_v2($1, $2) AS gone";

/// The next jobs to count.
pub(super) const PRUNE_JOBS: &str = "SELECT name FROM jobs WHERE $1::text IS NULL OR name > $1 ORDER BY name LIMIT 50";

pub(super) const PRUNE_BY_COUNT: &str = "SELECT cronlatch_prune_count_v1($1, $2, $3) AS gone";

/// A state other than missed is no range's kind.
pub(super) const MISSED: &str = "
SELECT job, target, kind, range_from, range_to, count, reason, recorded_at FROM trigger_ranges
WHERE ($1::text IS NULL OR job = $1) AND ($2::timestamptz IS NULL OR range_to >= $2)
  AND ($3::text IS NULL OR kind = $3)
ORDER BY id DESC LIMIT $4";

pub(super) const HISTORY: &str = "
SELECT id, job, scheduled_at, target, origin, attempt, trigger, state, host, resource, token, claimed_at, started_at,
       finished_at, wait_until, not_before, exit_code, signal, reason, blocked_by, output_tail
FROM runs
WHERE ($1::text IS NULL OR job = $1) AND ($2::text IS NULL OR state = $2)
  AND ($3::timestamptz IS NULL OR scheduled_at >= $3) AND ($4::uuid IS NULL OR id < $4)
ORDER BY id DESC LIMIT $5";

/// Makes jobs known.
pub(super) const REGISTER: &str = "SELECT cronlatch_register_v2($1, $2, $3, $4, $5, $6)";

/// Every live daemon's version of the jobs that are not the same on all. One look at the daemons is all
/// if their schedules are one.
pub(super) const DISAGREEMENTS: &str = "
WITH live AS MATERIALIZED (
    SELECT instance, name, schedule_digest
    FROM hosts WHERE seen_at > cronlatch_now_v1() - stale_after_ms * interval '1 millisecond'
), odd AS (
    SELECT d.job FROM job_definitions d JOIN live l ON l.instance = d.instance
    WHERE (SELECT min(schedule_digest) <> max(schedule_digest) FROM live)
    GROUP BY d.job
    HAVING min(d.digest) <> max(d.digest) OR count(*) < (SELECT count(*) FROM live)
    ORDER BY d.job COLLATE \"C\" LIMIT 100
)
SELECT o.job, d.digest, l.name
FROM odd o CROSS JOIN live l LEFT JOIN job_definitions d ON d.job = o.job AND d.instance = l.instance
ORDER BY o.job COLLATE \"C\", d.digest COLLATE \"C\" NULLS LAST, l.name COLLATE \"C\"";

pub(super) const PAUSE: &str = "SELECT outcome, paused_from, closed FROM cronlatch_pause_v1($1, $2, $3, $4)";

pub(super) const RESUME: &str = "SELECT outcome, paused_from, closed FROM cronlatch_resume_v1($1)";

pub(super) const PROGRESS_JOBS: &str = "
SELECT p.job, p.target, p.caught_up_through,
       greatest(p.caught_up_through, j.pruned_through) AS settled_through,
       CASE WHEN j.paused AND (j.paused_until IS NULL OR j.paused_until > cronlatch_now_v1())
                 OR j.paused_until > p.caught_up_through
            THEN coalesce(j.paused_at, p.caught_up_through) END AS paused_from,
       j.paused_until, CASE WHEN p.edited_at <= cronlatch_now_v1() THEN p.edited_at END AS edited_at
FROM unnest($1::text[], $2::text[]) AS i (job, target)
JOIN job_progress p ON p.job = i.job AND p.target = i.target
JOIN jobs j ON j.name = i.job";

pub(super) const PROGRESS_ROWS: &str = "
SELECT r.job, r.target, r.scheduled_at
FROM unnest($1::text[], $2::text[]) AS i (job, target)
JOIN job_progress p ON p.job = i.job AND p.target = i.target
JOIN jobs j ON j.name = i.job
JOIN runs r ON r.job = i.job AND r.scheduled_at > greatest(p.caught_up_through, j.pruned_through)
WHERE r.origin = 'schedule' AND r.target = i.target AND r.attempt = 1
ORDER BY r.job, r.target, r.scheduled_at";

pub(super) const CATCH_UP: &str = "
SELECT cronlatch_catch_up_v2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
    AS carried_out";

/// The beat, and who else lives.
pub(super) const BEAT: &str = "
INSERT INTO hosts (instance, name, version, labels, schedule_digest, clock_offset_ms, draining, stale_after_ms,
                   started_at, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, cronlatch_now_v1(), cronlatch_now_v1())
ON CONFLICT (instance) DO UPDATE
SET labels = excluded.labels, schedule_digest = excluded.schedule_digest, clock_offset_ms = excluded.clock_offset_ms,
    draining = excluded.draining, stale_after_ms = excluded.stale_after_ms, seen_at = cronlatch_now_v1()";

pub(super) const LEAVE: &str = "DELETE FROM hosts WHERE instance = $1";

pub(super) const HOSTS: &str = "
SELECT instance, name, version, labels, schedule_digest, clock_offset_ms, draining, started_at, seen_at
FROM hosts WHERE seen_at > cronlatch_now_v1() - stale_after_ms * interval '1 millisecond' ORDER BY instance";

pub(super) const NOW: &str = "SELECT cronlatch_now_v1() AS now";

/// Makes the schema's own row, if there is none. Two hosts that make the first table at once would
/// meet in the catalogue's unique index, IF NOT EXISTS or not: hence the one advisory lock, which
/// ends with its transaction.
pub(super) const SCHEMA_TABLE: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(1668246382, 0);
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

//! The statements, in the order of the port. `../postgres/sql.rs` has the same names; what is one
//! function there is several statements of one transaction here.

/// Takes the file for writing before anything is read.
pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";

pub(super) const COMMIT: &str = "COMMIT";

pub(super) const ACQUIRE_LOOK: &str = "
SELECT l.resource, l.owner, l.token, l.acquired_at, l.renewed_at, l.expires_at, l.released_at, r.id AS lock_run,
       c.now
FROM distributed_locks l CROSS JOIN cronlatch_now_v1 c
LEFT JOIN runs r ON r.resource = l.resource AND r.token = l.token AND r.state IN ('claimed', 'running')
WHERE l.resource = $1";

pub(super) const DRAW_TOKEN: &str = "UPDATE fencing_tokens SET last = last + 1 WHERE id = 1 RETURNING last";

pub(super) const ACQUIRE: &str = "
INSERT INTO distributed_locks (resource, owner, token, acquired_at, renewed_at, expires_at)
VALUES ($1, $2, $3, $4, $4, $5)
ON CONFLICT (resource) DO UPDATE
SET owner = excluded.owner, token = excluded.token, acquired_at = excluded.acquired_at,
    renewed_at = excluded.renewed_at, expires_at = excluded.expires_at, released_at = NULL
WHERE distributed_locks.expires_at <= excluded.acquired_at OR distributed_locks.owner = excluded.owner
RETURNING token";

pub(super) const RENEW: &str = "
UPDATE distributed_locks SET renewed_at = $4, expires_at = $5
WHERE resource = $1 AND owner = $2 AND ($3 IS NULL OR token = $3) AND released_at IS NULL AND expires_at > $4
RETURNING expires_at";

pub(super) const RENEW_LOOK: &str =
    "SELECT owner, token, expires_at, released_at FROM distributed_locks WHERE resource = $1";

pub(super) const RELEASE: &str = "
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

pub(super) const LOCK: &str = concat!(lock_columns!(), "WHERE l.resource = $1 AND l.expires_at > c.now");

pub(super) const LOCKS: &str = concat!(lock_columns!(), "WHERE l.released_at IS NULL ORDER BY l.resource");

/// What a claim looks at before it inserts.
pub(super) const CLAIM_JOB: &str = "
SELECT c.now, j.pruned_through, p.caught_up_through,
       j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now) AS paused
FROM cronlatch_now_v1 c LEFT JOIN jobs j ON j.name = $1
LEFT JOIN job_progress p ON p.job = j.name AND p.target = $2";

pub(super) const CLAIM: &str = "
INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, created_at, host, instance, owner,
                  resource, start_deadline_ms, start_by, reruns_left)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'claimed', $8, $9, $10, $11, $12, $13, $14, $15)";

pub(super) const CLAIMED: &str = "
SELECT id, host, owner, state, reason, wait_until, token FROM runs
WHERE job = $1 AND scheduled_at = $2 AND target = $3 AND origin = $4 AND attempt = $5";

/// The lock of a claim that is sent again.
pub(super) const OWN_LOCK: &str = "
SELECT l.resource, l.owner, l.token, l.acquired_at, l.expires_at, c.now
FROM distributed_locks l CROSS JOIN cronlatch_now_v1 c
WHERE l.resource = $1 AND l.owner = $2 AND l.token = $3";

/// A live run of this job under another lock: its `lock` was changed, or hosts disagree about it.
pub(super) const OTHER_RUN: &str = "
SELECT l.resource, l.owner, l.token, l.acquired_at, l.expires_at, c.now, o.id AS lock_run
FROM cronlatch_now_v1 c CROSS JOIN runs o JOIN distributed_locks l ON l.resource = o.resource AND l.token = o.token
WHERE o.job = $1 AND o.target = $2 AND o.state IN ('claimed', 'running')
  AND o.resource <> $3 AND l.released_at IS NULL AND l.expires_at > c.now
LIMIT 1";

pub(super) const CLAIM_GRANTED: &str = "UPDATE runs SET token = $2, claimed_at = $3 WHERE id = $1";

pub(super) const ANY_WAITING: &str = "
SELECT id FROM runs WHERE job = $1 AND target = $2 AND state = 'waiting' AND reason = 'lock_held' LIMIT 1";

pub(super) const CLAIM_SKIPPED: &str = "
UPDATE runs SET state = 'skipped', reason = $2, blocked_by = $3, owner = NULL, finished_at = $4 WHERE id = $1";

pub(super) const CLAIM_WAITING: &str = "
UPDATE runs SET state = 'waiting', reason = $2, blocked_by = $3, host = NULL, instance = NULL, owner = NULL,
                wait_until = $4
WHERE id = $1";

pub(super) const UNCLAIMED: &str = "
SELECT id FROM runs WHERE job = $1 AND scheduled_at = $2 AND target = $3 AND origin = $4 AND attempt = 1";

pub(super) const START: &str = "
UPDATE runs SET state = 'running', started_at = $4
WHERE id = $1 AND owner = $2 AND token = $3 AND state IN ('claimed', 'running')
RETURNING id";

pub(super) const FINISH_LOOK: &str = "
SELECT c.now, r.state, r.job, r.scheduled_at
FROM cronlatch_now_v1 c LEFT JOIN runs r ON r.id = $1 AND r.owner = $2 AND r.token = $3";

pub(super) const FINISH: &str = "
UPDATE runs
SET state = $2, exit_code = $3, signal = $4, reason = $5, finished_at = $6, started_at = coalesce(started_at, $7),
    output_tail = $8
WHERE id = $1";

/// A late success: what waits to be run again in its place is not needed.
pub(super) const LATE_SUCCESS: &str = "
UPDATE runs SET state = 'cancelled', reason = 'late_success', finished_at = (SELECT now FROM cronlatch_now_v1)
WHERE state = 'waiting' AND reason = 'rerun' AND EXISTS (
    SELECT 1 FROM runs r WHERE r.id = $1 AND r.job = runs.job AND r.scheduled_at = runs.scheduled_at
    AND r.target = runs.target AND r.origin = runs.origin AND r.attempt < runs.attempt)";

/// Makes a job wait that follows another one, if all that it follows have succeeded for the same
/// instant and target, and none of their successes has made it wait yet. While a run of it waits for that
/// target because of an earlier instant, it is skipped.
pub(super) const FOLLOW: &str = "
INSERT INTO runs (id, job, scheduled_at, target, origin, trigger, state, reason, created_at, wait_until, finished_at,
                  resource, start_deadline_ms, start_by, reruns_left)
SELECT $2, $3, f.scheduled_at, f.target, f.id, 'after',
       CASE WHEN f.paused THEN 'missed' WHEN f.one_waits THEN 'skipped' ELSE 'waiting' END,
       CASE WHEN f.paused THEN 'paused' WHEN f.one_waits THEN 'already_waiting' ELSE 'after' END,
       f.now, CASE WHEN f.paused OR f.one_waits THEN NULL ELSE f.until END,
       CASE WHEN f.paused OR f.one_waits THEN f.now END, $5, $6, f.until, $7
FROM (
    SELECT r.id, r.scheduled_at, r.target, c.now, j.pruned_through,
           strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || ($6 / 1000.0) || ' seconds') AS until,
           coalesce(j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now), false) AS paused,
           EXISTS (SELECT 1 FROM runs w WHERE w.job = $3 AND w.target = r.target AND w.state = 'waiting'
                   AND w.reason = 'after' AND w.wait_until > c.now) AS one_waits
    FROM cronlatch_now_v1 c JOIN runs r ON r.id = $1 LEFT JOIN jobs j ON j.name = $3
) f
WHERE coalesce(f.pruned_through, '') < f.scheduled_at
  AND NOT EXISTS (
    SELECT 1 FROM json_each($4) u WHERE NOT EXISTS (
        SELECT 1 FROM runs r WHERE r.job = u.value AND r.scheduled_at = f.scheduled_at AND r.target = f.target
        AND r.state = 'succeeded'))
  AND NOT EXISTS (
    SELECT 1 FROM runs r WHERE r.job = $3 AND r.scheduled_at = f.scheduled_at AND r.target = f.target
    AND r.trigger = 'after')
ON CONFLICT DO NOTHING";

/// The run that waits, or has waited, since this success.
pub(super) const FOLLOWED: &str = "
SELECT a.id FROM runs r JOIN runs a
    ON a.job = $2 AND a.scheduled_at = r.scheduled_at AND a.target = r.target AND a.origin = r.id
WHERE r.id = $1 AND a.trigger = 'after' AND NOT (a.state = 'missed' AND a.reason = 'paused')
  AND NOT (a.state = 'skipped' AND a.reason = 'already_waiting')";

pub(super) const FINISH_JOB: &str = "
UPDATE jobs
SET last_run_at = max(coalesce(last_run_at, $2), $2),
    last_success_at = CASE WHEN $3 THEN max(coalesce(last_success_at, $2), $2) ELSE last_success_at END
WHERE name = $1";

pub(super) const FINISH_LOCK_LOOK: &str = "
SELECT l.expires_at <= c.now AS expired FROM distributed_locks l CROSS JOIN cronlatch_now_v1 c
WHERE l.resource = $1 AND l.owner = $2 AND l.token = $3 AND l.released_at IS NULL";

/// The epoch, so that a clock that steps back revives nothing.
pub(super) const FREE_LOCK: &str = "
UPDATE distributed_locks
SET expires_at = '1970-01-01T00:00:00.000Z', released_at = (SELECT now FROM cronlatch_now_v1)
WHERE resource = $1 AND token = $2 AND released_at IS NULL";

pub(super) const GIVE_BACK: &str = "
UPDATE runs
SET state = 'waiting', reason = $4, owner = NULL, host = NULL, instance = NULL, token = NULL, claimed_at = NULL,
    wait_until = start_by
WHERE id = $1 AND owner = $2 AND token = $3 AND state = 'claimed'
RETURNING id";

/// What a take would not refuse: of late runs, the oldest of each job and target.
pub(super) const WAITING: &str = "
WITH first AS MATERIALIZED (
    SELECT job, target, min(scheduled_at) AS scheduled_at FROM runs CROSS JOIN cronlatch_now_v1 c
    WHERE state = 'waiting' AND trigger = 'catch_up' AND target IN ('', $1) AND wait_until > c.now
    GROUP BY job, target
)
SELECT r.id, r.job, r.scheduled_at, r.target, r.origin, r.attempt, r.trigger, r.created_at, r.wait_until
FROM runs r CROSS JOIN cronlatch_now_v1 c LEFT JOIN first f ON f.job = r.job AND f.target = r.target
WHERE r.state = 'waiting' AND r.target IN ('', $1) AND (r.not_before IS NULL OR r.not_before <= c.now)
  AND (r.trigger <> 'catch_up' OR f.scheduled_at IS NULL OR f.scheduled_at >= r.scheduled_at)
ORDER BY r.id LIMIT 1000";

pub(super) const TAKE_LOOK: &str = "
SELECT c.now, r.state, r.owner, r.token, r.job, r.target, r.wait_until,
       r.not_before > c.now
       OR EXISTS (SELECT 1 FROM jobs j WHERE j.name = r.job AND j.paused
                  AND (j.paused_until IS NULL OR j.paused_until > c.now))
       OR r.trigger = 'catch_up' AND EXISTS (
           SELECT 1 FROM runs o
           WHERE o.job = r.job AND o.target = r.target AND o.state = 'waiting' AND o.trigger = 'catch_up'
             AND o.scheduled_at < r.scheduled_at AND o.wait_until > c.now) AS not_now
FROM cronlatch_now_v1 c JOIN runs r ON r.id = $1";

pub(super) const TAKE: &str = "
UPDATE runs
SET state = 'claimed', host = $2, instance = $3, owner = $4, resource = $5, token = $6, claimed_at = $7,
    wait_until = NULL
WHERE id = $1 AND state = 'waiting'";

/// Late runs of one plan, made at one instant, keep their distance from the start of the one before: what
/// it was late by, those after it are.
pub(super) const SHIFT_LATE_RUNS: &str = "
UPDATE runs
SET not_before = strftime('%Y-%m-%dT%H:%M:%fZ', runs.not_before, '+' || (l.ms / 1000.0) || ' seconds'),
    wait_until = strftime('%Y-%m-%dT%H:%M:%fZ', runs.wait_until, '+' || (l.ms / 1000.0) || ' seconds'),
    start_by = strftime('%Y-%m-%dT%H:%M:%fZ', runs.start_by, '+' || (l.ms / 1000.0) || ' seconds')
FROM (
    SELECT job, target, scheduled_at, created_at,
           max(0, round((julianday($2) - julianday(coalesce(not_before, created_at))) * 86400000)) AS ms
    FROM runs WHERE id = $1 AND trigger = 'catch_up'
) l
WHERE runs.job = l.job AND runs.target = l.target AND runs.state = 'waiting' AND runs.trigger = 'catch_up'
  AND runs.created_at = l.created_at AND runs.scheduled_at > l.scheduled_at AND runs.not_before IS NOT NULL
  AND runs.wait_until > $2
RETURNING id";

/// Given back and taken again, it is later by the time since then alone.
pub(super) const LATE_RUN_STARTS: &str = "UPDATE runs SET not_before = max(coalesce(not_before, $2), $2) WHERE id = $1";

/// Open runs without a live lock, and waiting ones whose time is over. Reads only: nearly always
/// there are none.
pub(super) const RECOVERABLE: &str = "
SELECT c.now,
       (SELECT count(*) FROM runs r
        WHERE r.state IN ('claimed', 'running') AND NOT EXISTS (
            SELECT 1 FROM distributed_locks l
            WHERE l.resource = r.resource AND l.token = r.token AND l.released_at IS NULL
              AND l.expires_at > c.now)) AS lost,
       (SELECT count(*) FROM runs WHERE state = 'waiting' AND wait_until <= c.now) AS overdue
FROM cronlatch_now_v1 c";

pub(super) const LOSE: &str = "
UPDATE runs SET state = 'lost', reason = 'lease_expired', finished_at = (SELECT now FROM cronlatch_now_v1)
WHERE id IN (
    SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c
    WHERE r.state IN ('claimed', 'running') AND NOT EXISTS (
        SELECT 1 FROM distributed_locks l
        WHERE l.resource = r.resource AND l.token = r.token AND l.released_at IS NULL AND l.expires_at > c.now)
    ORDER BY r.id LIMIT 100)
RETURNING id, job, scheduled_at, target, origin, attempt, host, resource, token, start_deadline_ms, reruns_left";

pub(super) const RERUN: &str = "
INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, reason, created_at, wait_until,
                  resource, start_deadline_ms, start_by, reruns_left)
SELECT $2, r.job, r.scheduled_at, r.target, r.origin, r.attempt + 1, 'rerun', 'waiting', 'rerun', c.now,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || (r.start_deadline_ms / 1000.0) || ' seconds'), r.resource,
       r.start_deadline_ms, strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || (r.start_deadline_ms / 1000.0) || ' seconds'),
       r.reruns_left - 1
FROM runs r CROSS JOIN cronlatch_now_v1 c WHERE r.id = $1 AND r.reruns_left > 0
ON CONFLICT DO NOTHING
RETURNING id";

pub(super) const OVERDUE: &str = "
UPDATE runs
SET state = CASE WHEN reason = 'lock_held' THEN 'skipped' ELSE 'missed' END,
    reason = CASE WHEN reason = 'lock_held' THEN 'wait_timed_out' ELSE 'start_deadline' END,
    finished_at = (SELECT now FROM cronlatch_now_v1)
WHERE id IN (
    SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c WHERE r.state = 'waiting' AND r.wait_until <= c.now
    ORDER BY r.id LIMIT 100)
RETURNING id, job, scheduled_at, target, origin, attempt, resource, state, reason";

/// Runs that are over for longer than they are kept, oldest first: run ids sort by time (RFC 9562,
/// version 7). Looked up before the file is taken for writing.
pub(super) const PRUNE_LOOK: &str = "
SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c
WHERE r.id < $1 AND r.finished_at < strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '-' || ($2 / 1000.0) || ' seconds')
  AND r.scheduled_at < strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '-' || ($3 / 1000.0) || ' seconds')
ORDER BY r.id LIMIT 1000";

/// Nothing else changes runs that are over, so what was looked up still holds.
pub(super) const PRUNE_RUNS: &str = "
DELETE FROM runs WHERE id IN (SELECT value FROM json_each($1)) RETURNING job, scheduled_at";

/// The job remembers up to where its history is gone.
pub(super) const PRUNE_REMEMBER: &str = "
UPDATE jobs SET pruned_through = max(coalesce(pruned_through, $2), $2) WHERE name = $1";

/// The next jobs to count.
pub(super) const PRUNE_JOBS: &str = "SELECT name FROM jobs WHERE $1 IS NULL OR name > $1 ORDER BY name LIMIT 50";

/// The runs of one job beyond those that are kept; failures, losses and the last success stay.
pub(super) const PRUNE_COUNT_LOOK: &str = "
SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c LEFT JOIN jobs j ON j.name = r.job
WHERE r.job = $1
  AND r.scheduled_at <= (SELECT scheduled_at FROM runs WHERE job = $1 ORDER BY scheduled_at DESC LIMIT 1 OFFSET $2)
  AND r.scheduled_at < strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '-' || ($3 / 1000.0) || ' seconds')
  AND r.state IN ('succeeded', 'cancelled', 'skipped', 'missed')
  AND NOT (r.state = 'succeeded' AND r.scheduled_at IS j.last_success_at)
ORDER BY r.scheduled_at LIMIT 1000";

/// Tokens come from one sequence, so a lock's next row has a higher one all the same.
pub(super) const PRUNE_LOCKS: &str = "
DELETE FROM distributed_locks WHERE id IN (
    SELECT id FROM distributed_locks
    WHERE released_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-' || (max($1, 86400000) / 1000.0) || ' seconds')
    LIMIT 1000)";

pub(super) const PRUNE_RANGES: &str = "
DELETE FROM trigger_ranges WHERE id IN (
    SELECT id FROM trigger_ranges
    WHERE recorded_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-' || ($1 / 1000.0) || ' seconds')
    LIMIT 1000)";

/// Hosts come and go, and each leaves a watermark for every job that ran there. What was in the file of
/// a daemon that is known was seen today.
pub(super) const TARGETS_SEEN: &str = "
UPDATE job_progress SET seen_at = (SELECT now FROM cronlatch_now_v1)
WHERE rowid IN (
    SELECT p.rowid FROM job_progress p
    WHERE p.target <> '' AND p.seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-1 day')
      AND EXISTS (
        SELECT 1 FROM job_definitions d JOIN hosts h ON h.instance = d.instance
        WHERE d.job = p.job AND h.name = p.target)
    ORDER BY p.seen_at LIMIT 1000)";

/// What was not seen for long goes, but not after a holiday.
pub(super) const FORGET_TARGETS: &str = "
DELETE FROM job_progress WHERE rowid IN (
    SELECT rowid FROM job_progress
    WHERE target <> ''
      AND seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-' || (max($1, 604800000) / 1000.0) || ' seconds')
    ORDER BY seen_at LIMIT 1000)";

/// Definitions of daemons that are gone.
pub(super) const FORGET_ORPHANS: &str = "
DELETE FROM job_definitions WHERE NOT EXISTS (SELECT 1 FROM hosts h WHERE h.instance = job_definitions.instance)";

/// A state other than missed is no range's kind.
pub(super) const MISSED: &str = "
SELECT job, target, kind, range_from, range_to, count, reason, recorded_at FROM trigger_ranges
WHERE ($1 IS NULL OR job = $1) AND ($2 IS NULL OR range_to >= $2) AND ($3 IS NULL OR kind = $3)
ORDER BY id DESC LIMIT $4";

pub(super) const HISTORY: &str = "
SELECT id, job, scheduled_at, target, origin, attempt, trigger, state, host, resource, token, claimed_at, started_at,
       finished_at, wait_until, not_before, exit_code, signal, reason, blocked_by, output_tail
FROM runs
WHERE ($1 IS NULL OR job = $1) AND ($2 IS NULL OR state = $2)
  AND ($3 IS NULL OR scheduled_at >= $3) AND ($4 IS NULL OR id < $4)
ORDER BY id DESC LIMIT $5";

/// Makes jobs known: a list of names, digests, targets, delays, and whether they have watermarks. Only rows that differ are written.
pub(super) const REGISTER: &str = "
INSERT INTO jobs (name, digest)
SELECT i.value ->> 0, i.value ->> 1 FROM json_each($1) i WHERE true
ON CONFLICT (name) DO UPDATE SET digest = excluded.digest WHERE jobs.digest <> excluded.digest";

/// An edited job doesn't catch up on what lay before, but for what may still be on its way through a
/// claim.
pub(super) const REGISTER_PROGRESS: &str = "
INSERT INTO job_progress AS p (job, target, digest, caught_up_through, seen_at)
SELECT i.value ->> 0, i.value ->> 2, i.value ->> 1,
       CASE WHEN k.job IS NULL THEN c.now
            ELSE strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '-' || (10 + (i.value ->> 3) / 1000.0) || ' seconds') END,
       c.now
FROM cronlatch_now_v1 c CROSS JOIN json_each($1) i
LEFT JOIN job_progress k ON k.job = i.value ->> 0 AND k.target = i.value ->> 2
WHERE i.value ->> 4 AND (k.digest IS NOT (i.value ->> 1) OR k.seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '-1 day'))
ON CONFLICT (job, target) DO UPDATE
SET digest = excluded.digest, seen_at = excluded.seen_at,
    edited_at = CASE WHEN p.digest = excluded.digest THEN p.edited_at ELSE excluded.seen_at END,
    caught_up_through = CASE WHEN p.digest = excluded.digest THEN p.caught_up_through
                             ELSE max(p.caught_up_through, excluded.caught_up_through) END";

/// One that ran on every host and now runs on one, or the other way round, was edited, and one that this
/// host doesn't serve any more will have been: the watermarks that they leave are no good if it is
/// changed back.
pub(super) const REGISTER_KIND: &str = "
UPDATE job_progress SET digest = ''
FROM json_each($1) i
WHERE job = i.value ->> 0 AND digest <> ''
  AND ((target = '') <> (i.value ->> 2 = '') OR target = i.value ->> 2 AND NOT i.value ->> 4)";

pub(super) const REGISTER_DEFINITION: &str = "
INSERT INTO job_definitions (job, instance, digest, seen_at)
SELECT i.value ->> 0, $2, i.value ->> 1, c.now FROM cronlatch_now_v1 c CROSS JOIN json_each($1) i WHERE true
ON CONFLICT (job, instance) DO UPDATE SET digest = excluded.digest, seen_at = excluded.seen_at
WHERE job_definitions.digest <> excluded.digest";

pub(super) const FORGET_DEFINITIONS: &str = "
DELETE FROM job_definitions
WHERE instance = $2 AND job NOT IN (SELECT i.value ->> 0 FROM json_each($1) i)
RETURNING job";

/// One that was taken out, and is nobody else's, is new when it comes back.
pub(super) const FORGET_PROGRESS: &str = "
UPDATE job_progress SET digest = ''
WHERE job = $1 AND target IN (SELECT '' UNION ALL SELECT name FROM hosts WHERE instance = $2)
  AND NOT EXISTS (
    SELECT 1 FROM job_definitions d JOIN hosts h ON h.instance = d.instance
    WHERE d.job = job_progress.job AND (job_progress.target = '' OR h.name = job_progress.target))";

/// Every live daemon's version of the jobs that are not the same on all. One look at the daemons is all
/// if their schedules are one.
pub(super) const DISAGREEMENTS: &str = "
WITH live AS MATERIALIZED (
    SELECT instance, name, schedule_digest FROM hosts
    WHERE seen_at > strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1),
                             '-' || (stale_after_ms / 1000.0) || ' seconds')
), odd AS (
    SELECT d.job FROM job_definitions d JOIN live l ON l.instance = d.instance
    WHERE (SELECT min(schedule_digest) <> max(schedule_digest) FROM live)
    GROUP BY d.job
    HAVING min(d.digest) <> max(d.digest) OR count(*) < (SELECT count(*) FROM live)
    ORDER BY d.job LIMIT 100
)
SELECT o.job, d.digest, l.name
FROM odd o CROSS JOIN live l LEFT JOIN job_definitions d ON d.job = o.job AND d.instance = l.instance
ORDER BY o.job, d.digest NULLS LAST, l.name";

pub(super) const PAUSE_LOOK: &str = "
SELECT c.now, j.name IS NOT NULL AS known, j.paused_at,
       coalesce(j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now), false) AS paused,
       coalesce(j.paused_until > (SELECT min(p.caught_up_through) FROM job_progress p WHERE p.job = j.name), false)
           AS unaccounted
FROM cronlatch_now_v1 c LEFT JOIN jobs j ON j.name = $1";

pub(super) const PAUSE: &str = "
UPDATE jobs SET paused = true, paused_by = $2, paused_reason = $3, paused_until = $4, paused_at = $5 WHERE name = $1";

/// Not paused any more either if the clock steps back.
pub(super) const RESUME: &str =
    "UPDATE jobs SET paused = false, paused_at = coalesce(paused_at, $2), paused_until = $2 WHERE name = $1";

/// Closes what waits of a job that is paused.
pub(super) const CLOSE_WAITING: &str = "
UPDATE runs SET state = 'missed', reason = 'paused', finished_at = $2 WHERE job = $1 AND state = 'waiting'
RETURNING id";

pub(super) const PROGRESS_JOBS: &str = "
SELECT p.job, p.target, p.caught_up_through,
       max(p.caught_up_through, coalesce(j.pruned_through, '')) AS settled_through,
       CASE WHEN j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now)
                 OR j.paused_until > p.caught_up_through
            THEN coalesce(j.paused_at, p.caught_up_through) END AS paused_from,
       j.paused_until, CASE WHEN p.edited_at <= c.now THEN p.edited_at END AS edited_at
FROM cronlatch_now_v1 c CROSS JOIN json_each($1) i
JOIN job_progress p ON p.job = i.value ->> 0 AND p.target = i.value ->> 1
JOIN jobs j ON j.name = p.job";

pub(super) const PROGRESS_ROWS: &str = "
SELECT r.job, r.target, r.scheduled_at
FROM json_each($1) i
JOIN job_progress p ON p.job = i.value ->> 0 AND p.target = i.value ->> 1
JOIN jobs j ON j.name = p.job
JOIN runs r ON r.job = p.job AND r.scheduled_at > max(p.caught_up_through, coalesce(j.pruned_through, ''))
WHERE r.origin = 'schedule' AND r.target = p.target AND r.attempt = 1
ORDER BY r.job, r.target, r.scheduled_at";

pub(super) const ROWS_SEEN: &str = "
SELECT count(*) AS rows FROM runs
WHERE job = $1 AND scheduled_at > $3 AND scheduled_at <= $4 AND origin = 'schedule' AND target = $2 AND attempt = 1";

/// What a plan looks at: nothing runs late while the job is paused.
pub(super) const CATCH_UP_PAUSED: &str = "
SELECT j.name FROM jobs j CROSS JOIN cronlatch_now_v1 c
WHERE j.name = $1 AND j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now)";

/// A newer trigger than what is to run late. Rows for a time to come were left by a clock that was wrong.
pub(super) const NEWER_ROW: &str = "
SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c
WHERE r.job = $1 AND r.target = $2 AND r.origin = 'schedule' AND r.attempt = 1 AND r.scheduled_at > $3
  AND r.scheduled_at <= c.now
LIMIT 1";

pub(super) const MOVE_WATERMARK: &str = "
UPDATE job_progress SET caught_up_through = $4 WHERE job = $1 AND target = $2 AND caught_up_through = $3
RETURNING job";

pub(super) const TRIGGER_RANGE: &str = "
INSERT INTO trigger_ranges (job, target, kind, reason, range_from, range_to, count, recorded_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, (SELECT now FROM cronlatch_now_v1))";

pub(super) const LATE_RUN: &str = "
INSERT INTO runs (id, job, scheduled_at, target, trigger, state, reason, created_at, not_before, wait_until, resource,
                  start_deadline_ms, start_by, reruns_left)
SELECT $1, $2, $4, $3, 'catch_up', 'waiting', 'catch_up', c.now,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || ($6 / 1000.0) || ' seconds'),
       strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || ($7 / 1000.0) || ' seconds'), $5, $8,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || ($7 / 1000.0) || ' seconds'), $9
FROM cronlatch_now_v1 c WHERE true
ON CONFLICT DO NOTHING";

/// The beat, and who else lives.
pub(super) const BEAT: &str = "
INSERT INTO hosts (instance, name, version, labels, schedule_digest, clock_offset_ms, draining, stale_after_ms,
                   started_at, seen_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, c.now, c.now FROM cronlatch_now_v1 c WHERE true
ON CONFLICT (instance) DO UPDATE
SET labels = excluded.labels, schedule_digest = excluded.schedule_digest, clock_offset_ms = excluded.clock_offset_ms,
    draining = excluded.draining, stale_after_ms = excluded.stale_after_ms, seen_at = excluded.seen_at";

pub(super) const FORGET_DEAD: &str = "
DELETE FROM hosts
WHERE seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1),
                         '-' || max(86400, stale_after_ms * 2 / 1000.0) || ' seconds')";

pub(super) const LEAVE: &str = "DELETE FROM hosts WHERE instance = $1";

pub(super) const HOSTS: &str = "
SELECT instance, name, version, labels, schedule_digest, clock_offset_ms, draining, started_at, seen_at
FROM hosts
WHERE seen_at > strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1),
                         '-' || (stale_after_ms / 1000.0) || ' seconds')
ORDER BY instance";

pub(super) const NOW: &str = "SELECT now FROM cronlatch_now_v1";

/// Makes the schema's own row, if there is none.
pub(super) const SCHEMA_TABLE: &str = "
CREATE TABLE IF NOT EXISTS cronlatch_schema (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    version     INTEGER NOT NULL,
    min_reader  INTEGER NOT NULL,
    cluster     TEXT,
    migrated_at TEXT NOT NULL
);
INSERT INTO cronlatch_schema VALUES (1, 0, 0, NULL, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ON CONFLICT DO NOTHING";

pub(super) const SCHEMA_FOUND: &str =
    "SELECT count(*) > 0 AS found FROM sqlite_master WHERE type = 'table' AND name = 'cronlatch_schema'";

pub(super) const SCHEMA_READ: &str = "SELECT version, min_reader FROM cronlatch_schema WHERE id = 1";

pub(super) const SCHEMA_WRITE: &str = "
UPDATE cronlatch_schema
SET version = $1, min_reader = $2, migrated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE id = 1";

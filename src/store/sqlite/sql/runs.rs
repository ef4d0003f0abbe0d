//! The port `Runs`: claims, endings, recovery, history.

/// What a claim looks at before it inserts.
pub(in crate::store::sqlite) const CLAIM_JOB: &str = "
SELECT c.now, j.pruned_through, p.caught_up_through,
       j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now) AS paused
FROM cronlatch_now_v1 c LEFT JOIN jobs j ON j.name = $1
LEFT JOIN job_progress p ON p.job = j.name AND p.target = $2";

pub(in crate::store::sqlite) const CLAIM: &str = "
INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, created_at, host, instance, owner,
                  resource, start_deadline_ms, start_by, reruns_left)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'claimed', $8, $9, $10, $11, $12, $13, $14, $15)";

pub(in crate::store::sqlite) const CLAIMED: &str = "
SELECT id, host, owner, state, reason, wait_until, token FROM runs
WHERE job = $1 AND scheduled_at = $2 AND target = $3 AND origin = $4 AND attempt = $5";

/// The lock of a claim that is sent again.
pub(in crate::store::sqlite) const OWN_LOCK: &str = "
SELECT l.resource, l.owner, l.token, l.acquired_at, l.expires_at, c.now
FROM distributed_locks l CROSS JOIN cronlatch_now_v1 c
WHERE l.resource = $1 AND l.owner = $2 AND l.token = $3";

/// A live run of this job under another lock: its `lock` was changed, or hosts disagree about it.
pub(in crate::store::sqlite) const OTHER_RUN: &str = "
SELECT l.resource, l.owner, l.token, l.acquired_at, l.expires_at, c.now, o.id AS lock_run
FROM cronlatch_now_v1 c CROSS JOIN runs o JOIN distributed_locks l ON l.resource = o.resource AND l.token = o.token
WHERE o.job = $1 AND o.target = $2 AND o.state IN ('claimed', 'running')
  AND o.resource <> $3 AND l.released_at IS NULL AND l.expires_at > c.now
LIMIT 1";

pub(in crate::store::sqlite) const CLAIM_GRANTED: &str = "UPDATE runs SET token = $2, claimed_at = $3 WHERE id = $1";

pub(in crate::store::sqlite) const ANY_WAITING: &str = "
SELECT id FROM runs WHERE job = $1 AND target = $2 AND state = 'waiting' AND reason IN ('lock_held', 'replacing')
LIMIT 1";

pub(in crate::store::sqlite) const CLAIM_SKIPPED: &str = "
UPDATE runs SET state = 'skipped', reason = $2, blocked_by = $3, owner = NULL, finished_at = $4 WHERE id = $1";

pub(in crate::store::sqlite) const CLAIM_WAITING: &str = "
UPDATE runs SET state = 'waiting', reason = $2, blocked_by = $3, host = NULL, instance = NULL, owner = NULL,
                wait_until = $4
WHERE id = $1";

/// The run that holds a lock, if it is one of this job.
pub(in crate::store::sqlite) const REPLACE_LOOK: &str = "
SELECT r.scheduled_at > $4
       OR EXISTS (SELECT 1 FROM runs o WHERE o.job = $2 AND o.target = $3 AND o.state = 'waiting'
                  AND o.reason = 'replacing' AND o.scheduled_at > $4) AS superseded
FROM runs r WHERE r.id = $1 AND r.job = $2 AND r.target = $3";

/// Asks for the holder to be stopped, once.
pub(in crate::store::sqlite) const REPLACE: &str = "
INSERT INTO requests (id, kind, job, run, made_by, made_at, replaced_by)
SELECT $1, 'cancel', $2, $3, $4, c.now, $5 FROM cronlatch_now_v1 c WHERE true
ON CONFLICT DO NOTHING";

/// Closes what waits of a job and is older than a trigger that replaces.
pub(in crate::store::sqlite) const SUPERSEDE: &str = "
UPDATE runs
SET state = 'skipped', reason = 'superseded', blocked_by = $1, finished_at = (SELECT now FROM cronlatch_now_v1)
WHERE job = $2 AND target = $3 AND state = 'waiting' AND id <> $1
  AND (reason = 'replacing' AND scheduled_at <= $4 OR trigger = 'schedule' AND scheduled_at < $4)";

pub(in crate::store::sqlite) const UNCLAIMED: &str = "
SELECT id FROM runs WHERE job = $1 AND scheduled_at = $2 AND target = $3 AND origin = $4 AND attempt = 1";

pub(in crate::store::sqlite) const START: &str = "
UPDATE runs SET state = 'running', started_at = $4
WHERE id = $1 AND owner = $2 AND token = $3 AND state IN ('claimed', 'running')
RETURNING id";

pub(in crate::store::sqlite) const FINISH_LOOK: &str = "
SELECT c.now, r.state, r.job, r.scheduled_at
FROM cronlatch_now_v1 c LEFT JOIN runs r ON r.id = $1 AND r.owner = $2 AND r.token = $3";

pub(in crate::store::sqlite) const FINISH: &str = "
UPDATE runs
SET state = $2, exit_code = $3, signal = $4, reason = $5, finished_at = $6, started_at = coalesce(started_at, $7),
    output_tail = $8, cpu_ms = $9, memory_peak_kib = $10
WHERE id = $1";

/// A late success: what waits to be run again in its place is not needed.
pub(in crate::store::sqlite) const LATE_SUCCESS: &str = "
UPDATE runs SET state = 'cancelled', reason = 'late_success', finished_at = (SELECT now FROM cronlatch_now_v1)
WHERE state = 'waiting' AND reason = 'rerun' AND EXISTS (
    SELECT 1 FROM runs r WHERE r.id = $1 AND r.job = runs.job AND r.scheduled_at = runs.scheduled_at
    AND r.target = runs.target AND r.origin = runs.origin AND r.attempt < runs.attempt)";

/// Makes a job wait that follows another one, if all that it follows have succeeded for the same
/// instant and target, and none of their successes has made it wait yet. While a run of it waits for that
/// target because of an earlier instant, it is skipped.
pub(in crate::store::sqlite) const FOLLOW: &str = "
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
pub(in crate::store::sqlite) const FOLLOWED: &str = "
SELECT a.id FROM runs r JOIN runs a
    ON a.job = $2 AND a.scheduled_at = r.scheduled_at AND a.target = r.target AND a.origin = r.id
WHERE r.id = $1 AND a.trigger = 'after' AND NOT (a.state = 'missed' AND a.reason = 'paused')
  AND NOT (a.state = 'skipped' AND a.reason = 'already_waiting')";

pub(in crate::store::sqlite) const FINISH_JOB: &str = "
UPDATE jobs
SET last_run_at = max(coalesce(last_run_at, $2), $2),
    last_success_at = CASE WHEN $3 THEN max(coalesce(last_success_at, $2), $2) ELSE last_success_at END
WHERE name = $1";

pub(in crate::store::sqlite) const FINISH_LOCK_LOOK: &str = "
SELECT l.expires_at <= c.now AS expired FROM distributed_locks l CROSS JOIN cronlatch_now_v1 c
WHERE l.resource = $1 AND l.owner = $2 AND l.token = $3 AND l.released_at IS NULL";

/// The epoch, so that a clock that steps back revives nothing.
pub(in crate::store::sqlite) const FREE_LOCK: &str = "
UPDATE distributed_locks
SET expires_at = '1970-01-01T00:00:00.000Z', released_at = (SELECT now FROM cronlatch_now_v1)
WHERE resource = $1 AND token = $2 AND released_at IS NULL";

/// What somebody wants stopped is over instead.
pub(in crate::store::sqlite) const GIVE_BACK_CANCELLED: &str = "
UPDATE runs
SET state = 'cancelled', finished_at = (SELECT now FROM cronlatch_now_v1),
    reason = CASE WHEN q.replaced_by IS NULL THEN 'cancelled' ELSE 'replaced' END
FROM requests q
WHERE runs.id = $1 AND runs.owner = $2 AND runs.token = $3 AND runs.state = 'claimed' AND q.run = runs.id
  AND q.kind = 'cancel'
RETURNING runs.id";

pub(in crate::store::sqlite) const GIVE_BACK: &str = "
UPDATE runs
SET state = 'waiting', reason = $4, owner = NULL, host = NULL, instance = NULL, token = NULL, claimed_at = NULL,
    wait_until = start_by
WHERE id = $1 AND owner = $2 AND token = $3 AND state = 'claimed'
RETURNING id";

/// What a retry looks at: its run, its lock, whether somebody wants it stopped, and whether it was made before.
pub(in crate::store::sqlite) const RETRY_LOOK: &str = "
SELECT c.now, r.state, r.job, r.scheduled_at, r.attempt + 1 AS attempt,
       EXISTS (SELECT 1 FROM requests q WHERE q.run = r.id AND q.kind = 'cancel') AS cancelled,
       EXISTS (SELECT 1 FROM distributed_locks l
               WHERE l.resource = $4 AND l.owner = $5 AND l.token = $3 AND l.released_at IS NULL
                 AND l.expires_at > c.now) AS live,
       EXISTS (SELECT 1 FROM runs n
               WHERE n.id = $6 AND n.attempt = r.attempt + 1 AND n.job = r.job AND n.scheduled_at = r.scheduled_at
                 AND n.target = r.target AND n.origin = r.origin AND n.owner = $2 AND n.token = $3
                 AND n.state IN ('claimed', 'running')) AS made
FROM cronlatch_now_v1 c JOIN runs r ON r.id = $1 AND r.owner = $2 AND r.token = $3";

/// The next attempt, under the same lease.
pub(in crate::store::sqlite) const RETRY: &str = "
INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, created_at, host, instance, owner,
                  resource, token, claimed_at, start_deadline_ms, start_by, reruns_left, retries)
SELECT $2, job, scheduled_at, target, origin, attempt + 1, 'retry', 'claimed', $3, host, instance, owner, resource,
       token, $3, start_deadline_ms, strftime('%Y-%m-%dT%H:%M:%fZ', $3, '+' || (start_deadline_ms / 1000.0) || ' seconds'),
       reruns_left, retries + 1
FROM runs WHERE id = $1";

/// What a take would not refuse: of late runs, the oldest of each job and target.
pub(in crate::store::sqlite) const WAITING: &str = "
WITH first AS MATERIALIZED (
    SELECT job, target, min(scheduled_at) AS scheduled_at FROM runs CROSS JOIN cronlatch_now_v1 c
    WHERE state = 'waiting' AND trigger = 'catch_up' AND target IN ('', $1) AND wait_until > c.now
    GROUP BY job, target
)
SELECT r.id, r.job, r.scheduled_at, r.target, r.origin, r.attempt, r.trigger, r.created_at, r.wait_until,
       r.retries
FROM runs r CROSS JOIN cronlatch_now_v1 c LEFT JOIN first f ON f.job = r.job AND f.target = r.target
WHERE r.state = 'waiting' AND r.target IN ('', $1) AND (r.not_before IS NULL OR r.not_before <= c.now)
  AND (r.trigger <> 'catch_up' OR f.scheduled_at IS NULL OR f.scheduled_at >= r.scheduled_at)
ORDER BY r.id LIMIT 1000";

pub(in crate::store::sqlite) const TAKE_LOOK: &str = "
SELECT c.now, r.state, r.reason, r.owner, r.token, r.job, r.target, r.scheduled_at, r.origin, r.wait_until,
       r.not_before > c.now
       OR EXISTS (SELECT 1 FROM jobs j WHERE j.name = r.job AND j.paused
                  AND (j.paused_until IS NULL OR j.paused_until > c.now))
       OR r.trigger = 'catch_up' AND EXISTS (
           SELECT 1 FROM runs o
           WHERE o.job = r.job AND o.target = r.target AND o.state = 'waiting' AND o.trigger = 'catch_up'
             AND o.scheduled_at < r.scheduled_at AND o.wait_until > c.now) AS not_now
FROM cronlatch_now_v1 c JOIN runs r ON r.id = $1";

pub(in crate::store::sqlite) const TAKE: &str = "
UPDATE runs
SET state = 'claimed', host = $2, instance = $3, owner = $4, resource = $5, token = $6, claimed_at = $7,
    wait_until = NULL
WHERE id = $1 AND state = 'waiting'";

/// Late runs of one plan, made at one instant, keep their distance from the start of the one before: what
/// it was late by, those after it are.
pub(in crate::store::sqlite) const SHIFT_LATE_RUNS: &str = "
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
pub(in crate::store::sqlite) const LATE_RUN_STARTS: &str =
    "UPDATE runs SET not_before = max(coalesce(not_before, $2), $2) WHERE id = $1";

/// Open runs without a live lock, and waiting ones whose time is over. Reads only: nearly always
/// there are none.
pub(in crate::store::sqlite) const RECOVERABLE: &str = "
SELECT c.now,
       (SELECT count(*) FROM runs r
        WHERE r.state IN ('claimed', 'running') AND NOT EXISTS (
            SELECT 1 FROM distributed_locks l
            WHERE l.resource = r.resource AND l.token = r.token AND l.released_at IS NULL
              AND l.expires_at > c.now)) AS lost,
       (SELECT count(*) FROM runs WHERE state = 'waiting' AND wait_until <= c.now) AS overdue
FROM cronlatch_now_v1 c";

pub(in crate::store::sqlite) const LOSE: &str = "
UPDATE runs SET state = 'lost', reason = 'lease_expired', finished_at = (SELECT now FROM cronlatch_now_v1)
WHERE id IN (
    SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c
    WHERE r.state IN ('claimed', 'running') AND NOT EXISTS (
        SELECT 1 FROM distributed_locks l
        WHERE l.resource = r.resource AND l.token = r.token AND l.released_at IS NULL AND l.expires_at > c.now)
    ORDER BY r.id LIMIT 100)
RETURNING id, job, scheduled_at, target, origin, attempt, host, resource, token, start_deadline_ms, reruns_left";

/// Makes the next attempt of a lost run wait, if it may have one, and nobody wanted the run stopped.
pub(in crate::store::sqlite) const RERUN: &str = "
INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, reason, created_at, wait_until,
                  resource, start_deadline_ms, start_by, reruns_left, retries)
SELECT $2, r.job, r.scheduled_at, r.target, r.origin, r.attempt + 1, 'rerun', 'waiting', 'rerun', c.now,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || (r.start_deadline_ms / 1000.0) || ' seconds'), r.resource,
       r.start_deadline_ms, strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || (r.start_deadline_ms / 1000.0) || ' seconds'),
       r.reruns_left - 1, r.retries
FROM runs r CROSS JOIN cronlatch_now_v1 c
WHERE r.id = $1 AND r.reruns_left > 0 AND NOT EXISTS (SELECT 1 FROM requests q WHERE q.run = r.id AND q.kind = 'cancel')
ON CONFLICT DO NOTHING
RETURNING id";

pub(in crate::store::sqlite) const OVERDUE: &str = "
UPDATE runs
SET state = CASE WHEN reason IN ('lock_held', 'replacing') THEN 'skipped' ELSE 'missed' END,
    reason = CASE WHEN reason IN ('lock_held', 'replacing') THEN 'wait_timed_out' ELSE 'start_deadline' END,
    finished_at = (SELECT now FROM cronlatch_now_v1)
WHERE id IN (
    SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c WHERE r.state = 'waiting' AND r.wait_until <= c.now
    ORDER BY r.id LIMIT 100)
RETURNING id, job, scheduled_at, target, origin, attempt, resource, state, reason";

/// A state other than missed is no range's kind.
pub(in crate::store::sqlite) const MISSED: &str = "
SELECT job, target, kind, range_from, range_to, count, reason, recorded_at FROM trigger_ranges
WHERE ($1 IS NULL OR job = $1) AND ($2 IS NULL OR range_to >= $2) AND ($3 IS NULL OR kind = $3)
ORDER BY id DESC LIMIT $4";

pub(in crate::store::sqlite) const HISTORY: &str = "
SELECT id, job, scheduled_at, target, origin, attempt, trigger, state, host, resource, token, claimed_at, started_at,
       finished_at, wait_until, not_before, exit_code, signal, reason, blocked_by, output_tail,
       cpu_ms, memory_peak_kib
FROM runs
WHERE ($1 IS NULL OR job = $1) AND ($2 IS NULL OR state = $2)
  AND ($3 IS NULL OR scheduled_at >= $3) AND ($4 IS NULL OR id < $4)
ORDER BY id DESC LIMIT $5";

/// The window bounds the look at a job that is skipped again and again. An attempt that was cancelled or
/// skipped hides none before it.
pub(in crate::store::sqlite) const OUTCOMES: &str = "
SELECT id, at, state, count FROM (
    SELECT * FROM (
        SELECT r.id, r.scheduled_at AS at, r.state, 1 AS count
        FROM (
            SELECT id, job, scheduled_at, target, origin, attempt, state, reason FROM runs
            WHERE job = $1 AND scheduled_at <= $3
            ORDER BY scheduled_at DESC LIMIT 10000
        ) r
        WHERE r.target = $2
          AND (r.state IN ('succeeded', 'failed', 'lost')
               OR r.state = 'missed' AND r.reason IN (SELECT value FROM json_each($5)))
          AND NOT EXISTS (
            SELECT 1 FROM runs n
            WHERE n.job = r.job AND n.scheduled_at = r.scheduled_at AND n.target = r.target AND n.origin = r.origin
              AND n.attempt > r.attempt AND n.state NOT IN ('cancelled', 'skipped'))
        ORDER BY r.scheduled_at DESC LIMIT $4
    )
    UNION ALL
    SELECT * FROM (
        SELECT NULL, range_to, 'missed', count FROM trigger_ranges
        WHERE job = $1 AND target = $2 AND range_to <= $3 AND kind = 'missed'
          AND reason IN (SELECT value FROM json_each($5))
        ORDER BY range_to DESC LIMIT $4
    )
)
ORDER BY at DESC, id DESC LIMIT $4";

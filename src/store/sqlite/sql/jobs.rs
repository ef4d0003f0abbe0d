//! The port `Jobs`: definitions, pauses, catch-up.

/// Makes jobs known: a list of names, digests, targets, delays, and whether they have watermarks. Only rows that differ are written.
pub(in crate::store::sqlite) const REGISTER: &str = "
INSERT INTO jobs (name, digest)
SELECT i.value ->> 0, i.value ->> 1 FROM json_each($1) i WHERE true
ON CONFLICT (name) DO UPDATE SET digest = excluded.digest WHERE jobs.digest <> excluded.digest";

/// An edited job doesn't catch up on what lay before, but for what may still be on its way through a
/// claim.
pub(in crate::store::sqlite) const REGISTER_PROGRESS: &str = "
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
pub(in crate::store::sqlite) const REGISTER_KIND: &str = "
UPDATE job_progress SET digest = ''
FROM json_each($1) i
WHERE job = i.value ->> 0 AND digest <> ''
  AND ((target = '') <> (i.value ->> 2 = '') OR target = i.value ->> 2 AND NOT i.value ->> 4)";

pub(in crate::store::sqlite) const REGISTER_DEFINITION: &str = "
INSERT INTO job_definitions (job, instance, digest, seen_at)
SELECT i.value ->> 0, $2, i.value ->> 1, c.now FROM cronlatch_now_v1 c CROSS JOIN json_each($1) i WHERE true
ON CONFLICT (job, instance) DO UPDATE SET digest = excluded.digest, seen_at = excluded.seen_at
WHERE job_definitions.digest <> excluded.digest";

pub(in crate::store::sqlite) const FORGET_DEFINITIONS: &str = "
DELETE FROM job_definitions
WHERE instance = $2 AND job NOT IN (SELECT i.value ->> 0 FROM json_each($1) i)
RETURNING job";

/// One that was taken out, and is nobody else's, is new when it comes back.
pub(in crate::store::sqlite) const FORGET_PROGRESS: &str = "
UPDATE job_progress SET digest = ''
WHERE job = $1 AND target IN (SELECT '' UNION ALL SELECT name FROM hosts WHERE instance = $2)
  AND NOT EXISTS (
    SELECT 1 FROM job_definitions d JOIN hosts h ON h.instance = d.instance
    WHERE d.job = job_progress.job AND (job_progress.target = '' OR h.name = job_progress.target))";

/// Every live daemon's version of the jobs that are not the same on all. One look at the daemons is all
/// if their schedules are one.
pub(in crate::store::sqlite) const DISAGREEMENTS: &str = "
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

pub(in crate::store::sqlite) const PAUSE_LOOK: &str = "
SELECT c.now, j.name IS NOT NULL AS known, j.paused_at,
       coalesce(j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now), false) AS paused,
       coalesce(j.paused_until > (SELECT min(p.caught_up_through) FROM job_progress p WHERE p.job = j.name), false)
           AS unaccounted
FROM cronlatch_now_v1 c LEFT JOIN jobs j ON j.name = $1";

pub(in crate::store::sqlite) const PAUSE: &str = "
UPDATE jobs SET paused = true, paused_by = $2, paused_reason = $3, paused_until = $4, paused_at = $5 WHERE name = $1";

/// Not paused any more either if the clock steps back.
pub(in crate::store::sqlite) const RESUME: &str =
    "UPDATE jobs SET paused = false, paused_at = coalesce(paused_at, $2), paused_until = $2 WHERE name = $1";

/// Closes what waits of a job that is paused.
pub(in crate::store::sqlite) const CLOSE_WAITING: &str = "
UPDATE runs SET state = 'missed', reason = 'paused', finished_at = $2 WHERE job = $1 AND state = 'waiting'
RETURNING id";

pub(in crate::store::sqlite) const PROGRESS_JOBS: &str = "
SELECT p.job, p.target, p.caught_up_through,
       max(p.caught_up_through, coalesce(j.pruned_through, '')) AS settled_through,
       CASE WHEN j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now)
                 OR j.paused_until > p.caught_up_through
            THEN coalesce(j.paused_at, p.caught_up_through) END AS paused_from,
       j.paused_until, CASE WHEN p.edited_at <= c.now THEN p.edited_at END AS edited_at
FROM cronlatch_now_v1 c CROSS JOIN json_each($1) i
JOIN job_progress p ON p.job = i.value ->> 0 AND p.target = i.value ->> 1
JOIN jobs j ON j.name = p.job";

pub(in crate::store::sqlite) const PROGRESS_ROWS: &str = "
SELECT r.job, r.target, r.scheduled_at
FROM json_each($1) i
JOIN job_progress p ON p.job = i.value ->> 0 AND p.target = i.value ->> 1
JOIN jobs j ON j.name = p.job
JOIN runs r ON r.job = p.job AND r.scheduled_at > max(p.caught_up_through, coalesce(j.pruned_through, ''))
WHERE r.origin = 'schedule' AND r.target = p.target AND r.attempt = 1
ORDER BY r.job, r.target, r.scheduled_at";

pub(in crate::store::sqlite) const ROWS_SEEN: &str = "
SELECT count(*) AS rows FROM runs
WHERE job = $1 AND scheduled_at > $3 AND scheduled_at <= $4 AND origin = 'schedule' AND target = $2 AND attempt = 1";

/// What a plan looks at: nothing runs late while the job is paused.
pub(in crate::store::sqlite) const CATCH_UP_PAUSED: &str = "
SELECT j.name FROM jobs j CROSS JOIN cronlatch_now_v1 c
WHERE j.name = $1 AND j.paused AND (j.paused_until IS NULL OR j.paused_until > c.now)";

/// A newer trigger than what is to run late. Rows for a time to come were left by a clock that was wrong.
pub(in crate::store::sqlite) const NEWER_ROW: &str = "
SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c
WHERE r.job = $1 AND r.target = $2 AND r.origin = 'schedule' AND r.attempt = 1 AND r.scheduled_at > $3
  AND r.scheduled_at <= c.now
LIMIT 1";

pub(in crate::store::sqlite) const MOVE_WATERMARK: &str = "
UPDATE job_progress SET caught_up_through = $4 WHERE job = $1 AND target = $2 AND caught_up_through = $3
RETURNING job";

pub(in crate::store::sqlite) const TRIGGER_RANGE: &str = "
INSERT INTO trigger_ranges (job, target, kind, reason, range_from, range_to, count, recorded_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, (SELECT now FROM cronlatch_now_v1))";

pub(in crate::store::sqlite) const LATE_RUN: &str = "
INSERT INTO runs (id, job, scheduled_at, target, trigger, state, reason, created_at, not_before, wait_until, resource,
                  start_deadline_ms, start_by, reruns_left)
SELECT $1, $2, $4, $3, 'catch_up', 'waiting', 'catch_up', c.now,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || ($6 / 1000.0) || ' seconds'),
       strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || ($7 / 1000.0) || ' seconds'), $5, $8,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '+' || ($7 / 1000.0) || ' seconds'), $9
FROM cronlatch_now_v1 c WHERE true
ON CONFLICT DO NOTHING";

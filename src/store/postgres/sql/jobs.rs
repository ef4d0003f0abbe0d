//! The port `Jobs`: definitions, pauses, catch-up.

/// Makes jobs known.
pub(in crate::store::postgres) const REGISTER: &str = "SELECT cronlatch_register_v2($1, $2, $3, $4, $5, $6)";

/// Every live daemon's version of the jobs that are not the same on all. One look at the daemons is all
/// if their schedules are one.
pub(in crate::store::postgres) const DISAGREEMENTS: &str = "
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

pub(in crate::store::postgres) const PAUSE: &str =
    "SELECT outcome, paused_from, closed FROM cronlatch_pause_v1($1, $2, $3, $4)";

pub(in crate::store::postgres) const RESUME: &str = "SELECT outcome, paused_from, closed FROM cronlatch_resume_v1($1)";

pub(in crate::store::postgres) const PROGRESS_JOBS: &str = "
SELECT p.job, p.target, p.caught_up_through,
       greatest(p.caught_up_through, j.pruned_through) AS settled_through,
       CASE WHEN j.paused AND (j.paused_until IS NULL OR j.paused_until > cronlatch_now_v1())
                 OR j.paused_until > p.caught_up_through
            THEN coalesce(j.paused_at, p.caught_up_through) END AS paused_from,
       j.paused_until, CASE WHEN p.edited_at <= cronlatch_now_v1() THEN p.edited_at END AS edited_at
FROM unnest($1::text[], $2::text[]) AS i (job, target)
JOIN job_progress p ON p.job = i.job AND p.target = i.target
JOIN jobs j ON j.name = i.job";

pub(in crate::store::postgres) const PROGRESS_ROWS: &str = "
SELECT r.job, r.target, r.scheduled_at
FROM unnest($1::text[], $2::text[]) AS i (job, target)
JOIN job_progress p ON p.job = i.job AND p.target = i.target
JOIN jobs j ON j.name = i.job
JOIN runs r ON r.job = i.job AND r.scheduled_at > greatest(p.caught_up_through, j.pruned_through)
WHERE r.origin = 'schedule' AND r.target = i.target AND r.attempt = 1
ORDER BY r.job, r.target, r.scheduled_at";

pub(in crate::store::postgres) const CATCH_UP: &str = "
SELECT cronlatch_catch_up_v2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
    AS carried_out";

//! The port `Runs`: claims, endings, recovery, history.

/// Columns of a claim's answer.
macro_rules! claim_columns {
    () => {
        "c.outcome, c.run, c.host, c.state, c.reason, c.wait_until, c.early_ms, c.read_at, "
    };
}

pub(in crate::store::postgres) const CLAIM: &str = concat!(
    "SELECT ",
    claim_columns!(),
    grant_columns!("c.lock"),
    " FROM cronlatch_claim_v3($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) AS c"
);

pub(in crate::store::postgres) const UNCLAIMED: &str = "
SELECT i.place
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[])
     WITH ORDINALITY AS i (job, scheduled_at, target, origin, place)
WHERE NOT EXISTS (
    SELECT FROM runs r
    WHERE r.job = i.job AND r.scheduled_at = i.scheduled_at AND r.target = i.target AND r.origin = i.origin
      AND r.attempt = 1
)
ORDER BY i.place";

pub(in crate::store::postgres) const START: &str = "SELECT cronlatch_start_v1($1, $2, $3, $4) AS started";

pub(in crate::store::postgres) const FINISH: &str = "
SELECT recorded, lock, followers, followed
FROM cronlatch_finish_v3($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";

pub(in crate::store::postgres) const GIVE_BACK: &str = "SELECT cronlatch_give_back_v2($1, $2, $3, $4, $5, $6) AS given";

pub(in crate::store::postgres) const RETRY: &str = "
SELECT outcome, attempt
FROM cronlatch_retry_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

/// What a take would not refuse: of late runs, the oldest of each job and target.
pub(in crate::store::postgres) const WAITING: &str = "
WITH clock AS MATERIALIZED (
    SELECT cronlatch_now_v1() AS now
), first AS MATERIALIZED (
    SELECT job, target, min(scheduled_at) AS scheduled_at FROM runs, clock
    WHERE state = 'waiting' AND trigger = 'catch_up' AND target IN ('', $1) AND wait_until > clock.now
    GROUP BY job, target
)
SELECT r.id, r.job, r.scheduled_at, r.target, r.origin, r.attempt, r.trigger, r.created_at, r.wait_until,
       r.retries
FROM runs r CROSS JOIN clock LEFT JOIN first f ON f.job = r.job AND f.target = r.target
WHERE r.state = 'waiting' AND r.target IN ('', $1) AND (r.not_before IS NULL OR r.not_before <= clock.now)
  AND (r.trigger <> 'catch_up' OR f.scheduled_at IS NULL OR f.scheduled_at >= r.scheduled_at)
ORDER BY r.id LIMIT 1000";

pub(in crate::store::postgres) const TAKE: &str = concat!(
    "SELECT ",
    claim_columns!(),
    grant_columns!("c.lock"),
    " FROM cronlatch_take_v3($1, $2, $3, $4, $5, $6, $7, $8, $9) AS c"
);

/// Open runs that seem to have no live lock. Reads only: nearly always there are none.
pub(in crate::store::postgres) const RECOVERABLE: &str = "
SELECT cronlatch_now_v1() AS now, ARRAY(
    SELECT r.id FROM runs r
    WHERE r.state IN ('claimed', 'running') AND NOT EXISTS (
        SELECT FROM distributed_locks l
        WHERE l.resource = r.resource AND l.token = r.token AND l.released_at IS NULL
          AND l.expires_at > cronlatch_now_v1())
    ORDER BY r.id LIMIT 100) AS lost";

pub(in crate::store::postgres) const LOSE: &str = "SELECT * FROM cronlatch_lose_v2($1, $2)";

pub(in crate::store::postgres) const OVERDUE: &str = "
UPDATE runs
SET state = CASE WHEN reason IN ('lock_held', 'replacing') THEN 'skipped' ELSE 'missed' END,
    reason = CASE WHEN reason IN ('lock_held', 'replacing') THEN 'wait_timed_out' ELSE 'start_deadline' END,
    finished_at = cronlatch_now_v1()
WHERE id IN (
    SELECT id FROM runs WHERE state = 'waiting' AND wait_until <= cronlatch_now_v1()
    ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING id, job, scheduled_at, target, origin, attempt, resource, state, reason";

/// A state other than missed is no range's kind.
pub(in crate::store::postgres) const MISSED: &str = "
SELECT job, target, kind, range_from, range_to, count, reason, recorded_at FROM trigger_ranges
WHERE ($1::text IS NULL OR job = $1) AND ($2::timestamptz IS NULL OR range_to >= $2)
  AND ($3::text IS NULL OR kind = $3)
ORDER BY id DESC LIMIT $4";

pub(in crate::store::postgres) const HISTORY: &str = "
SELECT id, job, scheduled_at, target, origin, attempt, trigger, state, host, resource, token, claimed_at, started_at,
       finished_at, wait_until, not_before, exit_code, signal, reason, blocked_by, output_tail,
       cpu_ms, memory_peak_kib
FROM runs
WHERE ($1::text IS NULL OR job = $1) AND ($2::text IS NULL OR state = $2)
  AND ($3::timestamptz IS NULL OR scheduled_at >= $3) AND ($4::uuid IS NULL OR id < $4)
ORDER BY id DESC LIMIT $5";

/// The window bounds the look at a job that is skipped again and again. An attempt that was cancelled or
/// skipped hides none before it.
pub(in crate::store::postgres) const OUTCOMES: &str = "
SELECT id, at, state, count FROM (
    (SELECT r.id, r.scheduled_at AS at, r.state, 1::bigint AS count
    FROM (
        SELECT id, job, scheduled_at, target, origin, attempt, state, reason FROM runs
        WHERE job = $1 AND scheduled_at <= $3
        ORDER BY scheduled_at DESC LIMIT 10000
    ) r
    WHERE r.target = $2
      AND (r.state IN ('succeeded', 'failed', 'lost') OR r.state = 'missed' AND r.reason = ANY($5::text[]))
      AND NOT EXISTS (
        SELECT FROM runs n
        WHERE n.job = r.job AND n.scheduled_at = r.scheduled_at AND n.target = r.target AND n.origin = r.origin
          AND n.attempt > r.attempt AND n.state NOT IN ('cancelled', 'skipped'))
    ORDER BY r.scheduled_at DESC LIMIT $4)
    UNION ALL
    (SELECT NULL, range_to, 'missed', count FROM trigger_ranges
    WHERE job = $1 AND target = $2 AND range_to <= $3 AND kind = 'missed' AND reason = ANY($5::text[])
    ORDER BY range_to DESC LIMIT $4)
) o
ORDER BY at DESC, id DESC LIMIT $4";

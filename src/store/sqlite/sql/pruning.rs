//! What is forgotten in steps.

/// Runs that are over for longer than they are kept, oldest first: run ids sort by time (RFC 9562,
/// version 7). Looked up before the file is taken for writing.
pub(in crate::store::sqlite) const PRUNE_LOOK: &str = "
SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c
WHERE r.id < $1 AND r.finished_at < strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '-' || ($2 / 1000.0) || ' seconds')
  AND r.scheduled_at < strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '-' || ($3 / 1000.0) || ' seconds')
ORDER BY r.id LIMIT 1000";

/// Nothing else changes runs that are over, so what was looked up still holds.
pub(in crate::store::sqlite) const PRUNE_RUNS: &str = "
DELETE FROM runs WHERE id IN (SELECT value FROM json_each($1)) RETURNING job, scheduled_at";

/// The job remembers up to where its history is gone.
pub(in crate::store::sqlite) const PRUNE_REMEMBER: &str = "
UPDATE jobs SET pruned_through = max(coalesce(pruned_through, $2), $2) WHERE name = $1";

/// The next jobs to count.
pub(in crate::store::sqlite) const PRUNE_JOBS: &str =
    "SELECT name FROM jobs WHERE $1 IS NULL OR name > $1 ORDER BY name LIMIT 50";

/// The runs of one job beyond those that are kept; failures, losses and the last success stay. An
/// attempt that failed goes with a later one that didn't, and before it.
pub(in crate::store::sqlite) const PRUNE_COUNT_LOOK: &str = "
SELECT r.id FROM runs r CROSS JOIN cronlatch_now_v1 c LEFT JOIN jobs j ON j.name = r.job
WHERE r.job = $1
  AND r.scheduled_at <= (SELECT scheduled_at FROM runs WHERE job = $1 ORDER BY scheduled_at DESC LIMIT 1 OFFSET $2)
  AND r.scheduled_at < strftime('%Y-%m-%dT%H:%M:%fZ', c.now, '-' || ($3 / 1000.0) || ' seconds')
  AND (r.state IN ('succeeded', 'cancelled', 'skipped', 'missed')
       OR r.state IN ('failed', 'lost') AND EXISTS (
           SELECT 1 FROM runs n
           WHERE n.job = r.job AND n.scheduled_at = r.scheduled_at AND n.target = r.target AND n.origin = r.origin
             AND n.attempt > r.attempt AND n.state IN ('succeeded', 'cancelled', 'skipped', 'missed')))
  AND NOT (r.state = 'succeeded' AND r.scheduled_at IS j.last_success_at)
ORDER BY r.scheduled_at, r.attempt LIMIT 1000";

/// What was asked of a run that ended, or whose host did, before anybody saw it.
pub(in crate::store::sqlite) const CLOSE_REQUESTS: &str = "
UPDATE requests SET done_at = (SELECT now FROM cronlatch_now_v1), outcome = 'over'
WHERE done_at IS NULL AND kind = 'cancel' AND NOT EXISTS (
    SELECT 1 FROM runs r WHERE r.id = requests.run AND r.state IN ('waiting', 'claimed', 'running'))";

pub(in crate::store::sqlite) const PRUNE_REQUESTS: &str = "
DELETE FROM requests WHERE id IN (
    SELECT id FROM requests
    WHERE done_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-' || ($1 / 1000.0) || ' seconds')
    LIMIT 1000)";

/// Tokens come from one sequence, so a lock's next row has a higher one all the same.
pub(in crate::store::sqlite) const PRUNE_LOCKS: &str = "
DELETE FROM distributed_locks WHERE id IN (
    SELECT id FROM distributed_locks
    WHERE released_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-' || (max($1, 86400000) / 1000.0) || ' seconds')
    LIMIT 1000)";

pub(in crate::store::sqlite) const PRUNE_RANGES: &str = "
DELETE FROM trigger_ranges WHERE id IN (
    SELECT id FROM trigger_ranges
    WHERE recorded_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-' || ($1 / 1000.0) || ' seconds')
    LIMIT 1000)";

/// Hosts come and go, and each leaves a watermark for every job that ran there. What was in the file of
/// a daemon that is known was seen today.
pub(in crate::store::sqlite) const TARGETS_SEEN: &str = "
UPDATE job_progress SET seen_at = (SELECT now FROM cronlatch_now_v1)
WHERE rowid IN (
    SELECT p.rowid FROM job_progress p
    WHERE p.target <> '' AND p.seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-1 day')
      AND EXISTS (
        SELECT 1 FROM job_definitions d JOIN hosts h ON h.instance = d.instance
        WHERE d.job = p.job AND h.name = p.target)
    ORDER BY p.seen_at LIMIT 1000)";

/// What was not seen for long goes, but not after a holiday.
pub(in crate::store::sqlite) const FORGET_TARGETS: &str = "
DELETE FROM job_progress WHERE rowid IN (
    SELECT rowid FROM job_progress
    WHERE target <> ''
      AND seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1), '-' || (max($1, 604800000) / 1000.0) || ' seconds')
    ORDER BY seen_at LIMIT 1000)";

/// Definitions of daemons that are gone.
pub(in crate::store::sqlite) const FORGET_ORPHANS: &str = "
DELETE FROM job_definitions WHERE NOT EXISTS (SELECT 1 FROM hosts h WHERE h.instance = job_definitions.instance)";

//! The port `Hosts`.

/// The beat, and who else lives.
pub(in crate::store::sqlite) const BEAT: &str = "
INSERT INTO hosts (instance, name, version, labels, schedule_digest, clock_offset_ms, draining, stale_after_ms,
                   started_at, seen_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, c.now, c.now FROM cronlatch_now_v1 c WHERE true
ON CONFLICT (instance) DO UPDATE
SET labels = excluded.labels, schedule_digest = excluded.schedule_digest, clock_offset_ms = excluded.clock_offset_ms,
    draining = excluded.draining, stale_after_ms = excluded.stale_after_ms, seen_at = excluded.seen_at";

pub(in crate::store::sqlite) const FORGET_DEAD: &str = "
DELETE FROM hosts
WHERE seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1),
                         '-' || max(86400, stale_after_ms * 2 / 1000.0) || ' seconds')";

pub(in crate::store::sqlite) const LEAVE: &str = "DELETE FROM hosts WHERE instance = $1";

pub(in crate::store::sqlite) const HOSTS: &str = "
SELECT instance, name, version, labels, schedule_digest, clock_offset_ms, draining, started_at, seen_at
FROM hosts
WHERE seen_at > strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT now FROM cronlatch_now_v1),
                         '-' || (stale_after_ms / 1000.0) || ' seconds')
ORDER BY instance";

pub(in crate::store::sqlite) const NOW: &str = "SELECT now FROM cronlatch_now_v1";

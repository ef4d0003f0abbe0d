//! The port `Hosts`.

/// The beat, and who else lives.
pub(in crate::store::postgres) const BEAT: &str = "
INSERT INTO hosts (instance, name, version, labels, schedule_digest, clock_offset_ms, draining, stale_after_ms,
                   started_at, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, cronlatch_now_v1(), cronlatch_now_v1())
ON CONFLICT (instance) DO UPDATE
SET labels = excluded.labels, schedule_digest = excluded.schedule_digest, clock_offset_ms = excluded.clock_offset_ms,
    draining = excluded.draining, stale_after_ms = excluded.stale_after_ms, seen_at = cronlatch_now_v1()";

pub(in crate::store::postgres) const LEAVE: &str = "DELETE FROM hosts WHERE instance = $1";

pub(in crate::store::postgres) const HOSTS: &str = "
SELECT instance, name, version, labels, schedule_digest, clock_offset_ms, draining, started_at, seen_at
FROM hosts WHERE seen_at > cronlatch_now_v1() - stale_after_ms * interval '1 millisecond' ORDER BY instance";

pub(in crate::store::postgres) const NOW: &str = "SELECT cronlatch_now_v1() AS now";

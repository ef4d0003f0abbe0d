//! The port `Requests`.

pub(in crate::store::sqlite) const CANCEL_LOOK: &str =
    "SELECT c.now, r.state, r.job FROM cronlatch_now_v1 c JOIN runs r ON r.id = $1";

pub(in crate::store::sqlite) const CANCEL_WAITING: &str =
    "UPDATE runs SET state = 'cancelled', reason = $2, finished_at = $3 WHERE id = $1";

pub(in crate::store::sqlite) const REQUEST_CANCEL: &str = "
INSERT INTO requests (id, kind, job, run, made_by, made_at, reason) VALUES ($1, 'cancel', $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING";

/// What is asked of the runs of one daemon.
pub(in crate::store::sqlite) const OPEN_CANCELS: &str = "
SELECT q.id, q.run, q.made_by, q.reason, q.replaced_by
FROM requests q JOIN runs r ON r.id = q.run
WHERE q.done_at IS NULL AND q.kind = 'cancel' AND r.instance = $1 AND r.state IN ('claimed', 'running')
ORDER BY q.made_at, q.id LIMIT 100";

pub(in crate::store::sqlite) const ANSWER_REQUEST: &str = "
UPDATE requests
SET taken_by = $2, taken_at = c.now, done_at = c.now, outcome = $3
FROM cronlatch_now_v1 c
WHERE requests.id = $1 AND requests.done_at IS NULL
RETURNING requests.id";

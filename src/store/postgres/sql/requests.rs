//! The port `Requests`.

pub(in crate::store::postgres) const REQUEST_CANCEL: &str =
    "SELECT outcome, state FROM cronlatch_request_cancel_v1($1, $2, $3, $4, $5)";

/// What is asked of the runs of one daemon.
pub(in crate::store::postgres) const OPEN_CANCELS: &str = "
SELECT q.id, q.run, q.made_by, q.reason, q.replaced_by
FROM requests q JOIN runs r ON r.id = q.run
WHERE q.done_at IS NULL AND q.kind = 'cancel' AND r.instance = $1 AND r.state IN ('claimed', 'running')
ORDER BY q.made_at, q.id LIMIT 100";

pub(in crate::store::postgres) const ANSWER_REQUEST: &str = "
UPDATE requests SET taken_by = $2, taken_at = cronlatch_now_v1(), done_at = cronlatch_now_v1(), outcome = $3
WHERE id = $1 AND done_at IS NULL
RETURNING id";

//! The statements, in the order of the port. `../sqlite/sql/` has the same names.

/// Columns of a grant's answer, from `g`.
macro_rules! grant_columns {
    ($g:literal) => {
        concat!(
            "(",
            $g,
            ").outcome AS lock_outcome, (",
            $g,
            ").resource AS resource, (",
            $g,
            ").owner AS owner, \
             (",
            $g,
            ").token AS token, (",
            $g,
            ").acquired_at AS acquired_at, (",
            $g,
            ").expires_at AS expires_at, \
             (",
            $g,
            ").now AS now, (",
            $g,
            ").run AS lock_run, (",
            $g,
            ").off_ms AS off_ms, \
             (",
            $g,
            ").prev_owner AS prev_owner, (",
            $g,
            ").prev_token AS prev_token, \
             (",
            $g,
            ").prev_acquired_at AS prev_acquired_at, (",
            $g,
            ").prev_expires_at AS prev_expires_at"
        )
    };
}

mod fleet;
mod jobs;
mod locks;
mod pruning;
mod requests;
mod runs;
mod schema;

pub(super) use fleet::*;
pub(super) use jobs::*;
pub(super) use locks::*;
pub(super) use pruning::*;
pub(super) use requests::*;
pub(super) use runs::*;
pub(super) use schema::*;

/// Begins a transaction that a pooler keeps on one session, and that the server ends by itself if this
/// host falls silent in it.
pub(super) const BEGIN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '5s'";

pub(super) const COMMIT: &str = "COMMIT";

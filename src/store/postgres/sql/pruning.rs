//! What is forgotten in steps.

pub(in crate::store::postgres) const PRUNE_BY_AGE: &str = "SELECT cronlatch_prune_age_v3($1, $2) AS gone";

/// The next jobs to count.
pub(in crate::store::postgres) const PRUNE_JOBS: &str =
    "SELECT name FROM jobs WHERE $1::text IS NULL OR name > $1 ORDER BY name LIMIT 50";

pub(in crate::store::postgres) const PRUNE_BY_COUNT: &str = "SELECT cronlatch_prune_count_v2($1, $2, $3) AS gone";

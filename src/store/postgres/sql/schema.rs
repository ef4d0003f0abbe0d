//! The schema's own row.

/// Makes the schema's own row, if there is none. Two hosts that make the first table at once would
/// meet in the catalogue's unique index, IF NOT EXISTS or not: hence the one advisory lock, which
/// ends with its transaction.
pub(in crate::store::postgres) const SCHEMA_TABLE: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(1668246382, 0);
CREATE TABLE IF NOT EXISTS cronlatch_schema (
    id         integer PRIMARY KEY CHECK (id = 1),
    version    bigint NOT NULL,
    min_reader bigint NOT NULL,
    cluster    text,
    migrated_at timestamptz NOT NULL
);
INSERT INTO cronlatch_schema VALUES (1, 0, 0, NULL, clock_timestamp()) ON CONFLICT DO NOTHING;
COMMIT";

pub(in crate::store::postgres) const SCHEMA_FOUND: &str = "SELECT to_regclass('cronlatch_schema') IS NOT NULL AS found";

pub(in crate::store::postgres) const SCHEMA_LOCK: &str =
    "SELECT version, min_reader FROM cronlatch_schema WHERE id = 1 FOR UPDATE";

pub(in crate::store::postgres) const SCHEMA_READ: &str =
    "SELECT version, min_reader FROM cronlatch_schema WHERE id = 1";

pub(in crate::store::postgres) const SCHEMA_WRITE: &str =
    "UPDATE cronlatch_schema SET version = $1, min_reader = $2, migrated_at = clock_timestamp() WHERE id = 1";

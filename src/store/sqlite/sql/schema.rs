//! The schema's own row.

/// Makes the schema's own row, if there is none.
pub(in crate::store::sqlite) const SCHEMA_TABLE: &str = "
CREATE TABLE IF NOT EXISTS cronlatch_schema (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    version     INTEGER NOT NULL,
    min_reader  INTEGER NOT NULL,
    cluster     TEXT,
    migrated_at TEXT NOT NULL
);
INSERT INTO cronlatch_schema VALUES (1, 0, 0, NULL, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ON CONFLICT DO NOTHING";

pub(in crate::store::sqlite) const SCHEMA_FOUND: &str =
    "SELECT count(*) > 0 AS found FROM sqlite_master WHERE type = 'table' AND name = 'cronlatch_schema'";

pub(in crate::store::sqlite) const SCHEMA_READ: &str = "SELECT version, min_reader FROM cronlatch_schema WHERE id = 1";

pub(in crate::store::sqlite) const SCHEMA_WRITE: &str = "
UPDATE cronlatch_schema
SET version = $1, min_reader = $2, migrated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE id = 1";

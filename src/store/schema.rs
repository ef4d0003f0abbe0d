//! The schema: which version is there, and how it is brought to this binary's.
//!
//! Migrations are numbered, have the same file names for both databases, and are never edited once
//! released. They run in one transaction under a locked row, so that two hosts that start at once
//! do it once. `min_reader` lets hosts be upgraded one by one: an older binary goes on with a newer
//! schema as long as its version is not below it.

use async_trait::async_trait;

use super::{SchemaError, StoreError};

/// The version that this binary needs: the number of its newest migration.
pub const SCHEMA_VERSION: i64 = 3;

/// One step, with the oldest binary that may use the schema after it.
pub(super) struct Migration {
    pub version: i64,
    pub min_reader: i64,
    pub sql: &'static str,
}

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 for none.
    pub from: i64,
    /// The version now.
    pub to: i64,
}

/// The tables themselves.
#[async_trait]
pub trait Schema: Send + Sync {
    /// Brings the tables to this binary's version. Safe to run from several hosts at once, while
    /// daemons work.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was changed, or all of it.
    ///
    /// # Cancel safety
    /// Dropped, all or nothing may have been done.
    async fn migrate(&self) -> Result<Migrated, StoreError>;

    /// Checks that this binary can work with the tables that are there.
    ///
    /// # Errors
    /// [`StoreError::Schema`] says what is wrong and what to do.
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    async fn check_schema(&self) -> Result<(), StoreError>;
}

/// Judges what the schema's row says; `None`: there is no such row.
pub(super) fn judge(found: Option<(i64, i64)>) -> Result<(), SchemaError> {
    match found {
        None => Err(SchemaError::Missing),
        Some((found, min_reader)) if min_reader > SCHEMA_VERSION => {
            Err(SchemaError::Newer { found, min_reader, known: SCHEMA_VERSION })
        }
        Some((found, _)) if found < SCHEMA_VERSION => Err(SchemaError::Older { found, needed: SCHEMA_VERSION }),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_schema_is_refused_only_below_its_oldest_reader() {
        assert_eq!(judge(Some((9, SCHEMA_VERSION))), Ok(()));
        assert_eq!(
            judge(Some((9, SCHEMA_VERSION + 1))),
            Err(SchemaError::Newer { found: 9, min_reader: SCHEMA_VERSION + 1, known: SCHEMA_VERSION })
        );
        assert_eq!(judge(Some((0, 0))), Err(SchemaError::Older { found: 0, needed: SCHEMA_VERSION }));
        assert_eq!(judge(None), Err(SchemaError::Missing));
    }
}

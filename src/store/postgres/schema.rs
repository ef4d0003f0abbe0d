use std::time::Duration;

use async_trait::async_trait;
use sqlx::{Executor, PgConnection};

use super::decode::{column, malformed};
use super::{PostgresStore, sql};
use crate::store::connections::Call;
use crate::store::schema::{Migration, judge};
use crate::store::{Migrated, SCHEMA_VERSION, Schema, SchemaError, StoreError};

/// A migration may wait for another host's.
pub(super) const MIGRATION_TIMEOUT: Duration = Duration::from_secs(60);

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, min_reader: 1, sql: include_str!("../../../migrations/postgres/0001_initial.sql") },
    Migration { version: 2, min_reader: 2, sql: include_str!("../../../migrations/postgres/0002_schedules.sql") },
    Migration { version: 3, min_reader: 2, sql: include_str!("../../../migrations/postgres/0003_outcomes.sql") },
];

#[async_trait]
impl Schema for PostgresStore {
    async fn migrate(&self) -> Result<Migrated, StoreError> {
        // A role that may only use the tables has nothing to do here, and needs no right to make them.
        if let Some((found, min_reader)) = self.found().await?
            && found >= SCHEMA_VERSION
            && min_reader <= SCHEMA_VERSION
        {
            return Ok(Migrated { from: found, to: found });
        }
        let mut call = self.direct.call("migrate").await?;
        call.run(|connection| connection.execute(sqlx::raw_sql(sql::SCHEMA_TABLE))).await?;
        migrate_under_lock(call).await
    }

    async fn check_schema(&self) -> Result<(), StoreError> {
        judge(self.found().await?)?;
        Ok(())
    }
}

impl PostgresStore {
    /// The version and the oldest reader of the tables that are there, if any are.
    async fn found(&self) -> Result<Option<(i64, i64)>, StoreError> {
        let mut call = self.work.call("check the schema").await?;
        let rows = self.run(&mut call, self.query(sql::SCHEMA_FOUND)).await?;
        let row = rows.first().ok_or_else(|| malformed("an answer without a row"))?;
        if !column::<bool>(row, "found")? {
            call.done();
            return Ok(None);
        }
        let rows = self.all(call, self.query(sql::SCHEMA_READ)).await?;
        let found = match rows.first() {
            None => None,
            Some(row) => Some((column(row, "version")?, column(row, "min_reader")?)),
        };
        Ok(found.filter(|(version, _): &(i64, i64)| *version > 0))
    }
}

/// All pending migrations in one transaction, behind the lock on the schema's row.
async fn migrate_under_lock(mut call: Call<'_, PgConnection>) -> Result<Migrated, StoreError> {
    call.run(|connection| connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")).await?;
    let row = call.run(|connection| connection.fetch_one(sql::SCHEMA_LOCK)).await?;
    let (found, min_reader): (i64, i64) = (column(&row, "version")?, column(&row, "min_reader")?);
    if min_reader > SCHEMA_VERSION {
        return Err(SchemaError::Newer { found, min_reader, known: SCHEMA_VERSION }.into());
    }
    let mut to = found;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        call.run(|connection| connection.execute(sqlx::raw_sql(migration.sql))).await?;
        let query = sqlx::query(sql::SCHEMA_WRITE).persistent(false).bind(migration.version).bind(migration.min_reader);
        call.run(|connection| query.execute(connection)).await?;
        to = migration.version;
    }
    call.run(|connection| connection.execute(sql::COMMIT)).await?;
    // Dropped, not kept: it would be one more connection than this process may have.
    drop(call);
    Ok(Migrated { from: found, to })
}

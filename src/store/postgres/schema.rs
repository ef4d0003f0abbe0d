use std::time::Duration;

use async_trait::async_trait;
use sqlx::{Executor, PgConnection};

use super::decode::column;
use super::{PostgresStore, sql};
use crate::store::connections::Call;
use crate::store::schema::{Migration, judge};
use crate::store::{Migrated, SCHEMA_VERSION, Schema, SchemaError, StoreError};

/// A migration may wait for another host's.
pub(super) const MIGRATION_TIMEOUT: Duration = Duration::from_secs(60);

const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, min_reader: 1, sql: include_str!("../../../migrations/postgres/0001_initial.sql") }];

#[async_trait]
impl Schema for PostgresStore {
    async fn migrate(&self) -> Result<Migrated, StoreError> {
        // Two hosts that make the first table at once: the loser's statement fails in a unique
        // index of the catalogue, and finds the table the next time.
        let mut tries = 3;
        loop {
            let mut call = self.direct.call("migrate").await?;
            match call.run(|connection| connection.execute(sqlx::raw_sql(sql::SCHEMA_TABLE))).await {
                Ok(_) => return migrate_under_lock(call).await,
                Err(StoreError::Refused { source, .. })
                    if tries > 0 && source.as_database_error().is_some_and(|error| error.is_unique_violation()) =>
                {
                    tries -= 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn check_schema(&self) -> Result<(), StoreError> {
        let mut call = self.work.call("check the schema").await?;
        let query = self.query(sql::SCHEMA_FOUND);
        let row = call.run(|connection| query.fetch_one(connection)).await?;
        if !column::<bool>(&row, "found")? {
            call.done();
            return Err(SchemaError::Missing.into());
        }
        let query = self.query(sql::SCHEMA_READ);
        let row = call.run(|connection| query.fetch_optional(connection)).await?;
        call.done();
        let found = match row {
            None => None,
            Some(row) => Some((column(&row, "version")?, column(&row, "min_reader")?)),
        };
        judge(found.filter(|(version, _)| *version > 0))?;
        Ok(())
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
    call.done();
    Ok(Migrated { from: found, to })
}

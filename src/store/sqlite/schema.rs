use std::time::Duration;

use async_trait::async_trait;
use sqlx::Executor;
use tokio::time::Instant;

use super::decode::column;
use super::{SqliteStore, all, execute, sql};
use crate::store::schema::{Migration, judge};
use crate::store::{Migrated, SCHEMA_VERSION, Schema, SchemaError, StoreError};

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, min_reader: 1, sql: include_str!("../../../migrations/sqlite/0001_initial.sql") },
    Migration { version: 2, min_reader: 2, sql: include_str!("../../../migrations/sqlite/0002_schedules.sql") },
    Migration { version: 3, min_reader: 2, sql: include_str!("../../../migrations/sqlite/0003_outcomes.sql") },
];

#[async_trait]
impl Schema for SqliteStore {
    async fn migrate(&self) -> Result<Migrated, StoreError> {
        let deadline = Instant::now() + self.work.timeout();
        loop {
            match self.migrate_once(deadline).await {
                // Several processes that make the file at once meet in its change to WAL, where
                // SQLite doesn't wait.
                Err(StoreError::Busy { .. }) if Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                answer => return answer,
            }
        }
    }

    async fn check_schema(&self) -> Result<(), StoreError> {
        let mut call = self.work.call("check the schema").await?;
        let row = call.run(|connection| connection.fetch_one(sql::SCHEMA_FOUND)).await?;
        if !column::<bool>(&row, "found")? {
            call.done();
            return Err(SchemaError::Missing.into());
        }
        let rows = all(call, sqlx::query(sql::SCHEMA_READ)).await?;
        let found = match rows.first() {
            None => None,
            Some(row) => Some((column(row, "version")?, column(row, "min_reader")?)),
        };
        judge(found.filter(|(version, _): &(i64, i64)| *version > 0))?;
        Ok(())
    }
}

impl SqliteStore {
    /// All pending migrations in one transaction that has the file to itself.
    async fn migrate_once(&self, deadline: Instant) -> Result<Migrated, StoreError> {
        let _turn = self.gate.turn("migrate", deadline).await?;
        let mut call = self.work.call("migrate").await?;
        execute(&mut call, sql::BEGIN).await?;
        execute(&mut call, sql::SCHEMA_TABLE).await?;
        let row = call.run(|connection| connection.fetch_one(sql::SCHEMA_READ)).await?;
        let (found, min_reader): (i64, i64) = (column(&row, "version")?, column(&row, "min_reader")?);
        if min_reader > SCHEMA_VERSION {
            return Err(SchemaError::Newer { found, min_reader, known: SCHEMA_VERSION }.into());
        }
        let mut to = found;
        for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
            call.run(|connection| connection.execute(sqlx::raw_sql(migration.sql))).await?;
            let query = sqlx::query(sql::SCHEMA_WRITE).bind(migration.version).bind(migration.min_reader);
            call.run(|connection| query.execute(connection)).await?;
            to = migration.version;
        }
        execute(&mut call, sql::COMMIT).await?;
        call.done();
        Ok(Migrated { from: found, to })
    }
}

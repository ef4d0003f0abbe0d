//! The tables themselves: made once, whoever comes first, and refused when they are not ours.

use std::collections::BTreeSet;

use cronlatch::store::{Migrated, SCHEMA_VERSION, SchemaError, StoreError};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    a_database_without_tables_is_missing_them,
    the_first_migration_makes_the_tables,
    migrating_again_changes_nothing,
    two_hosts_that_migrate_at_once_do_it_once,
    eight_hosts_that_migrate_at_once_do_it_once,
    a_newer_schema_that_this_binary_may_read_is_accepted,
    a_newer_schema_that_this_binary_may_not_read_is_refused_by_both_numbers,
    an_older_schema_is_refused_until_it_is_migrated,
    a_refused_schema_is_not_written_to_by_a_migration,
);

async fn schema_error(db: &TestDb) -> SchemaError {
    match db.store().check_schema().await {
        Err(StoreError::Schema(error)) => error,
        other => panic!("{other:?}"),
    }
}

async fn set_versions(db: &TestDb, version: i64, min_reader: i64) {
    db.sql(format!("UPDATE cronlatch_schema SET version = {version}, min_reader = {min_reader}")).await;
}

async fn a_database_without_tables_is_missing_them(db: &TestDb) {
    let empty = db.unmigrated().await;
    assert_eq!(schema_error(&empty).await, SchemaError::Missing);
    empty.remove().await;
}

async fn the_first_migration_makes_the_tables(db: &TestDb) {
    let empty = db.unmigrated().await;
    let store = empty.store();
    assert_eq!(store.migrate().await.unwrap(), Migrated { from: 0, to: SCHEMA_VERSION });
    store.check_schema().await.unwrap();
    acquire(&store, "report", "a").await;
    drop(store);
    empty.remove().await;
}

async fn migrating_again_changes_nothing(db: &TestDb) {
    let store = db.store();
    let grant = acquire(&store, "report", "a").await;
    for _ in 0..2 {
        assert_eq!(store.migrate().await.unwrap(), Migrated { from: SCHEMA_VERSION, to: SCHEMA_VERSION });
    }
    assert_eq!(lock(&store, "report").await.holder.token, grant.token);
    store.check_schema().await.unwrap();
}

async fn two_hosts_that_migrate_at_once_do_it_once(db: &TestDb) {
    migrate_at_once(db, 2, 6).await;
}

async fn eight_hosts_that_migrate_at_once_do_it_once(db: &TestDb) {
    migrate_at_once(db, 8, 3).await;
}

async fn migrate_at_once(db: &TestDb, hosts: usize, rounds: usize) {
    for _ in 0..rounds {
        let empty = db.unmigrated().await;
        let migrating = (0..hosts).map(|_| {
            let store = empty.store();
            async move {
                let migrated = store.migrate().await;
                store.check_schema().await.unwrap();
                migrated.unwrap()
            }
        });
        let migrated = at_once(migrating).await;
        let first = migrated.iter().filter(|migrated| migrated.from == 0).count();
        assert_eq!(first, 1, "{migrated:?}");
        assert!(migrated.iter().all(|migrated| migrated.to == SCHEMA_VERSION), "{migrated:?}");
        assert_eq!(empty.count("cronlatch_schema", "1 = 1").await, 1);
        empty.remove().await;
    }
}

async fn a_newer_schema_that_this_binary_may_read_is_accepted(db: &TestDb) {
    let store = db.store();
    set_versions(db, SCHEMA_VERSION + 8, SCHEMA_VERSION).await;
    store.check_schema().await.unwrap();
    let newer = SCHEMA_VERSION + 8;
    assert_eq!(store.migrate().await.unwrap(), Migrated { from: newer, to: newer });
    assert_eq!(db.count("cronlatch_schema", &format!("version = {newer}")).await, 1);
}

async fn a_newer_schema_that_this_binary_may_not_read_is_refused_by_both_numbers(db: &TestDb) {
    let (found, min_reader) = (SCHEMA_VERSION + 41, SCHEMA_VERSION + 28);
    set_versions(db, found, min_reader).await;
    let error = schema_error(db).await;
    assert_eq!(error, SchemaError::Newer { found, min_reader, known: SCHEMA_VERSION });
    let message = error.to_string();
    for part in [format!("version {found}"), format!("version {min_reader}"), format!("knows {SCHEMA_VERSION}")] {
        assert!(message.contains(&part), "{part} is missing in: {message}");
    }
    assert!(!StoreError::from(error).is_transient());
}

async fn an_older_schema_is_refused_until_it_is_migrated(db: &TestDb) {
    set_versions(db, -1, -1).await;
    let error = schema_error(db).await;
    assert!(matches!(error, SchemaError::Older { .. } | SchemaError::Missing), "{error:?}");
    assert!(error.to_string().contains("cronlatch migrate"), "{error}");
}

async fn a_refused_schema_is_not_written_to_by_a_migration(db: &TestDb) {
    let newer = SCHEMA_VERSION + 8;
    set_versions(db, newer, newer).await;
    let error = db.store().migrate().await;
    assert!(matches!(error, Err(StoreError::Schema(SchemaError::Newer { .. }))), "{error:?}");
    assert_eq!(db.count("cronlatch_schema", &format!("version = {newer} AND min_reader = {newer}")).await, 1);
}

/// One set of names, so that a person, a report or another program reads either database.
#[tokio::test]
async fn both_databases_have_the_same_tables_and_columns() {
    let (postgres, sqlite) = (TestDb::postgres().await, TestDb::sqlite().await);
    let in_postgres = postgres
        .sql(
            "SELECT c.table_name, c.column_name FROM information_schema.columns c \
             JOIN information_schema.tables t ON t.table_name = c.table_name AND t.table_schema = c.table_schema \
             WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'",
        )
        .await;
    let in_sqlite = sqlite
        .sql(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name <> 'fencing_tokens'",
        )
        .await;
    let (in_postgres, in_sqlite): (BTreeSet<_>, BTreeSet<_>) =
        (in_postgres.into_iter().collect(), in_sqlite.into_iter().collect());
    assert!(in_postgres.contains("distributed_locks|expires_at"), "{in_postgres:?}");
    assert_eq!(in_postgres, in_sqlite);
    postgres.remove().await;
}

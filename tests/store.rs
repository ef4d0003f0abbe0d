//! The conformance suite of the store: what the tables promise, whichever database holds them.
//!
//! Every case is written once, against the port, and runs on PostgreSQL and on SQLite: a case
//! `store::renewing::a_batch_keeps_its_order` is the two tests `store::renewing::postgres::...` and
//! `store::renewing::sqlite::...`. Only what one database alone can do wrong (isolation levels, a
//! locked file) has a file for that database.
//!
//! Each test has a database of its own. Time stands still where an instant matters: the tables
//! read their clock through one place, and the tests put another there.
#![allow(clippy::unwrap_used)]

mod support;

/// Makes a test of each case on each database. A case that is not listed is dead code.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        on_postgres!($($case),+);
        on_sqlite!($($case),+);
    };
}

macro_rules! on_postgres {
    ($($case:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let db = crate::store::database::TestDb::postgres().await;
                super::$case(&db).await;
                db.remove().await;
            })+
        }
    };
}

macro_rules! on_sqlite {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let db = crate::store::database::TestDb::sqlite().await;
                super::$case(&db).await;
                db.remove().await;
            })+
        }
    };
}

mod store {
    mod database;
    mod fixtures;

    mod acquiring;
    mod clocks;
    mod fencing;
    mod names;
    mod racing;
    mod reading;
    mod releasing;
    mod renewing;
    mod waiting_in_line;

    mod cancelling;
    mod catching_up;
    mod claim_race;
    mod claiming;
    mod finishing;
    mod following;
    mod giving_back;
    mod history;
    mod outcomes;
    mod pausing;
    mod pruning;
    mod recovering;
    mod replacing;
    mod retrying;
    mod running_late;
    mod starting;
    mod taking;
    mod targets;

    mod disagreeing;
    mod fleet;
    mod former_version;
    mod registering;
    mod schema;
    mod upgrading;

    mod postgres_alone;
    mod postgres_locking;
    mod sqlite_alone;
}

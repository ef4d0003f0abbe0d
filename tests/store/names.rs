//! What may be a name, and that a name means nothing else in either database.

use cronlatch::lock::{InvalidOwner, InvalidResource, InvalidTtl, Owner, Resource, Ttl};
use cronlatch::store::{Released, Renewed};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    every_name_that_is_allowed_locks_what_it_says,
    names_that_look_alike_are_different_locks,
    an_owner_may_be_as_long_and_as_odd_as_a_name,
);

/// Names that quoting, patterns, collations or lengths in bytes would spoil.
fn odd_names() -> Vec<String> {
    let odd = [
        "x",
        "report:monthly-2026-05",
        "a/b?c=d&e#f",
        "it's \"quoted\"; DROP TABLE distributed_locks; --",
        "100 % of $1 and :name and @p and \\n",
        "_%*[a-z]",
        "Größe",
        "журнал",
        "日本語",
        "🦀🔒👨‍👩‍👧",
        "\u{202e}right to left",
        " led and followed by spaces ",
        "NULL",
        "{1,2}",
    ];
    let long = ["x".repeat(255), "ß".repeat(255), "🦀".repeat(255)];
    odd.into_iter().map(str::to_owned).chain(long).collect()
}

async fn every_name_that_is_allowed_locks_what_it_says(db: &TestDb) {
    let store = db.store();
    let names = odd_names();
    for name in &names {
        acquire(&store, name, "a").await;
    }
    for name in &names {
        assert_eq!(lock(&store, name).await.holder.resource, resource(name));
        assert!(!store.acquire(&attempt(name, "b")).await.unwrap().is_granted(), "{name}");
        let renewed = store.renew(&[renewal(name, "a", None)], WITHIN).await.unwrap();
        assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{name}: {renewed:?}");
        assert_eq!(store.release(&resource(name), &owner("a"), None).await.unwrap(), Released::Released, "{name}");
    }
    assert_eq!(store.locks().await.unwrap(), []);
}

async fn names_that_look_alike_are_different_locks(db: &TestDb) {
    let store = db.store();
    // The last two: one letter, and a letter with an accent of its own.
    for name in ["report", "Report", " report", "report ", "reportx", "r\u{e9}port", "re\u{301}port"] {
        acquire(&store, name, name).await;
    }
    assert_eq!(store.locks().await.unwrap().len(), 7);
}

async fn an_owner_may_be_as_long_and_as_odd_as_a_name(db: &TestDb) {
    let store = db.store();
    for name in odd_names() {
        acquire(&store, "report", &name).await;
        assert_eq!(lock(&store, "report").await.holder.owner, owner(&name).public());
        assert!(!store.acquire(&attempt("report", "other")).await.unwrap().is_granted(), "{name}");
        assert_eq!(store.release(&resource("report"), &owner(&name), None).await.unwrap(), Released::Released);
    }
}

#[test]
fn names_that_are_blank_too_long_or_hold_control_characters_never_reach_the_tables() {
    for blank in ["", " ", "\t \u{a0}"] {
        assert_eq!(Resource::new(blank), Err(InvalidResource::Blank));
        assert_eq!(Owner::new(blank), Err(InvalidOwner::Blank));
    }
    for long in ["x".repeat(256), "ß".repeat(256), "🦀".repeat(256)] {
        assert_eq!(Resource::new(long.clone()), Err(InvalidResource::TooLong(256)));
        assert_eq!(Owner::new(long), Err(InvalidOwner::TooLong(256)));
    }
    for control in ["a\0b", "a\nb", "a\u{7f}b", "a\u{85}b"] {
        assert_eq!(Resource::new(control), Err(InvalidResource::Control(2)));
        assert_eq!(Owner::new(control), Err(InvalidOwner::Control(2)));
    }
}

#[test]
fn a_ttl_of_nothing_or_of_more_than_seven_days_never_reaches_the_tables() {
    assert_eq!(Ttl::new(MILLISECOND - MILLISECOND / 1000), Err(InvalidTtl::TooShort));
    assert_eq!(Ttl::new(Ttl::MAX + MILLISECOND), Err(InvalidTtl::TooLong(Ttl::MAX + MILLISECOND)));
    assert!(Ttl::new(MILLISECOND).is_ok() && Ttl::new(Ttl::MAX).is_ok());
}

//! The house keeps its floors: an import only points down, and some crates have one room each.
//!
//! The sources are read as text, comments and literals left out; macros are not expanded. So this
//! finds what people write by mistake, not what somebody hides on purpose.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "floors/source.rs"]
mod source;

use source::{Mention, Source};

/// Each room with its height. A room uses what is lower; rooms of one height don't know each other.
///
/// Floor 1 has an order of its own, and events stand between floors 1 and 2.
const FLOORS: [(&str, u32); 15] = [
    ("clock", 0),
    ("telemetry", 0),
    ("fleet", 10),
    ("lock", 11),
    ("job", 12),
    ("trigger", 13),
    ("events", 15),
    ("config", 20),
    ("store", 30),
    ("lease", 40),
    ("shim", 40),
    ("run", 50),
    ("daemon", 60),
    ("cli", 70),
    ("http", 70),
];

/// Crates that only one room may name.
const ONE_ROOM_EACH: [(&str, &[&str]); 4] =
    [("sqlx", &["store"]), ("cron", &["job", "schedule"]), ("clap", &["cli"]), ("axum", &["http"])];

/// Where processes are started and `unsafe` is written.
const PROCESS_ROOM: &str = "shim";

/// Last parts of paths that start a process, whatever crate brings them.
const SPAWNING: [&str; 6] = ["fork", "vfork", "posix_spawn", "execve", "execveat", "CommandExt"];

#[test]
fn every_import_points_down_and_every_crate_keeps_to_its_room() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = rust_files(&src);
    assert!(files.len() > 2, "no sources under {}", src.display());
    let check = |path: &PathBuf| {
        let name = path.strip_prefix(&src).unwrap().to_str().unwrap();
        violations(name, &fs::read_to_string(path).unwrap())
    };
    let found: Vec<_> = files.iter().flat_map(check).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// What is wrong in a file, given its path under `src`.
fn violations(name: &str, text: &str) -> Vec<String> {
    let source = Source::read(name, text);
    let mut wrong = Vec::new();
    if let Some(room) = source.room()
        && height(room).is_none()
    {
        wrong.push(format!("src/{name}: room `{room}` has no floor: give it one in tests/floors.rs"));
    }
    let makes_clap_commands = source.mentions.iter().any(|mention| mention.path == ["clap", "Command"]);
    for mention in &source.mentions {
        let found = [against_floors(&source, mention), against_rooms(&source, mention)];
        let mut found: Vec<String> = found.into_iter().flatten().collect();
        if source.room() != Some(PROCESS_ROOM) && starts_a_process(&mention.path, makes_clap_commands) {
            found.push(format!("starts a process, which only `{PROCESS_ROOM}` may"));
        }
        if source.room() != Some(PROCESS_ROOM) && mention.path == ["unsafe"] {
            found.push(format!("only `{PROCESS_ROOM}` may hold unsafe code"));
        }
        let said = mention.path.join("::");
        wrong.extend(found.into_iter().map(|what| format!("src/{name}:{}: `{said}`: {what}", mention.line)));
    }
    wrong
}

fn height(room: &str) -> Option<u32> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|(_, height)| *height)
}

/// An import from a room that does not lie lower. `lib.rs` and `main.rs` stand above all.
fn against_floors(source: &Source, mention: &Mention) -> Option<String> {
    let room = source.room()?;
    let used = mention.room.as_deref()?;
    if used == room {
        return None;
    }
    let Some(used_height) = height(used) else {
        return Some(format!("`{used}` is no room; what stands in lib.rs is above all"));
    };
    let is_lower = height(room).is_some_and(|own| used_height < own);
    (!is_lower).then(|| format!("`{room}` must not use `{used}`, which does not lie below it"))
}

/// A crate outside its room.
fn against_rooms(source: &Source, mention: &Mention) -> Option<String> {
    let named = mention.path.first()?;
    let (name, room) = ONE_ROOM_EACH.iter().find(|(name, _)| name == named)?;
    let is_at_home = source.module.iter().zip(*room).filter(|(part, home)| part == home).count() == room.len();
    (!is_at_home && mention.is_foreign).then(|| format!("`{name}` is used only in `{}`", room.join("/")))
}

fn starts_a_process(path: &[String], makes_clap_commands: bool) -> bool {
    let has = |parts: &[&str]| path.windows(parts.len()).any(|window| window == parts);
    has(&["tokio", "process"])
        || has(&["process", "Command"])
        || has(&["std", "process", "*"])
        || (has(&["Command", "new"]) && !makes_clap_commands)
        || path.last().is_some_and(|last| path.len() > 1 && SPAWNING.contains(&last.as_str()))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// How many things are wrong in a made-up file.
fn count(name: &str, text: &str) -> usize {
    violations(name, text).len()
}

#[test]
fn an_import_downwards_is_fine_and_one_upwards_is_found() {
    assert_eq!(count("store/mod.rs", "use crate::lock::Resource;"), 0);
    assert_eq!(count("lock/mod.rs", "use crate::store::Locks;"), 1);
    assert_eq!(count("lock/owner.rs", "fn f() { crate::daemon::stop() }"), 1);
    assert_eq!(count("lock/mod.rs", "use crate::lock::Owner;"), 0);
}

#[test]
fn floor_one_has_an_order_and_rooms_of_one_height_stay_apart() {
    assert_eq!(count("lock/mod.rs", "use crate::fleet::HostName;"), 0);
    assert_eq!(count("fleet/mod.rs", "use crate::lock::Owner;"), 1);
    assert_eq!(count("trigger/mod.rs", "use crate::{job::JobName, lock::Owner};"), 0);
    assert_eq!(count("job/mod.rs", "use crate::trigger::RunId;"), 1);
    assert_eq!(count("events.rs", "use crate::trigger::RunId;"), 0);
    assert_eq!(count("trigger/mod.rs", "use crate::events;"), 1);
    assert_eq!(count("lease/mod.rs", "use crate::shim::Shim;"), 1);
    assert_eq!(count("telemetry/mod.rs", "use crate::clock::BootInstant;"), 1);
}

#[test]
fn each_branch_of_a_grouped_import_counts() {
    assert_eq!(count("config/mod.rs", "use crate::{clock::Boot, store::{self, runs::{Run, Claim}}, run};"), 4);
    assert_eq!(count("config/mod.rs", "pub use crate::{\n    lock::*,\n    job as work,\n};"), 0);
}

#[test]
fn super_is_followed_out_of_the_room_and_out_of_inner_modules() {
    assert_eq!(count("lock/mod.rs", "use super::store::Locks;"), 1);
    assert_eq!(count("lock/token.rs", "use super::store::Locks;"), 0, "that is a module of lock");
    assert_eq!(count("lock/token.rs", "use super::super::store::Locks;"), 1);
    assert_eq!(count("lock/mod.rs", "mod tests { use super::*; use super::store::X; }"), 0);
    assert_eq!(count("lock/mod.rs", "mod tests { use super::super::store::X; } use super::store::X;"), 2);
    assert_eq!(count("job/schedule/mod.rs", "use super::super::super::store::X;"), 0, "no such module");
    assert_eq!(count("job/schedule/mod.rs", "use super::super::store::X;"), 1);
}

#[test]
fn a_room_without_a_floor_and_items_of_the_top_file_are_found() {
    assert_eq!(count("helpers/mod.rs", ""), 1);
    assert_eq!(count("helpers.rs", ""), 1);
    assert_eq!(count("lock/mod.rs", "use crate::Error;"), 1);
    assert_eq!(count("lib.rs", "pub mod lock; use crate::daemon::X;"), 0);
    assert_eq!(count("lock/mod.rs", "pub(crate) fn f() {} pub(in crate::lock) fn g() {}"), 0);
}

#[test]
fn each_crate_keeps_to_its_room() {
    assert_eq!(count("store/postgres/locks.rs", "use sqlx::PgPool;"), 0);
    assert_eq!(count("lease/mod.rs", "use sqlx::PgPool;"), 1);
    assert_eq!(count("lease/mod.rs", "use sqlx;"), 1);
    assert_eq!(count("lease/mod.rs", "fn f(e: sqlx::Error) {}"), 1);
    assert_eq!(count("lease/mod.rs", "use {std::fmt, ::sqlx::PgPool};"), 1);
    assert_eq!(count("main.rs", "use clap::Parser;"), 1);
    assert_eq!(count("cli/mod.rs", "#[derive(clap::Parser)] struct A;"), 0);
    assert_eq!(count("job/schedule/mod.rs", "use cron::Schedule;"), 0);
    assert_eq!(count("job/definition.rs", "use cron::Schedule;"), 1);
    assert_eq!(count("daemon/mod.rs", "use axum::Router;"), 1);
    assert_eq!(count("daemon/mod.rs", "use super::job::cron::X;"), 0, "a module may be called so");
}

#[test]
fn processes_and_unsafe_code_are_found_outside_their_room() {
    assert_eq!(count("run/mod.rs", "use std::process::Command;"), 1);
    assert_eq!(count("run/mod.rs", "use std::process; fn f() { process::Command::new(1); }"), 1);
    assert_eq!(count("run/mod.rs", "fn f() { Command::new(1); }"), 1);
    assert_eq!(count("run/mod.rs", "use tokio::process;"), 1);
    assert_eq!(count("run/mod.rs", "fn f() { libc::fork(); unsafe { g() } }"), 2);
    assert_eq!(count("shim/child.rs", "use std::process::Command; fn f() { unsafe { libc::fork() } }"), 0);
    assert_eq!(count("main.rs", "fn main() -> std::process::ExitCode { std::process::exit(1) }"), 0);
    assert_eq!(count("cli/mod.rs", "use clap::Command; fn f() { Command::new(1); }"), 0);
    assert_eq!(count("lib.rs", "#![deny(unsafe_code)]"), 0);
}

#[test]
fn comments_and_literals_are_no_code() {
    let text = r###"
        //! [`crate::daemon`] and sqlx::Pool
        /* unsafe /* nested: use crate::store::X; */ still */
        const A: &str = "use crate::store::X; \" unsafe";
        const B: &str = r#"" unsafe sqlx::Error "#;
        const C: char = '"'; fn f<'a>(x: &'a str) { g('\'', b'"', "sqlx::A") }
    "###;
    assert_eq!(violations("lock/mod.rs", text), Vec::<String>::new());
}

#[test]
fn a_violation_names_file_line_and_path() {
    let said = violations("lock/mod.rs", "\n\nuse crate::store::Locks;");
    assert_eq!(
        said,
        ["src/lock/mod.rs:3: `crate::store::Locks`: `lock` must not use `store`, which does not lie below it"]
    );
}

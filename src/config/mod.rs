//! Floor 2: the schedule files, from TOML to validated settings and jobs.
//!
//! Synchronous, and pure but for reading the files and the machine's name.
//!
//! # Two stages
//! ```text
//! what was typed                                     what is meant
//! --------------                                     -------------
//! document/  files, places, spanned values  ---+
//! main_file  [database] .. [log]               +---> settings    nothing left to interpret
//! typed_job  [defaults], [jobs.NAME]           +---> meaning     job::Job, with its digest
//! timing     ttl, heartbeat, kill_grace        |
//! ticking/   schedule, every, at, after, ..    |
//! catch_up   catch_up, catch_up_max_age, ..    |
//! placement  run_on, hosts, labels             |
//! process    user, umask, stdin, limits, ..    |
//! outcome    retries, success_codes, ..        |
//! output     output, output_keep               |
//! notices    on_failure, ping_url, ..       ---+
//!
//! what is judged besides: account (as whom jobs run), doubts and warning (for `check` alone)
//! ```
//! serde's `deny_unknown_fields` would stop at the first fault, so the parsed document is walked with
//! its spans, and **all problems of all files are told at once**: file, line, column, key, value, what
//! is wrong, and the remedy.
//!
//! # Vocabulary
//! - the *main file* is the one that [`locate`] finds, the *job files* are `jobs.d/*.toml` beside it;
//! - a [`Problem`] has a [`Scope`]: one of the main file is fatal, one of a job file takes away the
//!   jobs of that file and nothing else;
//! - a [`Digest`] is what a job says, made short, so that hosts with different files are noticed.
//!
//! # What it does not do
//! It keeps no last good copy and opens no database. Programs, folders, users and the password file are
//! looked at by [`check`] alone, so that a file can be read where there are none of them; as whom a daemon
//! may start jobs is judged by [`load_to_run`] alone. A file that passes here can still fail on a host.

mod account;
mod catch_up;
mod command;
mod database_url;
mod digest;
mod document;
mod doubts;
mod duration;
mod jobs_folder;
mod load;
mod loaded;
mod locate;
mod main_file;
mod meaning;
mod notices;
mod outcome;
mod output;
mod password_file;
mod placement;
mod problem;
mod process;
mod settings;
mod size;
mod ticking;
mod timing;
mod typed_job;
mod warning;

pub use database_url::{DatabaseUrl, InvalidDatabaseUrl, PostgresUrl};
pub use digest::Digest;
pub use load::{check, load, load_jobs, load_to_run};
pub use loaded::Loaded;
pub use locate::{DEFAULT_PATH, VARIABLE, locate};
pub use password_file::{UnfitPasswordFile, read_password};
pub use problem::{Position, Problem, Scope};
pub use settings::{
    DaemonSettings, DatabaseSettings, Drain, HistorySettings, LogFormat, LogLevel, LogSettings, Migrate, Settings,
};
pub use ticking::InWords;

/// Every key of this version: the path of its table, as in `jobs.NAME`, and its name.
pub fn known_keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    document::ALL.iter().flat_map(|(table, keys)| keys.known.iter().map(move |key| (*table, *key)))
}

//! Floor 7: the commands. Each is one file; this one reads the arguments and turns failures into
//! exit codes from `sysexits.h`.

mod cancel;
mod check;
mod daemon;
mod failure;
mod history;
mod import;
mod locks;
mod migrate;
mod next;
mod runs;
mod show;
mod status;
mod store;
mod table;
mod when;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use failure::Failure;

/// cron for several hosts: every trigger runs once, under a lock that lives by heartbeats.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    /// The schedule file [env: CRONLATCH_CONFIG] [default: /etc/cronlatch/cronlatch.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon in the foreground
    Daemon,
    /// Read everything and report all problems; exit 78 if there are any
    Check(check::Check),
    /// Show coming instants
    Next(next::Next),
    /// Show who is alive, what runs and waits, and which hosts disagree about a job
    Status(status::Status),
    /// Show who holds which lock
    Locks(locks::Locks),
    /// Show the history, newest first
    Runs(runs::Runs),
    /// Stop a run, wherever it is under way
    Cancel(cancel::Cancel),
    /// Bring the tables to this version
    Migrate,
    /// Make jobs of crontabs, and compare old and new times
    Import(import::Import),
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    if let Some(code) = crate::shim::enter() {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::refused(&error),
    };
    let path = crate::config::locate(arguments.config);
    let done = match arguments.command {
        Command::Daemon => daemon::run(&path),
        Command::Check(check) => check.run(&path),
        Command::Next(next) => next.run(&path),
        Command::Status(status) => status.run(&path),
        Command::Locks(locks) => locks.run(&path),
        Command::Runs(runs) => runs.run(&path),
        Command::Cancel(cancel) => cancel.run(&path),
        Command::Migrate => migrate::run(&path),
        Command::Import(import) => import.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Writes to standard output. A reader that is gone (`| head`) is no failure.
///
/// # Errors
/// When the output can't be written for another reason.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::io(format!("standard output can't be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one JSON document.
///
/// # Errors
/// As [`print`].
fn print_json(rows: &[impl serde::Serialize]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(rows).map_err(|error| Failure::bug(error.to_string()))?;
    print(&format!("{text}\n"))
}

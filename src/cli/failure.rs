use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use super::print;
use crate::store::{SchemaError, StoreError};
use crate::telemetry;

/// Why a command did not do what it was asked for, and what its exit code is.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

/// `sysexits.h`.
const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;
const SOFTWARE: u8 = 70;
const IO: u8 = 74;
const CONFIG: u8 = 78;

impl Failure {
    /// The arguments make no sense together.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into() }
    }

    /// The schedule or the settings are not fit.
    pub fn config(message: impl Into<String>) -> Self {
        Self { code: CONFIG, message: message.into() }
    }

    /// The database is not there.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { code: UNAVAILABLE, message: message.into() }
    }

    /// What was found out can't be written.
    pub fn io(message: impl Into<String>) -> Self {
        Self { code: IO, message: message.into() }
    }

    /// Something that can't be the user's fault.
    pub fn bug(message: impl Into<String>) -> Self {
        Self { code: SOFTWARE, message: message.into() }
    }

    pub(super) fn report(self) -> ExitCode {
        say(&self.message);
        ExitCode::from(self.code)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::Schema(SchemaError::Newer { .. }) | StoreError::Unusable(_) => CONFIG,
            StoreError::Malformed { .. } => SOFTWARE,
            _ => UNAVAILABLE,
        };
        Self { code, message: error.to_string() }
    }
}

/// What clap says: help and version are no failures.
pub(super) fn refused(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        // If standard error is closed there is nobody to tell.
        error.print().ok();
        return ExitCode::from(USAGE);
    }
    let text = error.render();
    let colours = telemetry::colours(std::io::stdout().is_terminal());
    let text = if colours { text.ansi().to_string() } else { text.to_string() };
    match print(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Writes a whole text to standard error; if that is closed there is nobody to tell.
pub(super) fn tell(text: &str) {
    std::io::stderr().lock().write_all(text.as_bytes()).ok();
}

/// Writes to standard error; if that is closed there is nobody to tell.
pub(super) fn say(message: &str) {
    let mut err = std::io::stderr().lock();
    if !message.is_empty() {
        writeln!(err, "cronlatch: {message}").ok();
    }
}

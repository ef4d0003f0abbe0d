use std::io::Write;
use std::process::ExitCode;

use crate::store::{SchemaError, StoreError};

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
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    if error.print().is_err() {
        return ExitCode::from(SOFTWARE);
    }
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// Writes to standard error; if that is closed there is nobody to tell.
pub(super) fn say(message: &str) {
    let mut err = std::io::stderr().lock();
    if !message.is_empty() {
        writeln!(err, "cronlatch: {message}").ok();
    }
}

//! The binary: maps what went wrong to an exit code, and does nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    cronlatch::cli::main()
}

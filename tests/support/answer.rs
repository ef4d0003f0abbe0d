//! What a command answered.

use std::process::Output;

use serde_json::Value;

/// All that a script sees of a command that has ended.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("commands write UTF-8");
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Answer {
    /// The objects of the one JSON array that its output is.
    #[track_caller]
    pub fn objects(&self) -> Vec<Value> {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

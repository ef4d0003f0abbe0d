use std::fmt;
use std::path::PathBuf;

/// What a problem puts out of use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The main file: nothing can start.
    Settings,
    /// One file of `jobs.d`, or that folder itself: its jobs are left out, all others go on.
    JobFile(PathBuf),
}

impl Scope {
    /// Whether what this one puts out of use holds the other.
    pub fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Settings, Self::Settings) => true,
            (Self::JobFile(path), Self::JobFile(other)) => other.starts_with(path),
            _ => false,
        }
    }
}

/// A place in a file, both numbers from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// One thing that is wrong with the schedule files, with all that is needed to put it right.
///
/// `Display` is one line, `FILE:LINE:COLUMN: KEY = VALUE: what is wrong; the remedy`, which editors can
/// jump to. No part of it ever holds a password.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// What it puts out of use.
    pub scope: Scope,
    /// The file.
    pub file: PathBuf,
    /// Where in the file; `None` for the file as a whole.
    pub position: Option<Position>,
    /// The key with its path, as in `jobs.backup.overlap`.
    pub key: Option<String>,
    /// The value as it was typed, shortened; `None` also where it could be a secret.
    pub value: Option<String>,
    /// What is wrong.
    pub wrong: String,
    /// What to do; `None` where `wrong` says it already.
    pub remedy: Option<String>,
    /// Whether it is about what stands elsewhere, or about what is not there. In a file that is not
    /// valid TOML such a problem can come from the very text that could not be read, so it is not told.
    pub(super) rests_on_others: bool,
}

impl Problem {
    /// A problem of a file as a whole.
    pub(super) fn of_file(scope: Scope, file: PathBuf, wrong: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            scope,
            file,
            position: None,
            key: None,
            value: None,
            wrong: wrong.into(),
            remedy: Some(remedy.into()),
            rests_on_others: false,
        }
    }

    /// The same, known to be about other places too.
    pub(super) fn resting_on_others(mut self) -> Self {
        self.rests_on_others = true;
        self
    }

    /// The same, with this in the place of the value.
    pub(super) fn showing(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(Position { line, column }) = self.position {
            write!(f, "{line}:{column}:")?;
        }
        if let Some(key) = &self.key {
            write!(f, " {key}")?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            f.write_str(":")?;
        }
        write!(f, " {}", self.wrong)?;
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

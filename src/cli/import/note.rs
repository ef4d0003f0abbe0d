//! What is said about a line.

/// What a note means for its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It can't be read; the exit code says so too.
    Unreadable,
    /// It was read and has no job.
    Dropped,
    /// Its job does not do exactly what cron did.
    Differs,
    /// Its job does what cron did, which may not be what was meant.
    Doubtful,
}

/// One thing about a line, or about a file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub line: Option<usize>,
    pub kind: Kind,
    /// What is the case.
    pub what: String,
    /// What was done about it, or is to be done.
    pub remedy: String,
}

impl Note {
    /// Puts the parts together.
    pub(super) fn new(
        line: impl Into<Option<usize>>,
        kind: Kind,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { line: line.into(), kind, what: what.into(), remedy: remedy.into() }
    }

    /// As one sentence.
    pub(super) fn text(&self) -> String {
        if self.remedy.is_empty() { self.what.clone() } else { format!("{}; {}", self.what, self.remedy) }
    }
}

impl Kind {
    /// The word of the JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Dropped => "not_carried_over",
            Self::Differs => "differs",
            Self::Doubtful => "doubtful",
        }
    }

    /// The heading of the report.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Unreadable => "can't be read",
            Self::Dropped => "not carried over",
            Self::Differs => "not as in cron",
            Self::Doubtful => "as in cron, but perhaps not as meant",
        }
    }
}

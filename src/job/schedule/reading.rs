use std::fmt;

use chrono_tz::Tz;

use super::super::JobName;

/// How the text of an expression is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The zone whose local time it speaks of.
    pub zone: Tz,
    /// The job whose name `H` is derived from; without one, `H` is refused.
    pub job: Option<&'a JobName>,
    /// What becomes of local times in a gap; `None`: what the expression's form says.
    pub gap: Option<GapRule>,
    /// What becomes of local times in a fold; `None`: what the expression's form says.
    pub fold: Option<FoldRule>,
}

impl Reading<'_> {
    /// In a zone, for no job in particular, by the rules of Debian's cron.
    pub fn in_zone(zone: Tz) -> Self {
        Self { zone, job: None, gap: None, fold: None }
    }
}

/// What becomes of local times that a day doesn't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapRule {
    /// All of them together fire once, at the gap's end.
    Run,
    /// They are left out.
    Skip,
}

/// What becomes of local times that a day has twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldRule {
    /// They fire the first time.
    First,
    /// They fire the second time.
    Second,
    /// They fire both times.
    Both,
}

impl fmt::Display for GapRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "run",
            Self::Skip => "skip",
        })
    }
}

impl fmt::Display for FoldRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Both => "both",
        })
    }
}

use std::collections::BTreeSet;
use std::time::Duration;

/// How often a failed run is tried again, under the same lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How many attempts may follow the first one.
    pub most: u32,
    /// The pause before the first of them; it doubles with each, and is jittered.
    pub delay: Duration,
    /// The longest pause.
    pub longest_delay: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { most: 0, delay: Duration::from_secs(10), longest_delay: Duration::from_secs(600) }
    }
}

/// Which exit codes mean success: 0, unless the job names others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuccessCodes(BTreeSet<u8>);

impl SuccessCodes {
    /// These codes and no others; `None` for an empty set.
    pub fn new(codes: BTreeSet<u8>) -> Option<Self> {
        (!codes.is_empty()).then_some(Self(codes))
    }

    /// Whether a process that exited with `code` has succeeded.
    pub fn has(&self, code: i32) -> bool {
        u8::try_from(code).is_ok_and(|code| self.0.contains(&code))
    }

    /// The codes, rising.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().copied()
    }
}

impl Default for SuccessCodes {
    fn default() -> Self {
        Self(BTreeSet::from([0]))
    }
}

/// What becomes of a job whose lease is lost or can't be renewed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeaseLost {
    /// Its processes are killed before another host can take its lock.
    #[default]
    Kill,
    /// It goes on, and another host may run it at the same time: only for jobs that check the fencing
    /// token, or that don't mind.
    Continue,
}

use std::fmt;

/// A whole number that rises with every new ownership of a resource and never falls.
///
/// A system that a job writes to can refuse any token lower than one it has seen; that closes what
/// no lease can (a frozen machine that wakes up after its lock went to somebody else).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(i64);

impl FencingToken {
    /// Wraps a number that the store drew.
    pub fn new(drawn: i64) -> Self {
        Self(drawn)
    }

    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

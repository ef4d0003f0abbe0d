use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How long another writer's lock is waited for: it holds it for a write, or for a few renames. One that
/// is stopped in there must not stop this one.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often it is tried for.
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// What writers of one file hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// While they write; any number of them at once.
    ToWrite,
    /// While they rotate it.
    ToRotate,
}

/// A lock on an open file, freed when it is dropped.
#[derive(Debug)]
pub(super) struct Locked<'a>(&'a File);

impl<'a> Locked<'a> {
    /// `None`: another writer doesn't free it, or the file system has no locks.
    pub(super) fn try_for(file: &'a File, hold: Hold) -> Option<Self> {
        let operation = match hold {
            Hold::ToWrite => FlockOperation::NonBlockingLockShared,
            Hold::ToRotate => FlockOperation::NonBlockingLockExclusive,
        };
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(file, operation) {
                Ok(()) => return Some(Self(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => pause(),
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Closing the file frees it in any case.
        flock(self.0, FlockOperation::Unlock).ok();
    }
}

#[expect(clippy::disallowed_methods, reason = "the writer is a process of its own, without a runtime")]
fn pause() {
    std::thread::sleep(TRY_AGAIN);
}

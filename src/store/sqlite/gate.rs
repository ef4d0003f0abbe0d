use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout_at};

use crate::store::StoreError;

/// The pause between two looks at a gate that another process holds.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// A file beside the database that all writers pass one at a time.
///
/// SQLite's own wait is unfair: of 16 processes one was seen to get 9,190 turns and another a
/// single one. Within this process the gate is first come, first served; between processes
/// whoever looks first. It guards nothing: a writer that passes by only meets SQLite's lock.
#[derive(Debug)]
pub(super) struct Gate {
    path: PathBuf,
    /// Opened by the first writer.
    file: Mutex<Option<File>>,
}

/// A writer's turn; the next one's begins when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(MutexGuard<'a, Option<File>>);

impl Gate {
    pub(super) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-gate");
        Self { path: path.into(), file: Mutex::new(None) }
    }

    /// Waits for a turn, at most until `deadline`.
    pub(super) async fn turn(&self, operation: &'static str, deadline: Instant) -> Result<Turn<'_>, StoreError> {
        let busy = || StoreError::Busy {
            operation,
            source: Box::new(io::Error::new(io::ErrorKind::TimedOut, "another process holds the gate file").into()),
        };
        let mut file = timeout_at(deadline, self.file.lock()).await.map_err(|_| busy())?;
        let failed = |error: io::Error| StoreError::Unavailable { operation, source: Box::new(error.into()) };
        if file.is_none() {
            *file = Some(self.open().map_err(failed)?);
        }
        let Some(gate) = file.as_ref() else { return Err(busy()) };
        loop {
            match flock(gate, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Turn(file)),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
            if Instant::now() >= deadline {
                return Err(busy());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Opened for this process alone, so that it is closed in every job.
    fn open(&self) -> io::Result<File> {
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&self.path)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(gate) = self.0.as_ref()
            && flock(gate, FlockOperation::Unlock).is_err()
        {
            // Closing it unlocks it in any case.
            *self.0 = None;
        }
    }
}

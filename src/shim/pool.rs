use std::sync::{Arc, Mutex, PoisonError};

use super::link::Link;
use super::server::ServerSocket;

/// How many shims without a run are kept: each has about 100 KiB of its own.
const MOST: usize = 16;

/// Shims that have seen a tree to its end, for the next runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Arc<Mutex<Vec<Idle>>>);

#[derive(Debug)]
struct Idle {
    link: Link,
    /// Whose child it is.
    server: ServerSocket,
}

impl Pool {
    /// A shim of the fork server that lives. Shims of one that died have nobody who would see to what they leave,
    /// so they are let go.
    pub(super) fn take(&self, server: &ServerSocket) -> Option<Link> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| Arc::ptr_eq(&idle.server, server));
        idle.pop().map(|idle| idle.link)
    }

    /// Lets all go.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes a shim back, if there is room; else it is let go.
    pub(super) fn give_back(&self, link: Link, server: ServerSocket) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST {
            idle.push(Idle { link, server });
        }
    }
}

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::link::Link;
use super::server::ServerSocket;
use crate::clock::BootInstant;

/// How many shims without a run are kept: each has about 100 KiB of its own.
const MOST: usize = 64;

/// How long one is kept.
const FOR: Duration = Duration::from_secs(120);

/// Shims that have seen a tree to its end, for the next runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Arc<Mutex<Vec<Idle>>>);

#[derive(Debug)]
struct Idle {
    link: Link,
    /// Whose child it is.
    server: ServerSocket,
    since: BootInstant,
}

impl Pool {
    /// A shim of the fork server that lives. Shims of one that died have nobody who would see to what they leave,
    /// so they are let go.
    pub(super) fn take(&self, server: &ServerSocket) -> Option<Link> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| Arc::ptr_eq(&idle.server, server));
        idle.pop().map(|idle| idle.link)
    }

    /// Lets those go that nobody has needed for long.
    pub(super) fn expire(&self) {
        let now = BootInstant::now();
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| now.since(idle.since) < FOR);
    }

    /// Lets all go.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes a shim back, if there is room; else it is let go.
    pub(super) fn give_back(&self, link: Link, server: ServerSocket) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST {
            idle.push(Idle { link, server, since: BootInstant::now() });
        }
    }
}

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::BootInstant;
use crate::events;

/// How long there must have been room before that is said: a host at its limit is full and not full
/// many times a minute.
const SETTLED: Duration = Duration::from_secs(30);

/// Whether this host has as many runs as it may, with triggers waiting. Said once.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// `None` while there is room.
    full: Mutex<Option<Full>>,
}

#[derive(Clone, Copy, Debug)]
struct Full {
    since: BootInstant,
    last: BootInstant,
}

impl Crowd {
    /// Some trigger found no room.
    pub(super) fn is_full(&self, max_running_jobs: u32) {
        let now = BootInstant::now();
        let before = {
            let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
            let before = *full;
            *full = Some(Full { since: before.map_or(now, |full| full.since), last: now });
            before
        };
        if before.is_none() {
            events::host_filled(max_running_jobs);
        }
    }

    /// There is room just now; called from time to time.
    pub(super) fn has_room(&self) {
        let freed = {
            let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
            full.take_if(|full| BootInstant::now().since(full.last) >= SETTLED)
        };
        if let Some(full) = freed {
            events::host_freed(full.last.since(full.since));
        }
    }
}

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::BootInstant;

/// How long nothing is taken after a start failed for want of processes, descriptors or memory;
/// doubles with each failure after the pause.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Whether this machine can start processes. Written by each start of a job, read before anything is
/// claimed or taken: what could not be started here waits for another host, or for later.
#[derive(Debug, Default)]
pub struct Exhaustion {
    state: Mutex<Option<Pause>>,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: BootInstant,
    length: Duration,
}

impl Exhaustion {
    /// How long nothing is to be started any more; zero if the machine is fit, as far as is known.
    pub fn remaining(&self) -> Duration {
        self.lock().map_or(Duration::ZERO, |pause| pause.until.remaining())
    }

    /// Waits until something may be started.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn over(&self) {
        loop {
            let left = self.remaining();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// A start failed. Starts that were under way together count once.
    pub(super) fn failed(&self) {
        let mut state = self.lock();
        let length = match *state {
            Some(pause) if !pause.until.has_passed() => return,
            Some(pause) => (pause.length * 2).min(LONGEST_PAUSE),
            None => FIRST_PAUSE,
        };
        *state = Some(Pause { until: BootInstant::now() + length, length });
    }

    /// A process was started.
    pub(super) fn started(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Pause>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_bound_and_a_start_ends_it() {
        let exhaustion = Exhaustion::default();
        assert!(exhaustion.remaining().is_zero());
        let mut lengths = Vec::new();
        for _ in 0..7 {
            exhaustion.failed();
            // Of the same moment: it counts once.
            exhaustion.failed();
            let mut state = exhaustion.lock();
            let pause = state.as_mut().expect("there is a pause");
            lengths.push(pause.length.as_secs());
            pause.until = BootInstant::now();
        }
        assert_eq!(lengths, [1, 2, 4, 8, 16, 30, 30]);
        exhaustion.failed();
        exhaustion.started();
        assert!(exhaustion.remaining().is_zero());
    }
}

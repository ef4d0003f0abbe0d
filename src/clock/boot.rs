use std::ops::{Add, Sub};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// An instant of `CLOCK_BOOTTIME`: monotonic, and running while the machine is suspended.
///
/// It means the same to every process of this machine, and nothing on another one or after a restart.
/// Subtraction saturates at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// Reads the clock.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let secs = u64::try_from(now.tv_sec).expect("CLOCK_BOOTTIME counts up from zero");
        let nanos = u32::try_from(now.tv_nsec).expect("nanoseconds are below a thousand million");
        Self(Duration::new(secs, nanos))
    }

    /// An instant that never comes.
    pub const NEVER: Self = Self(Duration::MAX);

    /// Time since the machine was started.
    pub fn since_boot(self) -> Duration {
        self.0
    }

    /// Time passed since `earlier`; zero if `earlier` lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Time left until this instant; zero once it has come.
    pub fn remaining(self) -> Duration {
        self.since(Self::now())
    }

    /// Whether this instant has come.
    pub fn has_passed(self) -> bool {
        self <= Self::now()
    }

    /// Waits until this instant, however long the machine sleeps in between.
    ///
    /// The wait is cut into slices of at most one second, because the timers of the runtime
    /// stand still in suspend.
    ///
    /// # Cancel safety
    /// Safe: it holds no state.
    pub async fn reached(self) {
        loop {
            let left = self.remaining();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(Duration::from_secs(1))).await;
        }
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }
}

impl Sub<Duration> for BootInstant {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by))
    }
}

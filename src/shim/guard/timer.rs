use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::Timespec;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use crate::clock::BootInstant;

/// A descriptor that is readable from an instant of `CLOCK_BOOTTIME` on: the time-outs of `poll(2)` stand
/// still while the machine sleeps.
#[derive(Debug)]
pub(super) struct Timer(OwnedFd);

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?))
    }

    /// Sets the instant; `None` or one that never comes for no instant at all.
    pub(super) fn set(&self, at: Option<BootInstant>) -> io::Result<()> {
        const NOTHING: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = |at: BootInstant| {
            let since = at.since_boot();
            let tv_sec = i64::try_from(since.as_secs()).ok()?;
            // All zeros would switch it off.
            Some(Timespec { tv_sec, tv_nsec: i64::from(since.subsec_nanos()).max(1) })
        };
        let it_value = at.and_then(spec).unwrap_or(NOTHING);
        let it_value = if at == Some(BootInstant::NEVER) { NOTHING } else { it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval: NOTHING, it_value })?;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

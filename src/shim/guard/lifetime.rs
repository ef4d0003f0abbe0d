use std::time::Duration;

use crate::clock::BootInstant;
use crate::shim::wire::{Order, OwnStop};

/// Until when a tree may live: its deadline, and what it was told. Pure.
///
/// ```text
///                 told to end, daemon gone,
///                 deadline less the grace
///   Running ------------------------------> Ending ---- its time, or the deadline ----> Killed
///      |                                                                                   ^
///      \--------------- told to kill, or the deadline (if it was passed asleep) -----------/
/// ```
/// The deadline only rises, and not once the tree was killed. What was told to end because of the
/// deadline is killed at that deadline, however late it is moved.
#[derive(Debug)]
pub(super) struct Lifetime {
    deadline: BootInstant,
    grace: Duration,
    stage: Stage,
    by_itself: Option<OwnStop>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Ending { kill_at: BootInstant },
    Killed,
}

/// What is to be done with the tree now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing.
    Nothing,
    /// Tell it to end, once.
    Terminate,
    /// Kill it, as often as it takes.
    Kill,
}

impl Lifetime {
    pub(super) fn new(deadline: BootInstant, grace: Duration) -> Self {
        Self { deadline, grace, stage: Stage::Running, by_itself: None }
    }

    /// What is to be done now.
    pub(super) fn look(&mut self, now: BootInstant) -> Act {
        match self.stage {
            Stage::Running if now >= self.term_at() => {
                self.by_itself.get_or_insert(OwnStop::Deadline);
                if now >= self.deadline {
                    self.stage = Stage::Killed;
                    return Act::Kill;
                }
                self.stage = Stage::Ending { kill_at: self.deadline };
                Act::Terminate
            }
            Stage::Running => Act::Nothing,
            Stage::Ending { kill_at } if now >= kill_at.min(self.deadline) => {
                self.stage = Stage::Killed;
                Act::Kill
            }
            Stage::Ending { .. } => Act::Nothing,
            Stage::Killed => Act::Kill,
        }
    }

    /// When to look again; `None` once it was killed.
    pub(super) fn next(&self) -> Option<BootInstant> {
        match self.stage {
            Stage::Running => Some(self.term_at()),
            Stage::Ending { kill_at } => Some(kill_at.min(self.deadline)),
            Stage::Killed => None,
        }
    }

    /// Takes an order in.
    pub(super) fn obey(&mut self, order: Order) -> Act {
        match order {
            Order::Deadline(to) => {
                if self.stage != Stage::Killed {
                    self.deadline = self.deadline.max(to);
                }
                Act::Nothing
            }
            Order::Terminate(kill_at) => self.end_by(kill_at),
            Order::Kill => {
                self.kill();
                Act::Kill
            }
        }
    }

    /// It is killed, for a reason that isn't time.
    pub(super) fn kill(&mut self) {
        self.stage = Stage::Killed;
    }

    /// The daemon is gone: nobody moves the deadline any more.
    pub(super) fn daemon_gone(&mut self, now: BootInstant) -> Act {
        self.by_itself.get_or_insert(OwnStop::DaemonGone);
        self.end_by(now + self.grace)
    }

    /// The job's own process has ended: the others get the grace.
    pub(super) fn left_behind(&mut self, now: BootInstant) -> Act {
        self.end_by(now + self.grace)
    }

    /// Whether it was told to end, or killed.
    pub(super) fn is_over(&self) -> bool {
        self.stage != Stage::Running
    }

    /// Why it was told to end without an order.
    pub(super) fn by_itself(&self) -> Option<OwnStop> {
        self.by_itself
    }

    /// Who was told before keeps the earlier time.
    fn end_by(&mut self, kill_at: BootInstant) -> Act {
        match self.stage {
            Stage::Running => {
                self.stage = Stage::Ending { kill_at };
                Act::Terminate
            }
            Stage::Ending { kill_at: before } => {
                self.stage = Stage::Ending { kill_at: before.min(kill_at) };
                Act::Nothing
            }
            Stage::Killed => Act::Nothing,
        }
    }

    fn term_at(&self) -> BootInstant {
        if self.deadline == BootInstant::NEVER { BootInstant::NEVER } else { self.deadline - self.grace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> BootInstant {
        BootInstant::now() + Duration::from_secs(1_000 + seconds)
    }

    #[test]
    fn a_deadline_that_is_not_moved_brings_term_and_then_kill() {
        let start = at(0);
        let mut lifetime = Lifetime::new(start + Duration::from_secs(60), GRACE);
        assert_eq!(lifetime.next(), Some(start + Duration::from_secs(50)));
        assert_eq!(lifetime.look(start + Duration::from_secs(49)), Act::Nothing);
        assert_eq!(lifetime.look(start + Duration::from_secs(50)), Act::Terminate);
        assert_eq!(lifetime.by_itself(), Some(OwnStop::Deadline));
        assert_eq!(lifetime.next(), Some(start + Duration::from_secs(60)));
        assert_eq!(lifetime.look(start + Duration::from_secs(59)), Act::Nothing);
        assert_eq!(lifetime.look(start + Duration::from_secs(60)), Act::Kill);
    }

    #[test]
    fn a_moved_deadline_moves_both_but_never_back() {
        let start = at(0);
        let mut lifetime = Lifetime::new(start + Duration::from_secs(60), GRACE);
        lifetime.obey(Order::Deadline(start + Duration::from_secs(100)));
        lifetime.obey(Order::Deadline(start + Duration::from_secs(70)));
        assert_eq!(lifetime.next(), Some(start + Duration::from_secs(90)));
    }

    #[test]
    fn a_deadline_that_is_moved_too_late_saves_nobody() {
        let start = at(0);
        let deadline = start + Duration::from_secs(60);
        let mut lifetime = Lifetime::new(deadline, GRACE);
        assert_eq!(lifetime.look(start + Duration::from_secs(55)), Act::Terminate);
        lifetime.obey(Order::Deadline(start + Duration::from_secs(600)));
        assert_eq!(lifetime.next(), Some(deadline));
        assert_eq!(lifetime.look(deadline), Act::Kill);
        lifetime.obey(Order::Deadline(start + Duration::from_secs(900)));
        assert_eq!(lifetime.look(deadline), Act::Kill);
    }

    #[test]
    fn no_grace_reaches_past_the_deadline() {
        let start = at(0);
        let deadline = start + Duration::from_secs(60);
        let mut lifetime = Lifetime::new(deadline, GRACE);
        let told = lifetime.obey(Order::Terminate(start + Duration::from_secs(3_600)));
        assert_eq!((told, lifetime.next()), (Act::Terminate, Some(deadline)));
        assert_eq!(lifetime.by_itself(), None);
    }

    #[test]
    fn told_twice_it_keeps_the_earlier_end() {
        let start = at(0);
        let mut lifetime = Lifetime::new(start + Duration::from_secs(60), GRACE);
        assert_eq!(lifetime.obey(Order::Terminate(start + Duration::from_secs(5))), Act::Terminate);
        assert_eq!(lifetime.daemon_gone(start), Act::Nothing);
        assert_eq!(lifetime.next(), Some(start + Duration::from_secs(5)));
        assert_eq!(lifetime.obey(Order::Kill), Act::Kill);
        assert_eq!(lifetime.next(), None);
        assert_eq!(lifetime.look(start), Act::Kill);
    }

    #[test]
    fn what_slept_past_its_deadline_is_killed_at_once() {
        let start = at(0);
        let mut lifetime = Lifetime::new(start, GRACE);
        assert_eq!(lifetime.look(start + Duration::from_secs(1)), Act::Kill);
    }
}

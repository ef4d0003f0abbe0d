use std::borrow::Cow;
use std::time::Duration;

use crate::events::{self, AfterLoss, RunEnded, RunLabel};
use crate::job::SuccessCodes;
use crate::shim::Exit;
use crate::store::{Asked, Ending, Loss};
use crate::trigger::RunState;

/// Why a run was stopped before it ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StopCause {
    /// It took longer than its `timeout`.
    Timeout,
    /// The lease's deadline came without a renewal.
    LeaseEnding,
    /// The lease is gone.
    LeaseLost(Loss),
    /// The daemon stops.
    Drained,
    /// Somebody wants so, or a newer trigger of the job.
    Asked(Asked),
}

impl StopCause {
    /// For the row: in one word, but what somebody says.
    pub(super) fn reason(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Timeout => "timeout",
            Self::LeaseEnding => "lease_not_renewed",
            Self::LeaseLost(Loss::Expired) => "lease_expired",
            Self::LeaseLost(Loss::TakenOver(_)) => "lease_taken_over",
            Self::LeaseLost(Loss::Gone) => "lease_gone",
            Self::Drained => "drained",
            Self::Asked(Asked::Replaced { .. }) => "replaced",
            Self::Asked(Asked::Cancelled(cancel)) => return Cow::Owned(cancel.in_words()),
        })
    }

    /// What a run that was told so has come to.
    pub(super) fn state(&self) -> RunState {
        match self {
            Self::Timeout => RunState::Failed,
            Self::LeaseEnding | Self::LeaseLost(_) => RunState::Lost,
            Self::Drained | Self::Asked(_) => RunState::Cancelled,
        }
    }
}

/// What a run came to: how its process ended, and whether it was told to.
///
/// A process that ends well after it was told to stop counts as stopped: nobody knows whether it
/// did all of its work.
pub(super) fn judge(exit: Exit, stopped: Option<&StopCause>, success: &SuccessCodes) -> (RunState, Option<String>) {
    match (stopped, exit) {
        (Some(cause), _) => (cause.state(), Some(cause.reason().into_owned())),
        (None, Exit::Code(code)) if success.has(code) => (RunState::Succeeded, None),
        (None, Exit::Code(_) | Exit::Signal(_)) => (RunState::Failed, None),
    }
}

/// The exit as the row has it.
pub(super) fn codes(exit: Exit) -> (Option<i32>, Option<i32>) {
    match exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    }
}

/// Says how a run ended, once.
pub(super) fn announce(label: RunLabel<'_>, host: &str, ending: &Ending, duration: Duration) {
    let ended =
        RunEnded { duration, exit_code: ending.exit_code, signal: ending.signal, reason: ending.reason.as_deref() };
    let reason = ending.reason.as_deref().unwrap_or_default();
    match ending.state {
        RunState::Succeeded => events::run_succeeded(label, &ended),
        RunState::Cancelled => events::run_cancelled(label, &ended),
        RunState::Lost => events::run_lost(label, host, reason, AfterLoss::Undecided),
        _ if reason == StopCause::Timeout.reason() => events::run_timed_out(label, &ended),
        _ => events::run_failed(label, &ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Cancel;

    #[test]
    fn a_clean_exit_after_a_stop_is_no_success() {
        let zero = SuccessCodes::default();
        let reason = |reason: &str| Some(reason.to_owned());
        assert_eq!(judge(Exit::Code(0), None, &zero), (RunState::Succeeded, None));
        assert_eq!(judge(Exit::Code(0), Some(&StopCause::Drained), &zero), (RunState::Cancelled, reason("drained")));
        let cancel = Cancel { by: "anna".to_owned(), reason: reason("it hangs") };
        let asked = StopCause::Asked(Asked::Cancelled(cancel));
        let in_words = reason("cancelled by anna: it hangs");
        assert_eq!(judge(Exit::Signal(15), Some(&asked), &zero), (RunState::Cancelled, in_words));
        assert_eq!(judge(Exit::Signal(9), None, &zero), (RunState::Failed, None));
        assert_eq!(judge(Exit::Signal(15), Some(&StopCause::Timeout), &zero), (RunState::Failed, reason("timeout")));
        let lost = StopCause::LeaseLost(Loss::Expired);
        assert_eq!(judge(Exit::Signal(15), Some(&lost), &zero), (RunState::Lost, reason("lease_expired")));
    }

    #[test]
    fn which_codes_mean_success_is_for_the_job_to_say() {
        let codes = SuccessCodes::new([0, 24].into()).expect("it is not empty");
        assert_eq!(judge(Exit::Code(24), None, &codes).0, RunState::Succeeded);
        assert_eq!(judge(Exit::Code(23), None, &codes).0, RunState::Failed);
        let odd = SuccessCodes::new([1].into()).expect("it is not empty");
        assert_eq!(judge(Exit::Code(0), None, &odd).0, RunState::Failed);
        assert_eq!(judge(Exit::Signal(1), None, &odd).0, RunState::Failed);
    }
}

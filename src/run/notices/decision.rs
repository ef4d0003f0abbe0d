use super::Occasion;
use crate::store::TriggerOutcome;
use crate::trigger::RunState;

/// What is told.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// So many failures in a row, this one included.
    Failure {
        /// The newest.
        what: Occasion,
        in_a_row: u64,
    },
    /// A success after so many failures in a row.
    Recovery { what: Occasion, after: u64 },
}

/// What an occasion is worth, given how the job's triggers ended up to it, newest first, itself among them. A streak is
/// told once, by whatever makes it `before_notice` long; a success only after a streak that was told. What the
/// history doesn't count, because it is to be tried again or was cancelled, is worth nothing.
pub(super) fn decide(outcomes: &[TriggerOutcome], what: Occasion, before_notice: u32) -> Option<Verdict> {
    let needed = u64::from(before_notice.max(1));
    let is_it = |outcome: &TriggerOutcome| match &what {
        Occasion::Ended(ended) => outcome.run == Some(ended.run),
        Occasion::Missed { to, .. } => outcome.run.is_none() && outcome.at == *to,
    };
    let position = outcomes.iter().position(is_it)?;
    let own = &outcomes[position];
    let earlier = outcomes[position + 1..].iter().take_while(|outcome| outcome.state != RunState::Succeeded);
    let earlier: u64 = earlier.map(|outcome| outcome.count).sum();
    if own.state == RunState::Succeeded {
        return (earlier >= needed).then_some(Verdict::Recovery { what, after: earlier });
    }
    let in_a_row = earlier + own.count;
    (earlier < needed && in_a_row >= needed).then_some(Verdict::Failure { what, in_a_row })
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;
    use crate::job::JobName;
    use crate::lock::Resource;
    use crate::run::EndedRun;
    use crate::trigger::{RunId, Trigger};

    fn occasion(run: RunId, minute: i64, state: RunState) -> Occasion {
        let at = DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
        Occasion::Ended(Box::new(EndedRun {
            run,
            trigger: Trigger::scheduled(JobName::new("job").unwrap(), at),
            attempt: 1,
            kind: None,
            state,
            reason: None,
            exit_code: None,
            signal: None,
            host: None,
            resource: Resource::new("job:job").unwrap(),
            token: None,
            started_at: None,
            finished_at: None,
            output_tail: None,
        }))
    }

    /// What each of these triggers, one a minute, would be told as when it ends.
    fn told(states: &[RunState], before_notice: u32) -> String {
        let runs: Vec<_> = states.iter().map(|state| (RunId::generate(), *state)).collect();
        let at = |index: usize| {
            let newest_first = (0..=index).rev().map(|other| TriggerOutcome {
                run: Some(runs[other].0),
                at: DateTime::UNIX_EPOCH + TimeDelta::minutes(other as i64),
                state: runs[other].1,
                count: 1,
            });
            let what = occasion(runs[index].0, index as i64, runs[index].1);
            match decide(&newest_first.collect::<Vec<_>>(), what, before_notice) {
                None => '.',
                Some(Verdict::Failure { .. }) => 'F',
                Some(Verdict::Recovery { .. }) => 'R',
            }
        };
        (0..runs.len()).map(at).collect()
    }

    #[test]
    fn a_streak_is_told_once_and_a_recovery_only_after_it() {
        use RunState::{Failed, Lost, Missed, Succeeded};
        assert_eq!(told(&[Succeeded, Failed, Failed, Succeeded, Succeeded, Lost], 1), ".F.R.F");
        assert_eq!(told(&[Failed, Succeeded, Failed, Lost, Missed, Succeeded], 2), "...F.R");
        assert_eq!(told(&[Failed, Failed, Succeeded], 3), "...");
    }

    #[test]
    fn a_run_that_the_history_does_not_count_is_worth_nothing() {
        assert!(decide(&[], occasion(RunId::generate(), 1, RunState::Cancelled), 1).is_none());
    }

    #[test]
    fn many_triggers_without_a_row_are_as_many_failures() {
        let at = DateTime::UNIX_EPOCH + TimeDelta::minutes(9);
        let missed = |count| Occasion::Missed { from: at, to: at, count, reason: crate::trigger::MissedReason::NoHost };
        let outcome = |run, state, count| TriggerOutcome { run, at, state, count };
        let outcomes = [outcome(None, RunState::Missed, 5), outcome(Some(RunId::generate()), RunState::Failed, 1)];
        assert!(matches!(decide(&outcomes, missed(5), 3), Some(Verdict::Failure { in_a_row: 6, .. })));
        assert!(decide(&outcomes, missed(5), 1).is_none(), "the failure before it was told");
        assert!(decide(&outcomes, missed(5), 7).is_none(), "not enough");
    }
}

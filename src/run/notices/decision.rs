use chrono::{DateTime, Utc};

use super::is_failure;
use crate::store::RunRow;
use crate::trigger::{MissedReason, RunId, RunState};

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// So many failures in a row, this run's included.
    Failure {
        /// The newest.
        run: Box<RunRow>,
        in_a_row: usize,
    },
    /// A success after so many failures in a row.
    Recovery { run: Box<RunRow>, after: usize },
    /// Triggers without a row each.
    Missed { from: DateTime<Utc>, to: DateTime<Utc>, count: u64, reason: MissedReason },
}

/// What a run is worth, given the job's newest runs (any order), itself among them. A streak is told once, by the
/// run that makes it `before_notice` long; a success only after a streak that was told.
pub(super) fn decide(rows: Vec<RunRow>, run: RunId, before_notice: u32) -> Option<Verdict> {
    let needed = usize::try_from(before_notice.max(1)).unwrap_or(usize::MAX);
    let outcomes = outcomes(rows);
    let position = outcomes.iter().position(|row| row.run == run)?;
    let own = outcomes[position].clone();
    let earlier = outcomes[position + 1..].iter().take_while(|row| is_failure(row.state)).count();
    match own.state {
        RunState::Succeeded if earlier >= needed => Some(Verdict::Recovery { run: Box::new(own), after: earlier }),
        state if is_failure(state) && earlier + 1 == needed => {
            Some(Verdict::Failure { run: Box::new(own), in_a_row: needed })
        }
        _ => None,
    }
}

/// What counts of them, newest trigger first: one outcome a trigger, that of its last attempt, if that is over.
fn outcomes(mut rows: Vec<RunRow>) -> Vec<RunRow> {
    rows.sort_by(|one, other| {
        let key = |row: &RunRow| (row.scheduled_at, row.origin.as_str().to_owned(), row.attempt);
        key(other).cmp(&key(one))
    });
    rows.dedup_by(|later, kept| later.scheduled_at == kept.scheduled_at && later.origin == kept.origin);
    rows.retain(|row| row.state == RunState::Succeeded || is_failure(row.state));
    rows
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::trigger::{Origin, Target, TriggerKind};

    fn row(minute: i64, attempt: u32, state: RunState) -> RunRow {
        RunRow {
            run: RunId::generate(),
            job: "job".to_owned(),
            scheduled_at: DateTime::UNIX_EPOCH + TimeDelta::minutes(minute),
            target: Target::fleet(),
            origin: Origin::schedule(),
            attempt,
            kind: TriggerKind::Schedule,
            state,
            host: None,
            resource: "job:job".to_owned(),
            token: None,
            claimed_at: None,
            started_at: None,
            finished_at: None,
            wait_until: None,
            not_before: None,
            exit_code: None,
            signal: None,
            reason: None,
            blocked_by: None,
            output_tail: None,
            cpu: None,
            memory_peak_kib: None,
        }
    }

    /// What each of these runs, one a minute, would be told as when it ends.
    fn told(states: &[RunState], before_notice: u32) -> String {
        let rows: Vec<RunRow> = (0..).zip(states).map(|(minute, state)| row(minute, 1, *state)).collect();
        let at = |index: usize| match decide(rows[..=index].to_vec(), rows[index].run, before_notice) {
            None => '.',
            Some(Verdict::Failure { .. }) => 'F',
            Some(Verdict::Recovery { .. }) => 'R',
            Some(Verdict::Missed { .. }) => '?',
        };
        (0..rows.len()).map(at).collect()
    }

    #[test]
    fn a_streak_is_told_once_and_a_recovery_only_after_it() {
        use RunState::{Cancelled, Failed, Lost, Missed, Skipped, Succeeded};
        assert_eq!(told(&[Succeeded, Failed, Failed, Succeeded, Succeeded, Lost], 1), ".F.R.F");
        assert_eq!(told(&[Failed, Succeeded, Failed, Lost, Missed, Succeeded], 2), "...F.R");
        assert_eq!(told(&[Failed, Skipped, Cancelled, Failed, Succeeded], 2), "...FR");
        assert_eq!(told(&[Succeeded, Skipped, Cancelled], 1), "...");
    }

    #[test]
    fn of_the_attempts_at_a_trigger_the_last_one_counts() {
        let failed = row(1, 1, RunState::Failed);
        let again = row(1, 2, RunState::Failed);
        let rows = vec![failed.clone(), again.clone()];
        assert_eq!(decide(rows.clone(), failed.run, 1), None);
        assert!(matches!(decide(rows.clone(), again.run, 1), Some(Verdict::Failure { in_a_row: 1, .. })));
        assert_eq!(decide(rows, again.run, 2), None, "two attempts are one failure");
        let open = row(1, 2, RunState::Waiting);
        assert_eq!(decide(vec![failed.clone(), open], failed.run, 1), None, "it is run again");
    }
}

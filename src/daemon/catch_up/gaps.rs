//! Which triggers of a job have no row: pure, in bounded memory and time.

use std::collections::VecDeque;

use chrono::{DateTime, TimeDelta, Utc};

use crate::job::schedule::Schedule;

/// The first stretch in which the newest gaps are looked for; doubled until there are enough.
const FIRST_STRETCH: TimeDelta = TimeDelta::seconds(64);

/// The triggers of a stretch of time that have no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gaps {
    pub(super) first: DateTime<Utc>,
    /// The newest, in order; as many as were asked for, or all.
    pub(super) newest: VecDeque<DateTime<Utc>>,
    /// How many there are; at least so many, if the schedule is too odd to count them all.
    pub(super) count: u64,
}

/// The gaps in `(after, through]`; `None` if there are none. `with_row` is in order, `newest` at least 1.
pub(super) fn gaps(
    schedule: &Schedule,
    after: DateTime<Utc>,
    through: DateTime<Utc>,
    with_row: &[DateTime<Utc>],
    newest: usize,
) -> Option<Gaps> {
    let live = schedule.passed(after, through).live?;
    let has_row = |at: &DateTime<Utc>| with_row.binary_search(at).is_ok();
    // A host with another version of the job may have rows at other instants.
    let is_instant = |at: &DateTime<Utc>| schedule.next_after(*at - TimeDelta::seconds(1)) == Some(*at);
    let inside = with_row.iter().filter(|at| (live.first..=live.last).contains(at));
    let rows = u64::try_from(inside.filter(|at| is_instant(at)).count()).unwrap_or(u64::MAX);
    let mut first = live.first;
    while has_row(&first) {
        first = schedule.next_after(first).filter(|next| *next <= live.last)?;
    }
    let newest = newest_gaps(schedule, (first - TimeDelta::seconds(1), live.last), has_row, newest);
    let seen = u64::try_from(newest.len()).unwrap_or(u64::MAX);
    Some(Gaps { first, count: live.count.saturating_sub(rows).max(seen), newest })
}

/// The newest gaps, from the end of the stretch backwards.
fn newest_gaps(
    schedule: &Schedule,
    (after, through): (DateTime<Utc>, DateTime<Utc>),
    has_row: impl Fn(&DateTime<Utc>) -> bool,
    most: usize,
) -> VecDeque<DateTime<Utc>> {
    let mut stretch = FIRST_STRETCH;
    loop {
        let from = (through - stretch).max(after);
        let mut found = VecDeque::with_capacity(most.min(64));
        let instants = std::iter::successors(schedule.next_after(from), |at| schedule.next_after(*at));
        for at in instants.take_while(|at| *at <= through).filter(|at| !has_row(at)) {
            if found.len() == most {
                found.pop_front();
            }
            found.push_back(at);
        }
        if found.len() == most || from == after {
            return found;
        }
        stretch = stretch * 2;
    }
}

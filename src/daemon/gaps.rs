//! Which triggers of a job have no row: pure, in bounded memory and, but for the search of the last
//! ones, in bounded time.

use chrono::{DateTime, TimeDelta, Utc};

use crate::job::Job;

/// How many triggers are counted; past that the count is a lower bound.
const COUNTED: u64 = 10_000;

/// The first stretch in which the last gaps of many are looked for; doubled until there are two.
const FIRST_STRETCH: TimeDelta = TimeDelta::seconds(64);

/// The triggers of a stretch of time that have no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gaps {
    pub(super) first: DateTime<Utc>,
    /// The same as `first` if there is only one.
    pub(super) last_but_one: DateTime<Utc>,
    pub(super) last: DateTime<Utc>,
    /// At least so many.
    pub(super) count: u64,
}

/// The gaps in `(after, through]`; `None` if there are none. `with_row` is in order.
pub(super) fn gaps(
    job: &Job,
    after: DateTime<Utc>,
    through: DateTime<Utc>,
    with_row: &[DateTime<Utc>],
) -> Option<Gaps> {
    let counted = count(job, after, through, with_row, COUNTED)?;
    if counted.count < COUNTED {
        return Some(counted);
    }
    let mut stretch = FIRST_STRETCH;
    // From where it was counted to on, at the latest, the stretch is all that is left.
    let tail = loop {
        let from = (through - stretch).max(counted.last);
        let tail = count(job, from, through, with_row, u64::MAX);
        if from == counted.last || tail.is_some_and(|tail| tail.count > 1) {
            break tail;
        }
        stretch = stretch * 2;
    };
    let Some(tail) = tail else { return Some(counted) };
    let last_but_one = if tail.count > 1 { tail.last_but_one } else { counted.last };
    Some(Gaps { first: counted.first, last_but_one, last: tail.last, count: COUNTED + 1 })
}

/// One pass over the instants in `(after, through]`, until so many gaps are found.
fn count(
    job: &Job,
    after: DateTime<Utc>,
    through: DateTime<Utc>,
    with_row: &[DateTime<Utc>],
    most: u64,
) -> Option<Gaps> {
    let mut found: Option<Gaps> = None;
    let mut at = after;
    while let Some(next) = job.schedule.next_after(at).filter(|next| *next <= through) {
        at = next;
        if with_row.binary_search(&at).is_ok() {
            continue;
        }
        let gaps = found.get_or_insert(Gaps { first: at, last_but_one: at, last: at, count: 0 });
        gaps.count += 1;
        gaps.last_but_one = std::mem::replace(&mut gaps.last, at);
        if gaps.count >= most {
            break;
        }
    }
    found
}

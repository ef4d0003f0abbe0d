use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz, TzOffset};

use super::reading::{FoldRule, GapRule};

const SECOND: TimeDelta = TimeDelta::seconds(1);

/// What becomes of a job's local times when the clocks change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockChange {
    pub gap: GapRule,
    pub fold: FoldRule,
}

impl ClockChange {
    /// Debian's cron for jobs whose minute and hour don't start with `*`: each local time once a day.
    pub(super) const FIXED_TIME: Self = Self { gap: GapRule::Run, fold: FoldRule::First };
    /// Debian's cron for all others: each local time as often as the clock shows it.
    pub(super) const WILDCARD: Self = Self { gap: GapRule::Skip, fold: FoldRule::Both };
}

/// The first instant later than `after` that shows one of the local times of `ticks`.
///
/// `ticks` answers the first local time strictly later than the one given. It is asked once, and
/// once more for each gap that is left out or fold that is passed.
pub(super) fn next_instant(
    zone: Tz,
    rule: ClockChange,
    after: DateTime<Utc>,
    ticks: impl Fn(NaiveDateTime) -> Option<NaiveDateTime>,
) -> Option<DateTime<Utc>> {
    let mut from = local_of(zone, after);
    if let Some(fold) = Fold::around(zone, after) {
        match (rule.fold, after < fold.turn) {
            // The local clock stands still, so to speak, until it shows a time for the first time again.
            (FoldRule::First, false) => from = fold.local_end() - SECOND,
            // What it shows now counts when it is shown again.
            (FoldRule::Second, true) => from = fold.local_start() - SECOND,
            (FoldRule::Both, true) => {
                if let Some(instant) = fold.next_in_both_passes(from, &ticks) {
                    return Some(instant);
                }
            }
            (FoldRule::First, true) | (FoldRule::Second | FoldRule::Both, false) => {}
        }
    }
    loop {
        from = ticks(from)?;
        let instant = match (zone.offset_from_local_datetime(&from), rule.gap) {
            (LocalResult::Single(offset), _) => instant_of(from, offset),
            (LocalResult::Ambiguous(before, since), _) => {
                let first = instant_of(from, before);
                if first > after && rule.fold != FoldRule::Second { first } else { instant_of(from, since) }
            }
            (LocalResult::None, GapRule::Run) => gap_end(zone, from),
            (LocalResult::None, GapRule::Skip) => {
                from = local_of(zone, gap_end(zone, from)) - SECOND;
                continue;
            }
        };
        // Nothing known to the tz database comes here with less; a daemon must not spin if it once does.
        if instant > after {
            return Some(instant);
        }
    }
}

fn offset_at(zone: Tz, instant: DateTime<Utc>) -> TimeDelta {
    length(&zone.offset_from_utc_datetime(&instant.naive_utc()))
}

fn local_of(zone: Tz, instant: DateTime<Utc>) -> NaiveDateTime {
    instant.naive_utc() + offset_at(zone, instant)
}

fn instant_of(local: NaiveDateTime, offset: TzOffset) -> DateTime<Utc> {
    (local - length(&offset)).and_utc()
}

fn length(offset: &TzOffset) -> TimeDelta {
    TimeDelta::seconds(offset.fix().local_minus_utc().into())
}

/// The instant at which the clocks jump over `local`.
fn gap_end(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let (begin, offset) = GapInfo::new(&local, &zone)
        .and_then(|gap| gap.begin)
        .expect("a local time without an offset lies between two offsets");
    instant_of(begin, offset)
}

/// Local times that a zone has twice: once before its `turn`, once since.
#[derive(Clone, Copy, Debug)]
struct Fold {
    turn: DateTime<Utc>,
    before: TimeDelta,
    since: TimeDelta,
}

impl Fold {
    /// The fold that `instant` lies in, in its first or its second pass.
    fn around(zone: Tz, instant: DateTime<Utc>) -> Option<Self> {
        let local = local_of(zone, instant);
        let LocalResult::Ambiguous(before, since) = zone.offset_from_local_datetime(&local) else {
            return None;
        };
        // chrono-tz tells both offsets but not when they change: halve the time between the two
        // instants that show this local time, twelve steps for an hour.
        let (mut low, mut turn) = (instant_of(local, before), instant_of(local, since));
        let (before, since) = (length(&before), length(&since));
        while turn - low > SECOND {
            let middle = low + TimeDelta::seconds((turn - low).num_seconds() / 2);
            if offset_at(zone, middle) == before {
                low = middle;
            } else {
                turn = middle;
            }
        }
        Some(Self { turn, before, since })
    }

    /// The first tick after `from`, a local time of the first pass, that lies in the fold: in the
    /// rest of this pass, or anywhere in the second.
    fn next_in_both_passes(
        &self,
        from: NaiveDateTime,
        ticks: impl Fn(NaiveDateTime) -> Option<NaiveDateTime>,
    ) -> Option<DateTime<Utc>> {
        let inside = |after| ticks(after).filter(|local| *local < self.local_end());
        let first_pass = inside(from).map(|local| local - self.before);
        let second_pass = || inside(self.local_start() - SECOND).map(|local| local - self.since);
        first_pass.or_else(second_pass).map(|instant| instant.and_utc())
    }

    /// The first local time that is shown twice.
    fn local_start(&self) -> NaiveDateTime {
        self.turn.naive_utc() + self.since
    }

    /// The first local time after the fold.
    fn local_end(&self) -> NaiveDateTime {
        self.turn.naive_utc() + self.before
    }
}

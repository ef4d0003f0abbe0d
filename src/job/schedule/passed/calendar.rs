use std::collections::HashMap;

use chrono_tz::Tz;

use super::super::change::{Change, offset_at};
use super::super::expression::Expression;
use super::super::reading::{FoldRule, GapRule};
use super::super::stretch::{Stretch, instant};
use super::counted::Counted;
use super::day::{Day, local_times};

/// Counts what expressions name, without asking them for one instant after the other.
///
/// Which seconds of a day an expression names doesn't depend on the day, only whether it names any.
/// So a whole day counts as much as any other that the same expressions match; what is left are
/// parts of days, and those near a clock change, where each expression has its rule.
#[derive(Debug)]
pub struct Calendar<'a> {
    zone: Tz,
    expressions: &'a [Expression],
    /// All that lie in what is counted, and some around it.
    changes: Vec<Change>,
    /// By whether each expression matches the day.
    whole_days: HashMap<Vec<bool>, Option<Counted>>,
}

/// Folds are far shorter.
const MARGIN: i64 = 2 * Day::LENGTH;

impl<'a> Calendar<'a> {
    /// For counting inside a stretch.
    pub fn new(zone: Tz, expressions: &'a [Expression], stretch: Stretch) -> Self {
        let around = Stretch { from: stretch.from - MARGIN, to: stretch.to + MARGIN };
        Self { zone, expressions, changes: Change::of(zone, around), whole_days: HashMap::new() }
    }

    /// What lies in a part of the stretch; what several expressions name counts once.
    pub fn count(&mut self, stretch: Stretch) -> Option<Counted> {
        let (mut counted, mut from) = (None, stretch.from);
        while from < stretch.to {
            let offset = offset_at(self.zone, from);
            let midnight = ((from + offset).div_euclid(Day::LENGTH) + 1) * Day::LENGTH - offset;
            let next_change = self.changes.get(self.changes.partition_point(|change| change.at <= from));
            let to = next_change.map_or(midnight, |change| change.at.min(midnight)).min(stretch.to);
            counted = Counted::join(counted, self.count_in_day(Stretch { from, to }, offset));
            from = to;
        }
        counted
    }

    /// What lies in a part of one local day with one offset.
    fn count_in_day(&mut self, part: Stretch, offset: i64) -> Option<Counted> {
        let begin = (part.from + offset).div_euclid(Day::LENGTH) * Day::LENGTH;
        let date = instant(begin).date_naive();
        let matches: Vec<_> = self.expressions.iter().map(|expression| expression.fields().takes_date(date)).collect();
        let near = self.changes.iter().find(|change| is_near(**change, part)).copied();
        let in_day = match near {
            None if part.to - part.from == Day::LENGTH => {
                *self.whole_days.entry(matches).or_insert_with_key(|matches| whole_day(self.expressions, matches))
            }
            _ => part_of_day(self.expressions, &matches, part, near, begin - offset).counted(),
        };
        in_day.map(|in_day| in_day.moved_by(begin - offset))
    }
}

fn whole_day(expressions: &[Expression], matches: &[bool]) -> Option<Counted> {
    let all = Stretch { from: 0, to: Day::LENGTH };
    let mut day = Day::new(all);
    for (expression, _) in expressions.iter().zip(matches).filter(|(_, matches)| **matches) {
        day.add(expression.fields(), all);
    }
    day.counted()
}

/// What fires in a part of a day that begins at the instant `begin`, near a change or not.
fn part_of_day(expressions: &[Expression], matches: &[bool], part: Stretch, near: Option<Change>, begin: i64) -> Day {
    let in_day = |stretch: Stretch| Stretch { from: stretch.from - begin, to: stretch.to - begin };
    let mut day = Day::new(in_day(part));
    for (expression, _) in expressions.iter().zip(matches).filter(|(_, matches)| **matches) {
        let left_out = near.and_then(|change| left_out(change, expression.clock_change().fold));
        let left_out = left_out.unwrap_or(Stretch { from: part.to, to: part.to });
        for rest in [Stretch { to: left_out.from, ..part }, Stretch { from: left_out.to, ..part }] {
            day.add(expression.fields(), in_day(rest.common(part)));
        }
    }
    if let Some(change) = near.filter(|change| change.at == part.from)
        && let Some(gap) = change.gap()
        && expressions.iter().any(|expression| is_caught_up(expression, gap))
    {
        day.add_second(part.from - begin);
    }
    day
}

/// Whether a change decides about anything in a part of a day.
fn is_near(change: Change, part: Stretch) -> bool {
    let length = change.before - change.since;
    part.contains(change.at) || !part.common(Stretch { from: change.at - length, to: change.at + length }).is_empty()
}

/// The pass of a fold, in instants, in which an expression doesn't fire.
fn left_out(change: Change, rule: FoldRule) -> Option<Stretch> {
    let length = change.fold().map(|fold| fold.to - fold.from)?;
    match rule {
        FoldRule::First => Some(Stretch { from: change.at, to: change.at + length }),
        FoldRule::Second => Some(Stretch { from: change.at - length, to: change.at }),
        FoldRule::Both => None,
    }
}

/// Whether an expression names a local time in a gap, and fires for it at the gap's end.
fn is_caught_up(expression: &Expression, gap: Stretch) -> bool {
    expression.clock_change().gap == GapRule::Run && local_times(expression.fields(), gap).is_some()
}

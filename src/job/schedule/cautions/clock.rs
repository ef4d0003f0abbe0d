use chrono::{NaiveDateTime, TimeDelta, Timelike};
use chrono_tz::Tz;

use super::super::change::Change;
use super::super::expression::Expression;
use super::super::passed::{Counted, local_times};
use super::super::reading::{FoldRule, GapRule};
use super::super::stretch::{Stretch, instant};
use super::Setting;

/// How far ahead clock changes are looked for.
const AHEAD: TimeDelta = TimeDelta::days(366);

/// The clock changes ahead, at which the schedule may tick.
pub(super) fn changes(setting: Setting<'_>) -> Vec<Change> {
    let until = setting.from.checked_add_signed(AHEAD).unwrap_or(setting.from);
    let ahead = Stretch::later_than(setting.from, until).common(Stretch::of_all_instants());
    let may_tick = |change: &Change| {
        setting.window.stretch().contains(change.at) && setting.blackouts.end_at(instant(change.at)).is_none()
    };
    if ahead.is_empty() { Vec::new() } else { Change::of(setting.zone, ahead).into_iter().filter(may_tick).collect() }
}

/// The first gap and the first fold that an expression's times meet. One that fires every hour
/// surprises nobody.
pub(super) fn met(expression: &Expression, zone: Tz, changes: &[Change]) -> Vec<String> {
    if expression.fields().hour.is_any() {
        return Vec::new();
    }
    let times = |stretch: Stretch| local_times(expression.fields(), stretch);
    let in_gap = changes.iter().find_map(|change| Some((change, times(change.gap()?)?)));
    let in_fold = changes.iter().find_map(|change| Some((change, times(change.fold()?)?)));
    let rules = expression.clock_change();
    let gap = in_gap.map(|(change, times)| gap_text(rules.gap, *change, times, zone));
    gap.into_iter().chain(in_fold.map(|(_, times)| fold_text(rules.fold, times, zone))).collect()
}

fn gap_text(rule: GapRule, change: Change, times: Counted, zone: Tz) -> String {
    let end = clock(local(change.at + change.since));
    let what = format!("{} has no {} in {zone}", local(times.first).date(), range(times));
    match (rule, times.count) {
        (GapRule::Run, 1) => format!("{what}: it fires at {end} instead; dst_gap = \"skip\" leaves it out"),
        (GapRule::Run, count) => {
            format!("{what}: these {count} fire once, at {end}; dst_gap = \"skip\" leaves them out")
        }
        (GapRule::Skip, 1) => format!("{what}: it is left out; dst_gap = \"run\" fires it at {end}"),
        (GapRule::Skip, count) => {
            format!("{what}: these {count} are left out; dst_gap = \"run\" fires once for them, at {end}")
        }
    }
}

fn fold_text(rule: FoldRule, times: Counted, zone: Tz) -> String {
    let what = format!("{} has {} twice in {zone}", local(times.first).date(), range(times));
    match rule {
        FoldRule::First => format!("{what}: only the first counts; dst_fold = \"second\" or \"both\" changes that"),
        FoldRule::Second => format!("{what}: only the second counts; dst_fold = \"first\" or \"both\" changes that"),
        FoldRule::Both => format!("{what}: both count; dst_fold = \"first\" or \"second\" takes one of them"),
    }
}

fn range(times: Counted) -> String {
    match times.count {
        1 => clock(local(times.first)),
        _ => format!("{} to {}", clock(local(times.first)), clock(local(times.last))),
    }
}

fn clock(time: NaiveDateTime) -> String {
    time.format(if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" }).to_string()
}

/// A local time from seconds of a calendar without offsets.
fn local(second: i64) -> NaiveDateTime {
    instant(second).naive_utc()
}

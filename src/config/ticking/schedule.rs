use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::blackouts::blackout_of;
use super::typed::{Ticks, TypedTicking};
use crate::config::document::{Field, Typed};
use crate::config::problem::Problem;
use crate::job::schedule::{Blackout, InvalidEvery, InvalidSchedule, Reading, Schedule};
use crate::job::{InvalidMoment, JobName, Moment};

/// How many periods are looked at, of which the shortest counts. More than one, so that hosts which read an uneven
/// schedule (`0 9,10 * * *`) at different hours of the day come to the same answer.
const PERIODS: usize = 8;
/// What a job does that has instants of its own.
const TICKING: &str = "schedule, every or at";

/// The bounds of a window, the second not included.
type Bounds = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// What there is to know for the schedule of one job.
pub struct Ticking<'a> {
    /// The job.
    pub job: &'a JobName,
    /// Its own keys: what means nothing there is a mistake, in `[defaults]` it is for other jobs.
    pub own: &'a TypedTicking,
    /// Its keys laid over those of `[defaults]`.
    pub keys: &'a TypedTicking,
    /// Its zone.
    pub zone: Tz,
}

impl Ticking<'_> {
    /// The schedule, or all that is wrong; no problem means that it was told before.
    pub fn schedule(&self) -> Result<Schedule, Vec<Problem>> {
        let mut problems = self.meaningless();
        let ticks = match &self.keys.ticks {
            Field::Refused => return Err(problems),
            Field::Absent => None,
            Field::Typed(ticks) => Some(ticks).filter(|ticks| ticks.value.has_instants()),
        };
        let Some(ticks) = ticks else {
            return if problems.is_empty() { Ok(Schedule::by_hand(self.zone)) } else { Err(problems) };
        };
        let schedule = kept(self.unbounded(ticks), &mut problems);
        let bounds = kept(self.bounds(), &mut problems);
        let blackouts = kept(self.blackouts(), &mut problems);
        let (Some(schedule), Some((from, until)), Some(blackouts), true) =
            (schedule, bounds, blackouts, problems.is_empty())
        else {
            return Err(problems);
        };
        self.without(schedule.within(from, until), blackouts)
    }

    fn without(&self, schedule: Schedule, blackouts: Vec<Blackout>) -> Result<Schedule, Vec<Problem>> {
        let Some(typed) = self.keys.blackouts.typed().filter(|typed| !typed.value.is_empty()) else {
            return Ok(schedule);
        };
        schedule.without(blackouts).map_err(|error| vec![typed.place.problem_with_remedy_inside(error.to_string())])
    }

    /// Own keys that hang on another which is not there.
    fn meaningless(&self) -> Vec<Problem> {
        let Some(has_instants) = self.keys.has_instants() else { return Vec::new() };
        let ticks = self.keys.ticks.typed().map(|ticks| &ticks.value);
        let has_expressions = has_instants && matches!(ticks, Some(Ticks::Expressions(_)));
        let own = self.own;
        let mut problems = Vec::new();
        if !matches!(ticks, Some(Ticks::Every(_))) {
            problems.extend(own.offset.needs("offset", "every"));
        }
        if !has_expressions {
            problems.extend(own.dst_gap.needs("dst_gap", "schedule"));
            problems.extend(own.dst_fold.needs("dst_fold", "schedule"));
        }
        if !has_instants {
            problems.extend(own.splay.needs("splay", TICKING));
            problems.extend(own.active_from.needs("active_from", TICKING));
            problems.extend(own.active_until.needs("active_until", TICKING));
            problems.extend(own.blackouts.needs("blackouts", TICKING));
        }
        problems
    }

    /// The schedule without window and blackouts.
    fn unbounded(&self, ticks: &Typed<Ticks>) -> Result<Schedule, Vec<Problem>> {
        match &ticks.value {
            Ticks::Expressions(expressions) => self.crontab(expressions),
            Ticks::Every(period) => self.every(ticks, *period),
            Ticks::At(moment) => moment
                .start_in(self.zone)
                .map(|at| Schedule::at(at, self.zone))
                .map_err(|error| vec![ticks.place.problem_with_remedy_inside(error.to_string())]),
            Ticks::After(_) => Ok(Schedule::by_hand(self.zone)),
        }
    }

    /// Reads the expressions together, as nearly all are good; else one by one, so that each one that
    /// is wrong is a problem at its own place.
    fn crontab(&self, expressions: &[Typed<String>]) -> Result<Schedule, Vec<Problem>> {
        let reading = self.reading();
        let texts = expressions.iter().map(|expression| expression.value.as_str());
        let fault: InvalidSchedule = match Schedule::read(texts, &reading) {
            Ok(schedule) => return Ok(schedule),
            Err(fault) => fault,
        };
        let told =
            |place: &Typed<String>, error: &InvalidSchedule| place.place.problem_with_remedy_inside(error.to_string());
        let each = expressions.iter().filter_map(|expression| {
            let alone = Schedule::read([expression.value.as_str()], &reading);
            alone.err().map(|error| told(expression, &error))
        });
        let problems: Vec<Problem> = each.collect();
        let all = || expressions.first().map(|first| told(first, &fault)).into_iter().collect();
        Err(if problems.is_empty() { all() } else { problems })
    }

    fn every(&self, typed: &Typed<Ticks>, period: Duration) -> Result<Schedule, Vec<Problem>> {
        if self.keys.offset.is_refused() {
            return Err(Vec::new());
        }
        let offset = self.keys.offset.value_or(Duration::ZERO);
        Schedule::every(period, offset, self.zone).map_err(|error| {
            let of_offset = matches!(error, InvalidEvery::Offset | InvalidEvery::OffsetTooLong { .. });
            let problem = match self.keys.offset.typed().filter(|_| of_offset) {
                Some(offset) => offset.place.problem_with_remedy_inside(error.to_string()).resting_on_others(),
                None => typed.place.problem_with_remedy_inside(error.to_string()),
            };
            vec![problem]
        })
    }

    /// `active_from` and `active_until`, in order.
    fn bounds(&self) -> Result<Bounds, Vec<Problem>> {
        let (from, until) = (self.keys.active_from.typed(), self.keys.active_until.typed());
        let start = from.map(|from| told(from, from.value.start_in(self.zone))).transpose();
        let end = until.map(|until| told(until, until.value.end_in(self.zone))).transpose();
        match (start, end) {
            (Ok(start), Ok(end)) => match (start, end, from, until) {
                (Some(start), Some(end), Some(from), Some(until)) if start >= end => {
                    let wrong = format!("not later than active_from ({})", from.place.seen_from(&until.place));
                    Err(vec![until.place.problem(wrong, "exchange the two, or remove one").resting_on_others()])
                }
                _ => Ok((start, end)),
            },
            (start, end) => Err([start.err(), end.err()].into_iter().flatten().flatten().collect()),
        }
    }

    /// All problems of all blackouts.
    fn blackouts(&self) -> Result<Vec<Blackout>, Vec<Problem>> {
        let Some(typed) = self.keys.blackouts.typed() else { return Ok(Vec::new()) };
        // The rules for clock changes are about what the job runs, not about when it must not.
        let reading = Reading { job: Some(self.job), ..Reading::in_zone(self.zone) };
        let (mut blackouts, mut problems) = (Vec::new(), Vec::new());
        for one in &typed.value {
            match blackout_of(&one.value, &reading) {
                Ok(blackout) => blackouts.push(blackout),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() { Ok(blackouts) } else { Err(problems) }
    }

    fn reading(&self) -> Reading<'_> {
        Reading {
            zone: self.zone,
            job: Some(self.job),
            gap: self.keys.dst_gap.value(),
            fold: self.keys.dst_fold.value(),
        }
    }
}

/// A good answer; what is wrong goes to the others.
fn kept<T>(found: Result<T, Vec<Problem>>, problems: &mut Vec<Problem>) -> Option<T> {
    found.map_err(|found| problems.extend(found)).ok()
}

/// What a moment is, or the problem at its place.
pub(super) fn told(
    typed: &Typed<Moment>,
    instant: Result<DateTime<Utc>, InvalidMoment>,
) -> Result<DateTime<Utc>, Vec<Problem>> {
    instant.map_err(|error| vec![typed.place.problem_with_remedy_inside(error.to_string())])
}

/// The times between the next triggers, from one to the next; none for a schedule that has one at most.
pub fn periods(schedule: &Schedule, from: DateTime<Utc>) -> impl Iterator<Item = Duration> {
    let mut before = schedule.next_after(from);
    let periods = std::iter::from_fn(move || {
        let at = before?;
        before = schedule.next_after(at);
        (before? - at).to_std().ok()
    });
    periods.take(PERIODS)
}

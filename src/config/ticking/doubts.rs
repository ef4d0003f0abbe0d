//! What is allowed, and may not be what its author had in mind.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::schedule::periods;
use super::typed::{Ticks, TypedTicking};
use crate::clock::human;
use crate::config::document::{Place, Typed};
use crate::config::problem::Problem;
use crate::config::typed_job::TypedJob;
use crate::job::schedule::Caution;
use crate::job::{CatchUp, Job};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What may surprise in the ticking of a job whose table is at `place`.
pub fn doubts(job: &Job, place: &Place, keys: &TypedJob, now: DateTime<Utc>) -> Vec<Problem> {
    let ticking = &keys.ticking;
    let Some(ticks) = ticking.ticks.typed() else {
        let wrong = "has none of schedule, every, at and after: it only runs by hand";
        return vec![place.problem(wrong, "write schedule = [] if that is meant").resting_on_others()];
    };
    if job.schedule.is_by_hand() {
        return Vec::new();
    }
    let mut doubts: Vec<Problem> = cautions(job, &ticks.value, now);
    if let Some(spent) = spent(job, ticks, ticking, now) {
        doubts.push(spent);
        return doubts;
    }
    doubts.extend(gone_by(job, &ticks.value, now));
    let period = periods(&job.schedule, now).min();
    doubts.extend(drift(ticks));
    doubts.extend(period.and_then(|period| long_splay(ticking, period)));
    doubts.extend(period.and_then(|period| idle_catch_up(job, keys, period)));
    doubts
}

/// What the expressions themselves are warned about.
fn cautions(job: &Job, ticks: &Ticks, now: DateTime<Utc>) -> Vec<Problem> {
    let Ticks::Expressions(expressions) = ticks else { return Vec::new() };
    let at_its_place = |caution: Caution| {
        let expression = expressions.get(caution.expression)?;
        Some(expression.place.problem_with_remedy_inside(caution.to_string()))
    };
    job.schedule.cautions(now).into_iter().filter_map(at_its_place).collect()
}

/// Expressions of a past year, beside others that go on.
fn gone_by(job: &Job, ticks: &Ticks, now: DateTime<Utc>) -> Vec<Problem> {
    let Ticks::Expressions(expressions) = ticks else { return Vec::new() };
    let spent = job.schedule.spent(now).into_iter().filter_map(|place| expressions.get(place));
    spent.map(|expression| expression.place.problem("gone by, it names no more instants", "remove it")).collect()
}

/// A job that won't tick any more, or never could.
fn spent(job: &Job, ticks: &Typed<Ticks>, keys: &TypedTicking, now: DateTime<Utc>) -> Option<Problem> {
    if job.schedule.next_after(now).is_some() {
        return None;
    }
    let window = keys.active_until.typed().or(keys.active_from.typed());
    let ever = job.schedule.next_after(DateTime::<Utc>::MIN_UTC);
    Some(match (ever, window) {
        (None, Some(window)) => {
            let wrong = "the job has no instant between active_from and active_until, so it never runs by itself";
            window.place.problem(wrong, "widen the two, or remove them").resting_on_others()
        }
        (_, Some(until)) if !matches!(ticks.value, Ticks::At(_)) => {
            until.place.problem("gone by, the job runs no more by itself", "move it, or remove the job")
        }
        _ => ticks.place.problem("gone by, the job runs no more by itself", "move it, or remove the job"),
    })
}

/// `every = "7h"` comes at another time each day; shorter periods are not about the time of day.
fn drift(ticks: &Typed<Ticks>) -> Option<Problem> {
    let Ticks::Every(period) = ticks.value else { return None };
    let (seconds, day) = (period.as_secs(), DAY.as_secs());
    let is_even = day % seconds == 0 || seconds % day == 0;
    (period >= HOUR && !is_even).then(|| {
        let wrong = format!("{} doesn't divide a day, so the job runs at other times each day", human(period));
        ticks.place.problem(wrong, "write a divisor of 24h, or a schedule")
    })
}

fn long_splay(keys: &TypedTicking, period: Duration) -> Option<Problem> {
    let splay = keys.splay.typed().filter(|splay| splay.value > period)?;
    let wrong = format!("longer than the shortest time between two triggers, {}", human(period));
    Some(splay.place.problem(wrong, "shorten it, or a run may start when the next one is due").resting_on_others())
}

fn idle_catch_up(job: &Job, keys: &TypedJob, period: Duration) -> Option<Problem> {
    let max_age = keys.catch_up.max_age.typed().filter(|max_age| max_age.value < period)?;
    matches!(job.catch_up, CatchUp::All { .. }).then(|| {
        let wrong = format!("shorter than the time between two triggers, {}: one is run late at most", human(period));
        max_age.place.problem(wrong, "lengthen it, or write catch_up = \"latest\"").resting_on_others()
    })
}

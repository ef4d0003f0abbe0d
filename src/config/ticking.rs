//! What a job's `schedule` and `timezone` mean: the only place of this floor that asks
//! `job::schedule`.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::document::Typed;
use super::problem::Problem;
use crate::job::schedule::{InvalidSchedule, Schedule, parse_zone};

/// Reads the name of a zone; the error names the remedy.
pub fn zone(name: &str) -> Result<Tz, String> {
    parse_zone(name).map_err(|error| error.to_string())
}

/// Reads a job's expressions; each one that is refused is a problem at its own place.
pub fn schedule(expressions: &[Typed<String>], zone: Tz, now: DateTime<Utc>) -> Result<Schedule, Vec<Problem>> {
    let problems: Vec<Problem> = expressions.iter().filter_map(|expression| judge(expression, zone, now)).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    Schedule::parse_all(expressions.iter().map(|expression| expression.value.as_str()), zone).map_err(|error| {
        let first = expressions.first();
        first.map(|first| first.place.problem_with_remedy_inside(error.to_string())).into_iter().collect()
    })
}

/// One expression alone, so that every one that is wrong, or over for good, is told.
fn judge(expression: &Typed<String>, zone: Tz, now: DateTime<Utc>) -> Option<Problem> {
    let fires = |schedule: Schedule| schedule.require_later_than(now);
    let error: InvalidSchedule = Schedule::parse(&expression.value, zone).and_then(fires).err()?;
    Some(expression.place.problem_with_remedy_inside(error.to_string()))
}

//! The seam to `job::schedule`: the only place of this floor that parses expressions and zones.

use chrono_tz::Tz;

use super::document::Typed;
use super::problem::Problem;
use crate::job::schedule::Schedule;

// SEAM: once `job::schedule` has `parse_zone` and `Schedule::parse_all`, these two shims go and the
// functions below call them; their messages are already those of `job::schedule`. Then `judge` also
// takes the present and asks `Schedule::require_later_than`.
fn parse_zone_shim(name: &str) -> Result<Tz, String> {
    let hint = "write an IANA name such as \"Europe/Berlin\", \"UTC\" or \"local\"";
    name.parse::<Tz>().map_err(|_| format!("time zone {name:?} is unknown; {hint}"))
}
fn parse_all_shim<'e>(mut expressions: impl Iterator<Item = &'e str>, zone: Tz) -> Result<Schedule, String> {
    let first = expressions.next().unwrap_or_default();
    if first.trim().is_empty() {
        return Err("the expression is blank; write five fields, e.g. \"0 3 * * *\"".to_owned());
    }
    Schedule::parse(first, zone).map_err(|error| error.to_string())
}

/// Reads the name of a zone; the error names the remedy.
pub fn zone(name: &str) -> Result<Tz, String> {
    parse_zone_shim(name)
}

/// Reads a job's expressions; each one that is refused is a problem at its own place.
pub fn schedule(expressions: &[Typed<String>], zone: Tz) -> Result<Schedule, Vec<Problem>> {
    let problems: Vec<Problem> = expressions.iter().filter_map(|expression| judge(expression, zone)).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    parse_all_shim(expressions.iter().map(|expression| expression.value.as_str()), zone).map_err(|error| {
        let first = expressions.first();
        first.map(|first| first.place.problem_with_remedy_inside(error)).into_iter().collect()
    })
}

/// One expression alone, so that every one that is wrong is told.
fn judge(expression: &Typed<String>, zone: Tz) -> Option<Problem> {
    let error = parse_all_shim(std::iter::once(expression.value.as_str()), zone).err()?;
    Some(expression.place.problem_with_remedy_inside(error))
}

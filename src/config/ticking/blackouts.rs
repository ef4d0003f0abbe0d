use std::time::Duration;

use super::schedule::told;
use super::typed::{read_moment, whole_seconds};
use crate::config::document::{BLACKOUT, Field, Refused, Section, Typed, Value};
use crate::config::problem::Problem;
use crate::job::Moment;
use crate::job::schedule::{Blackout, InvalidBlackout, Reading};

const REMEDY: &str = "write { from = \"2027-12-24\", until = \"2027-12-26\" } or { schedule = \"0 22 * * FRI\", lasts = \"58h\" } in the list";

/// A time in which a job must not tick, as it was typed.
#[derive(Clone, Debug)]
pub enum TypedBlackout {
    /// `from` and `until`.
    Between(Typed<Moment>, Typed<Moment>),
    /// `schedule` and `lasts`.
    Recurring(Typed<String>, Typed<Duration>),
}

/// Reads the list.
pub(super) fn read_blackouts(value: &Value<'_>) -> Result<Vec<Typed<TypedBlackout>>, Refused> {
    value.tables(&BLACKOUT, REMEDY, read)
}

/// Two pairs of keys; one of them must be there, whole and alone.
fn read(section: &mut Section<'_>) -> Option<TypedBlackout> {
    let from = section.field("from", read_moment);
    let until = section.field("until", read_moment);
    let schedule = section.field("schedule", Value::string);
    let lasts = section.field("lasts", |value| whole_seconds(value, Duration::from_secs(1)));
    let is_there = [!from.is_absent(), !until.is_absent(), !schedule.is_absent(), !lasts.is_absent()];
    let wrong = match is_there {
        [true, true, false, false] | [false, false, true, true] => None,
        [true, false, false, false] => Some("until is missing"),
        [false, true, false, false] => Some("from is missing"),
        [false, false, true, false] => Some("lasts is missing"),
        [false, false, false, true] => Some("schedule is missing"),
        [false, false, false, false] => Some("an empty table"),
        _ => Some("either from and until or schedule and lasts, not both"),
    };
    if let Some(wrong) = wrong {
        section.push(section.place().problem(wrong, REMEDY));
    }
    match (from, until, schedule, lasts) {
        (Field::Typed(from), Field::Typed(until), ..) => Some(TypedBlackout::Between(from, until)),
        (_, _, Field::Typed(schedule), Field::Typed(lasts)) => Some(TypedBlackout::Recurring(schedule, lasts)),
        _ => None,
    }
}

/// What one means for a job that is read in this way.
pub(super) fn blackout_of(typed: &TypedBlackout, reading: &Reading<'_>) -> Result<Blackout, Vec<Problem>> {
    match typed {
        TypedBlackout::Recurring(expression, lasts) => Blackout::recurring(&expression.value, lasts.value, reading)
            .map_err(|error| {
                let place = match error {
                    InvalidBlackout::Start(_) => &expression.place,
                    InvalidBlackout::Lasts => &lasts.place,
                };
                vec![place.problem_with_remedy_inside(error.to_string())]
            }),
        TypedBlackout::Between(typed_from, typed_until) => {
            let from = told(typed_from, typed_from.value.start_in(reading.zone));
            let until = told(typed_until, typed_until.value.end_in(reading.zone));
            match (from, until) {
                (Ok(from), Ok(until)) if from < until => Ok(Blackout::between(from, until)),
                (Ok(_), Ok(_)) => Err(vec![typed_until.place.problem("not later than from", "exchange the two")]),
                (from, until) => Err([from.err(), until.err()].into_iter().flatten().flatten().collect()),
            }
        }
    }
}

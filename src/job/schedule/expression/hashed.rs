use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::super::error::FieldProblem;
use super::field::Field;
use super::item::{Span, parse_range, parse_step};
use crate::job::JobName;

/// The keys of the hash. A job's times follow from it: never change them.
const KEYS: (u64, u64) = (0x7363_6865_6475_6c65, 0x0000_6372_6f6e_6c61);

/// Reads `H`, `H(a-b)`, `H/n` or `H(a-b)/n`: values that spread jobs over a range, each job by its
/// name, and each of its fields by itself. `None`: it is a plain item.
pub fn parse_hashed(field: Field, item: &str, job: Option<&JobName>) -> Result<Option<Span>, FieldProblem> {
    let Some(rest) = item.strip_prefix(['H', 'h']) else { return Ok(None) };
    if !(rest.is_empty() || rest.starts_with(['/', '(', '-'])) {
        return Ok(None);
    }
    if field == Field::Year {
        return Err(FieldProblem::HashedYear);
    }
    let (range, step) = match rest.split_once('/') {
        None => (rest, None),
        Some((_, step)) if step.contains('/') => return Err(FieldProblem::TwoSteps),
        Some((range, step)) => (range, Some(parse_step(step)?)),
    };
    let (first, last) = parse_drawn(field, range)?;
    let Some(job) = job else { return Err(FieldProblem::HashedWithoutJob) };
    let hash = hash_of(job, field);
    let below = |size: u16| u16::try_from(hash % u64::from(size)).expect("less than a small number");
    let size = last - first + 1;
    match step {
        None => {
            let value = first + below(size);
            Ok(Some(Span { first: value, last: value, step: 1 }))
        }
        Some(step) if step > size => Err(FieldProblem::HashedStep { step, first, last }),
        Some(step) => Ok(Some(Span { first: first + below(step), last, step })),
    }
}

/// The range that is drawn from: the one in brackets, or the field's.
fn parse_drawn(field: Field, brackets: &str) -> Result<(u16, u16), FieldProblem> {
    if brackets.is_empty() {
        return Ok(match field {
            // Every month has these days.
            Field::DayOfMonth => (1, 28),
            Field::DayOfWeek => (0, 6),
            _ => (field.least(), field.greatest()),
        });
    }
    let range = brackets.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let (first, last) = range.and_then(|range| range.split_once('-')).ok_or(FieldProblem::HashedRange)?;
    parse_range(field, first, last, 1).map_err(|problem| match problem {
        FieldProblem::Backwards { .. } | FieldProblem::Range { .. } => FieldProblem::HashedRange,
        other => other,
    })
}

fn hash_of(job: &JobName, field: Field) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(KEYS.0, KEYS.1);
    hasher.write(job.as_str().as_bytes());
    // No name holds this byte, so none of them runs on into the field.
    hasher.write(&[0xff]);
    hasher.write(match field {
        Field::Second => b"second".as_slice(),
        Field::Minute => b"minute",
        Field::Hour => b"hour",
        Field::DayOfMonth => b"day",
        Field::Month => b"month",
        Field::DayOfWeek => b"weekday",
        Field::Year => b"year",
    });
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [Field; 6] =
        [Field::Second, Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];

    fn name(text: &str) -> JobName {
        JobName::new(text).unwrap()
    }

    fn drawn(field: Field, item: &str, job: &JobName) -> (u16, u16, u16) {
        let Span { first, last, step } = parse_hashed(field, item, Some(job)).unwrap().expect("a hashed item");
        (first, last, step)
    }

    #[test]
    fn values_are_the_same_on_all_hosts_and_in_all_versions() {
        let values = |job: &str| FIELDS.map(|field| drawn(field, "H", &name(job)).0);
        assert_eq!(values("nightly-backup"), [13, 51, 2, 8, 3, 6], "never change them");
        assert_eq!(values("reports"), [29, 5, 17, 4, 1, 2], "never change them");
        let steps = |job: &str| drawn(Field::Minute, "H/15", &name(job));
        assert_eq!([steps("nightly-backup"), steps("reports")], [(6, 59, 15), (5, 59, 15)], "never change them");
    }

    #[test]
    fn a_thousand_names_spread_evenly_over_every_range() {
        for (field, item, first, last) in [
            (Field::Second, "H", 0, 59),
            (Field::Minute, "H", 0, 59),
            (Field::Hour, "H", 0, 23),
            (Field::DayOfMonth, "H", 1, 28),
            (Field::Month, "H", 1, 12),
            (Field::DayOfWeek, "H", 0, 6),
            (Field::Minute, "H(0-29)", 0, 29),
            (Field::Minute, "H/15", 0, 14),
            (Field::DayOfWeek, "H(MON-FRI)", 1, 5),
            (Field::Hour, "h(20-23)/2", 20, 21),
        ] {
            let mut counts = vec![0_u32; usize::from(last - first) + 1];
            for job in 0..1_000 {
                counts[usize::from(drawn(field, item, &name(&format!("job-{job}"))).0 - first)] += 1;
            }
            // Five standard deviations around the mean.
            let mean = 1_000.0 / f64::from(last - first + 1);
            let even = |count: &u32| (f64::from(*count) - mean).abs() < 5.0 * mean.sqrt();
            assert!(counts.iter().all(even), "{field} {item}: {counts:?}");
        }
    }

    #[test]
    fn the_fields_of_a_job_are_drawn_independently() {
        let equal = |job: &u32| {
            let job = name(&format!("job-{job}"));
            drawn(Field::Minute, "H", &job).0 == drawn(Field::Second, "H", &job).0
        };
        let count = (0..1_000).filter(equal).count();
        assert!((3..40).contains(&count), "{count} of 1000 jobs, where 17 are expected");
    }

    #[test]
    fn steps_begin_at_the_drawn_phase_and_stay_in_their_range() {
        for job in 0..100 {
            let job = name(&format!("job-{job}"));
            let (first, last, step) = drawn(Field::Hour, "H(8-18)/4", &job);
            assert!((8..12).contains(&first) && (last, step) == (18, 4));
            assert_eq!(drawn(Field::DayOfMonth, "H/14", &job).1, 28, "twice a month, in every month");
        }
        assert!(parse_hashed(Field::Hour, "H/24", Some(&name("job"))).is_ok());
    }

    #[test]
    fn other_words_with_h_are_left_to_others() {
        assert_eq!(parse_hashed(Field::Month, "HMM", None), Ok(None));
        assert_eq!(parse_hashed(Field::Minute, "5", None), Ok(None));
    }
}

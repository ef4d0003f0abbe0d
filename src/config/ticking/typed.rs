use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{Datelike, Timelike};
use chrono_tz::Tz;

use super::blackouts::{TypedBlackout, read_blackouts};
use crate::config::document::{Field, Refused, Section, Typed, Value};
use crate::job::schedule::{FoldRule, GapRule, parse_zone};
use crate::job::{JobName, Moment};

/// A period, a splay or a blackout that is shorter would be none.
const SECOND: Duration = Duration::from_secs(1);
/// What schedules can compute with.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=2100;

/// What a job says about when it ticks, as it was typed.
#[derive(Clone, Debug, Default)]
pub struct TypedTicking {
    /// The one of `schedule`, `every`, `at` and `after` that is there, at the place of its key.
    pub ticks: Field<Ticks>,
    pub offset: Field<Duration>,
    pub timezone: Field<Tz>,
    pub dst_gap: Field<GapRule>,
    pub dst_fold: Field<FoldRule>,
    pub splay: Field<Duration>,
    pub active_from: Field<Moment>,
    pub active_until: Field<Moment>,
    pub blackouts: Field<Vec<Typed<TypedBlackout>>>,
}

/// How a job ticks.
#[derive(Clone, Debug)]
pub enum Ticks {
    /// `schedule`; none: it runs by hand, and that is meant.
    Expressions(Vec<Typed<String>>),
    /// `every`.
    Every(Duration),
    /// `at`.
    At(Moment),
    /// `after`; at least one.
    After(Vec<Typed<JobName>>),
}

impl Ticks {
    /// Whether the job ticks by itself, not by hand nor after others.
    pub fn has_instants(&self) -> bool {
        match self {
            Self::Expressions(expressions) => !expressions.is_empty(),
            Self::Every(_) | Self::At(_) => true,
            Self::After(_) => false,
        }
    }

    /// The jobs after which it runs.
    pub fn upstream(&self) -> &[Typed<JobName>] {
        match self {
            Self::After(names) => names,
            Self::Expressions(_) | Self::Every(_) | Self::At(_) => &[],
        }
    }
}

impl TypedTicking {
    /// Reads the keys.
    pub fn read(section: &mut Section<'_>) -> Self {
        const GAPS: [(&str, GapRule); 2] = [("run", GapRule::Run), ("skip", GapRule::Skip)];
        const FOLDS: [(&str, FoldRule); 3] =
            [("first", FoldRule::First), ("second", FoldRule::Second), ("both", FoldRule::Both)];
        Self {
            ticks: read_ticks(section),
            offset: section.field("offset", |value| value.duration(Duration::ZERO)),
            timezone: section.field("timezone", read_zone),
            dst_gap: section.field("dst_gap", |value| value.word(&GAPS, &[])),
            dst_fold: section.field("dst_fold", |value| value.word(&FOLDS, &[])),
            splay: section.field("splay", |value| whole_seconds(value, Duration::ZERO)),
            active_from: section.field("active_from", read_moment),
            active_until: section.field("active_until", read_moment),
            blackouts: section.field("blackouts", read_blackouts),
        }
    }

    /// These keys, and the defaults' where these are absent.
    pub fn over(&self, defaults: &Self) -> Self {
        Self {
            ticks: self.ticks.or(&defaults.ticks),
            offset: self.offset.or(&defaults.offset),
            timezone: self.timezone.or(&defaults.timezone),
            dst_gap: self.dst_gap.or(&defaults.dst_gap),
            dst_fold: self.dst_fold.or(&defaults.dst_fold),
            splay: self.splay.or(&defaults.splay),
            active_from: self.active_from.or(&defaults.active_from),
            active_until: self.active_until.or(&defaults.active_until),
            blackouts: self.blackouts.or(&defaults.blackouts),
        }
    }

    /// Whether the job ticks by itself; `None` if what it says about that was refused.
    pub fn has_instants(&self) -> Option<bool> {
        match &self.ticks {
            Field::Absent => Some(false),
            Field::Refused => None,
            Field::Typed(ticks) => Some(ticks.value.has_instants()),
        }
    }
}

/// Reads the name of a zone.
pub fn read_zone(value: &Value<'_>) -> Result<Tz, Refused> {
    let zone = parse_zone(&value.string()?);
    zone.map_err(|error| value.place.problem_with_remedy_inside(error.to_string()).into())
}

/// One of the four keys, not two.
fn read_ticks(section: &mut Section<'_>) -> Field<Ticks> {
    let found = [
        ("schedule", section.field("schedule", |value| value.one_or_more(Value::string).map(Ticks::Expressions))),
        ("every", section.field("every", |value| value.duration(SECOND).map(Ticks::Every))),
        ("at", section.field("at", |value| read_moment(value).map(Ticks::At))),
        ("after", section.field("after", |value| read_names(value).map(Ticks::After))),
    ];
    let mut there = found.into_iter().filter(|(_, field)| !field.is_absent());
    let Some((key, first)) = there.next() else { return Field::Absent };
    let others: Vec<_> = there.collect();
    for (_, other) in &others {
        if let (Some(first), Some(other)) = (first.typed(), other.typed()) {
            let wrong = format!("{key} is there too ({})", first.place.seen_from(&other.place));
            section.push(other.place.problem(wrong, "keep one of the two").resting_on_others());
        }
    }
    if others.is_empty() { first } else { Field::Refused }
}

fn read_names(value: &Value<'_>) -> Result<Vec<Typed<JobName>>, Refused> {
    let names = value.one_or_more(|name| name.checked(JobName::new))?;
    if names.is_empty() {
        let remedy = "write after = \"JOB\", or schedule = [] for a job that only runs by hand";
        return Err(value.refuse("an empty list", remedy));
    }
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = names.iter().filter(|name| !seen.insert(&name.value)).collect();
    if twice.is_empty() {
        return Ok(names);
    }
    Err(Refused(twice.iter().map(|name| name.place.problem("named twice", "remove one of the two")).collect()))
}

/// A moment that schedules can compute with.
pub(super) fn read_moment(value: &Value<'_>) -> Result<Moment, Refused> {
    let moment = value.moment()?;
    let (year, nanosecond) = match moment {
        Moment::Instant(at) => (at.year(), at.nanosecond()),
        Moment::Local(local) => (local.year(), local.nanosecond()),
        Moment::Day(day) => (day.year(), 0),
    };
    if !YEARS.contains(&year) {
        let remedy = format!("write a year from {} to {}, or remove the key", YEARS.start(), YEARS.end());
        return Err(value.refuse("too far away", remedy));
    }
    if nanosecond > 0 {
        return Err(value.refuse("a part of a second", "write whole seconds"));
    }
    Ok(moment)
}

/// A duration without a part of a second.
pub fn whole_seconds(value: &Value<'_>, least: Duration) -> Result<Duration, Refused> {
    let duration = value.duration(least)?;
    if duration.subsec_nanos() > 0 {
        return Err(value.refuse("a part of a second", "write whole seconds"));
    }
    Ok(duration)
}

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::error::InvalidSchedule;
use super::first_instant;
use super::reading::Reading;
use super::rfc3339;
use super::source::Crontab;

/// The longest that a recurring blackout may last: a year.
const MAX_LASTS: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// From so many windows on of which each begins before the one before has ended, or as it ends, a blackout
/// is refused: the way out of it would be long.
const MOST_IN_A_ROW: usize = 300;

/// A time in which a schedule doesn't tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blackout(Recurrence);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recurrence {
    /// From its start, up to but not including its end.
    Once { from: DateTime<Utc>, until: DateTime<Utc> },
    /// From each instant of an expression on.
    Recurring { starts: Crontab, zone: Tz, lasts: TimeDelta },
}

/// Why a blackout can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBlackout {
    /// Its start is no expression.
    #[error(transparent)]
    Start(#[from] InvalidSchedule),
    /// It lasts no whole number of seconds, or too long.
    #[error("a blackout lasts a whole number of seconds, from 1 s to 366 days; write e.g. \"2h\"")]
    Lasts,
}

impl Blackout {
    /// Once, from `from` on, up to but not including `until`.
    pub fn between(from: DateTime<Utc>, until: DateTime<Utc>) -> Self {
        Self(Recurrence::Once { from, until })
    }

    /// For `lasts` from each instant of an expression on. That is time that passes: a clock change
    /// within it moves the end that local clocks show.
    ///
    /// # Errors
    /// [`InvalidBlackout`] when it is no expression, can't ever begin, or lasts no length of time.
    pub fn recurring(expression: &str, lasts: Duration, how: &Reading<'_>) -> Result<Self, InvalidBlackout> {
        if lasts.is_zero() || lasts.subsec_nanos() > 0 || lasts > MAX_LASTS {
            return Err(InvalidBlackout::Lasts);
        }
        let lasts = TimeDelta::from_std(lasts).map_err(|_| InvalidBlackout::Lasts)?;
        Ok(Self(Recurrence::Recurring { starts: Crontab::read([expression], how)?, zone: how.zone, lasts }))
    }

    /// When it is.
    pub(super) fn recurrence(&self) -> &Recurrence {
        &self.0
    }

    /// Whether its windows follow one another without a pause, again and again. Windows of one
    /// expression are alike on each of its days, so the first tell.
    fn is_dense(&self) -> bool {
        let Recurrence::Recurring { starts, zone, lasts } = &self.0 else { return false };
        let next = |start: &DateTime<Utc>| starts.next_after(*zone, *start).filter(|next| *next - *start <= *lasts);
        let first = starts.next_after(*zone, first_instant());
        std::iter::successors(first, next).nth(MOST_IN_A_ROW).is_some()
    }

    /// The end of the window that `instant` lies in, which is no part of it any more.
    fn end_at(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.0 {
            Recurrence::Once { from, until } => (*from <= instant && instant < *until).then_some(*until),
            Recurrence::Recurring { starts, zone, lasts } => {
                let start = starts.next_after(*zone, instant.checked_sub_signed(*lasts)?)?;
                (start <= instant).then(|| start + *lasts)
            }
        }
    }

    /// The first start of a window later than `after`.
    fn next_start(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.0 {
            Recurrence::Once { from, until } => (*from > after && from < until).then_some(*from),
            Recurrence::Recurring { starts, zone, .. } => starts.next_after(*zone, after),
        }
    }

    fn canon(&self) -> Vec<(&'static str, String)> {
        match &self.0 {
            Recurrence::Once { from, until } => {
                vec![("blackout_from", rfc3339(*from)), ("blackout_until", rfc3339(*until))]
            }
            Recurrence::Recurring { starts, zone, lasts } => {
                let mut canon = vec![("blackout_lasts_s", lasts.num_seconds().to_string())];
                canon.extend(starts.canon(*zone));
                canon
            }
        }
    }
}

/// The blackouts of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Blackouts(Arc<[Blackout]>);

impl Blackouts {
    pub(super) fn new(blackouts: Vec<Blackout>) -> Self {
        Self(blackouts.into())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Blackout> {
        self.0.iter()
    }

    /// The latest end of the windows that `instant` lies in.
    pub(super) fn end_at(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.iter().filter_map(|blackout| blackout.end_at(instant)).max()
    }

    /// Whether one of them begins again and again without a pause.
    pub(super) fn is_dense(&self) -> bool {
        self.iter().any(Blackout::is_dense)
    }

    /// The first start of a window later than `after`.
    pub(super) fn next_start(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.iter().filter_map(|blackout| blackout.next_start(after)).min()
    }

    pub(super) fn canon(&self) -> Vec<(&'static str, String)> {
        self.iter().flat_map(Blackout::canon).collect()
    }
}

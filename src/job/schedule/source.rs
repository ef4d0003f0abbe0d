use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::every::Every;
use super::expression::Expression;
use super::reading::{FoldRule, GapRule, Reading};
use super::{InvalidSchedule, first_instant, last_instant, local, rfc3339};

/// Where the instants of a schedule come from, windows and blackouts aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Expressions in the schedule's zone.
    Crontab(Crontab),
    /// A period.
    Every(Every),
    /// One instant, a whole second.
    At(DateTime<Utc>),
    /// Nowhere.
    ByHand,
}

impl Source {
    /// The first instant later than `after`.
    pub(super) fn next_after(&self, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Crontab(crontab) => crontab.next_after(zone, after),
            Self::Every(every) => every.next_after(bounded(after)?).filter(|next| *next <= last_instant()),
            Self::At(instant) => (*instant > after).then_some(*instant),
            Self::ByHand => None,
        }
    }

    /// None, if it isn't made of any.
    pub(super) fn expressions(&self) -> &[Expression] {
        match self {
            Self::Crontab(crontab) => crontab.expressions(),
            Self::Every(_) | Self::At(_) | Self::ByHand => &[],
        }
    }

    /// Names and values of all that decides when it ticks. Hosts of different versions compare
    /// digests of them: what stands here for a schedule stays.
    pub(super) fn canon(&self, zone: Tz) -> Vec<(&'static str, String)> {
        match self {
            Self::Crontab(crontab) => crontab.canon(zone),
            Self::Every(every) => {
                vec![("every_s", every.period().to_string()), ("offset_s", every.offset().to_string())]
            }
            Self::At(instant) => vec![("at", rfc3339(*instant))],
            Self::ByHand => vec![("by_hand", "true".to_owned())],
        }
    }
}

/// One or more expressions that were read the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Crontab {
    /// Never empty.
    expressions: Arc<[Expression]>,
    /// As the job says; `None`: each expression by its form.
    gap: Option<GapRule>,
    /// As the job says; `None`: each expression by its form.
    fold: Option<FoldRule>,
}

impl Crontab {
    /// Reads them; one that can't ever fire is refused, too.
    pub(super) fn read<I>(texts: I, how: &Reading<'_>) -> Result<Self, InvalidSchedule>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let read = texts.into_iter().map(|text| Expression::read(text.as_ref(), how));
        let expressions = read.collect::<Result<Arc<[_]>, _>>()?;
        if expressions.is_empty() {
            return Err(InvalidSchedule::NoExpression);
        }
        let crontab = Self { expressions, gap: how.gap, fold: how.fold };
        match crontab.spent_at(how.zone, first_instant()) {
            Some(spent) => Err(InvalidSchedule::NeverFires { expression: spent.to_owned(), zone: how.zone }),
            None => Ok(crontab),
        }
    }

    /// Never empty.
    pub(super) fn expressions(&self) -> &[Expression] {
        &self.expressions
    }

    /// The first expression that names nothing later than `after`.
    pub(super) fn spent_at(&self, zone: Tz, after: DateTime<Utc>) -> Option<&str> {
        self.all_spent_at(zone, after).next().map(|spent| self.expressions[spent].text())
    }

    /// The places of all such expressions.
    pub(super) fn all_spent_at(&self, zone: Tz, after: DateTime<Utc>) -> impl Iterator<Item = usize> + '_ {
        let fires =
            move |expression: &Expression| bounded(after).and_then(|after| next_of(expression, zone, after)).is_some();
        let places = self.expressions.iter().enumerate();
        places.filter(move |(_, expression)| !fires(expression)).map(|(place, _)| place)
    }

    /// The first instant later than `after`.
    pub(super) fn next_after(&self, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let after = bounded(after)?;
        self.expressions.iter().filter_map(|expression| next_of(expression, zone, after)).min()
    }

    /// Names and values of all that decides when they fire.
    pub(super) fn canon(&self, zone: Tz) -> Vec<(&'static str, String)> {
        let mut canon = vec![("timezone", zone.to_string())];
        canon.extend(self.expressions.iter().map(|expression| ("schedule", expression.canonical())));
        canon.extend(self.gap.map(|gap| ("dst_gap", gap.to_string())));
        canon.extend(self.fold.map(|fold| ("dst_fold", fold.to_string())));
        canon
    }
}

/// Instants are whole seconds; outside of these years local times may not even be representable.
fn bounded(after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let after = DateTime::from_timestamp(after.timestamp(), 0)?.max(first_instant());
    (after <= last_instant()).then_some(after)
}

fn next_of(expression: &Expression, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    local::next_instant(zone, expression.clock_change(), after, |local| expression.next_local(local))
}

impl fmt::Display for Crontab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, expression) in self.expressions.iter().enumerate() {
            let between = if place == 0 { "" } else { " and " };
            write!(f, "{between}{expression}")?;
        }
        Ok(())
    }
}

use super::super::stretch::Stretch;

/// Some instants, in seconds since the epoch: how many, from which to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub first: i64,
    pub last: i64,
    /// At least 1.
    pub count: u64,
}

impl Counted {
    /// The multiples of `period` plus `offset` in a stretch.
    pub fn multiples(period: i64, offset: i64, stretch: Stretch) -> Option<Self> {
        if stretch.is_empty() {
            return None;
        }
        let periods_at = |second: i64| (second - offset).div_euclid(period);
        let (before, last) = (periods_at(stretch.from - 1), periods_at(stretch.to - 1));
        let count = u64::try_from(last - before).ok().filter(|count| *count > 0)?;
        let instant = |periods: i64| offset + periods * period;
        Some(Self { first: instant(before + 1), last: instant(last), count })
    }

    /// As many, so many seconds later.
    pub fn moved_by(self, seconds: i64) -> Self {
        Self { first: self.first + seconds, last: self.last + seconds, ..self }
    }

    /// Both of two that have no instant in common.
    pub fn join(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
        Some(Self { first: a.first.min(b.first), last: a.last.max(b.last), count: a.count + b.count })
    }
}

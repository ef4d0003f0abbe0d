use super::super::expression::Fields;
use super::super::stretch::{Stretch, instant};
use super::counted::Counted;

const SECONDS: i64 = 60;

/// The seconds of a part of a local day at which something fires: a word a minute, a bit a second.
#[derive(Clone, Debug)]
pub struct Day {
    /// The minute of the day that the first word is for.
    first_minute: i64,
    minutes: Box<[u64]>,
}

impl Day {
    /// As many seconds as a day has.
    pub const LENGTH: i64 = 24 * 60 * SECONDS;

    /// For a part of a day, in seconds from the day's begin. It isn't empty.
    pub fn new(part: Stretch) -> Self {
        let (first, last) = minutes_of(part);
        Self { first_minute: first, minutes: (first..=last).map(|_| 0).collect() }
    }

    /// Adds what the fields name in some of the part, whatever the date is.
    pub fn add(&mut self, fields: &Fields, part: Stretch) {
        if part.is_empty() {
            return;
        }
        let [seconds, minutes, hours] = [&fields.second, &fields.minute, &fields.hour].map(|v| v.numbers().low_bits());
        let (first, last) = minutes_of(part);
        for minute in first..=last {
            if hours >> (minute / 60) & 1 == 0 || minutes >> (minute % 60) & 1 == 0 {
                continue;
            }
            let mut bits = seconds;
            if minute == first {
                bits &= u64::MAX << (part.from % SECONDS);
            }
            if minute == last {
                bits &= u64::MAX >> (63 - (part.to - 1) % SECONDS);
            }
            *self.minute(minute) |= bits;
        }
    }

    /// Adds one second.
    pub fn add_second(&mut self, second: i64) {
        *self.minute(second / SECONDS) |= 1 << (second % SECONDS);
    }

    /// What there is, as seconds since the day's begin.
    pub fn counted(&self) -> Option<Counted> {
        let all = || (self.first_minute..).zip(&self.minutes);
        let minutes = || all().filter(|(_, bits)| **bits != 0).map(|(minute, bits)| (minute * SECONDS, bits));
        let (minute, bits) = minutes().next()?;
        let first = minute + i64::from(bits.trailing_zeros());
        let (minute, bits) = minutes().last()?;
        let last = minute + i64::from(63 - bits.leading_zeros());
        Some(Counted { first, last, count: self.minutes.iter().map(|bits| u64::from(bits.count_ones())).sum() })
    }

    fn minute(&mut self, minute: i64) -> &mut u64 {
        let index = usize::try_from(minute - self.first_minute).expect("a minute of the part");
        &mut self.minutes[index]
    }
}

/// The local times that the fields name in a stretch of a calendar without offsets.
pub fn local_times(fields: &Fields, stretch: Stretch) -> Option<Counted> {
    let (mut counted, mut from) = (None, stretch.from);
    while from < stretch.to {
        let begin = from.div_euclid(Day::LENGTH) * Day::LENGTH;
        let to = stretch.to.min(begin + Day::LENGTH);
        if fields.takes_date(instant(begin).date_naive()) {
            let part = Stretch { from: from - begin, to: to - begin };
            let mut day = Day::new(part);
            day.add(fields, part);
            counted = Counted::join(counted, day.counted().map(|in_day| in_day.moved_by(begin)));
        }
        from = to;
    }
    counted
}

/// The first and the last minute of the day that a part of it touches.
fn minutes_of(part: Stretch) -> (i64, i64) {
    (part.from / SECONDS, (part.to - 1) / SECONDS)
}

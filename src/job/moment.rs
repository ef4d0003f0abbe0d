use chrono::{DateTime, Datelike, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};

/// A moment as people write it: an instant, or a time or a day of a calendar whose zone stands elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// `2027-01-01T03:00:00+01:00`.
    Instant(DateTime<Utc>),
    /// `2027-01-01T03:00:00`, and `2027-01-01T03:00`.
    Local(NaiveDateTime),
    /// `2027-01-01`.
    Day(NaiveDate),
}

/// Why a text names no moment, or none in a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMoment {
    /// It can't be read, or there is no such day or time.
    #[error(
        "can't be read as a time; write 2027-01-01T03:00:00+01:00, or 2027-01-01T03:00:00 or 2027-01-01 in the time zone"
    )]
    Unreadable,
    /// The clocks of the zone jump over it.
    #[error("the clocks of {zone} skip this time; write it with its offset, as in {after}")]
    Skipped {
        /// The zone.
        zone: Tz,
        /// The first time after the jump.
        after: String,
    },
    /// The clocks of the zone show it twice.
    #[error("the clocks of {zone} show this time twice; write {first} or {second}")]
    Doubled {
        /// The zone.
        zone: Tz,
        /// The first time, with its offset.
        first: String,
        /// The second.
        second: String,
    },
    /// Beyond the calendar.
    #[error("too far away; write a year from 0001 to 9998")]
    TooFar,
}

impl Moment {
    /// Reads a moment; a space may stand in the place of the `T`, and the seconds may be left out.
    ///
    /// # Errors
    /// [`InvalidMoment::Unreadable`].
    pub fn parse(text: &str) -> Result<Self, InvalidMoment> {
        Self::read(text).ok_or(InvalidMoment::Unreadable)
    }

    fn read(text: &str) -> Option<Self> {
        // chrono would take signs, single digits and spaces.
        let digits = text.as_bytes().get(..10)?.iter().enumerate();
        let is_date = digits.into_iter().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        let (date, time) = text.split_at_checked(10).filter(|_| is_date)?;
        if time.is_empty() {
            return date.parse().ok().map(Self::Day);
        }
        let clock = time.strip_prefix(['T', 't', ' '])?;
        let whole = match clock.as_bytes().get(5) {
            Some(b':') => format!("{date}T{clock}"),
            _ => format!("{date}T{}:00{}", clock.get(..5)?, clock.get(5..)?),
        };
        let local = || NaiveDateTime::parse_from_str(&whole, "%Y-%m-%dT%H:%M:%S%.f").ok().map(Self::Local);
        DateTime::parse_from_rfc3339(&whole).ok().map(|at| Self::Instant(at.to_utc())).or_else(local)
    }

    /// The instant, by the clocks of a zone; a day's is its first.
    ///
    /// # Errors
    /// [`InvalidMoment`] for a time that the zone skips or has twice.
    pub fn start_in(self, zone: Tz) -> Result<DateTime<Utc>, InvalidMoment> {
        match self {
            Self::Instant(at) => Ok(at),
            Self::Local(local) => instant_of(local, zone),
            Self::Day(day) => start_of(day, zone).ok_or(InvalidMoment::TooFar),
        }
    }

    /// The instant at which a time that lasts *through* this moment ends: a day counts whole.
    ///
    /// # Errors
    /// As [`start_in`](Self::start_in).
    pub fn end_in(self, zone: Tz) -> Result<DateTime<Utc>, InvalidMoment> {
        match self {
            Self::Day(day) => day.succ_opt().and_then(|next| start_of(next, zone)).ok_or(InvalidMoment::TooFar),
            _ => self.start_in(zone),
        }
    }
}

/// Local times of other years may not even be computed with.
fn is_near(day: NaiveDate) -> bool {
    (1..=9_998).contains(&day.year())
}

fn instant_of(local: NaiveDateTime, zone: Tz) -> Result<DateTime<Utc>, InvalidMoment> {
    if !is_near(local.date()) {
        return Err(InvalidMoment::TooFar);
    }
    let shown = |at: &DateTime<Tz>| at.to_rfc3339_opts(SecondsFormat::AutoSi, false);
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) => Ok(at.to_utc()),
        LocalResult::Ambiguous(first, second) => {
            Err(InvalidMoment::Doubled { zone, first: shown(&first), second: shown(&second) })
        }
        LocalResult::None => {
            let after = gap_end(local, zone).map_or_else(|| "2027-01-01T03:00:00+01:00".to_owned(), |at| shown(&at));
            Err(InvalidMoment::Skipped { zone, after })
        }
    }
}

/// The first instant that shows this day; where the zone leaves it out, the one after it.
fn start_of(day: NaiveDate, zone: Tz) -> Option<DateTime<Utc>> {
    let midnight = day.and_time(NaiveTime::MIN);
    let start = match zone.from_local_datetime(&midnight) {
        _ if !is_near(day) => return None,
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at,
        LocalResult::None => gap_end(midnight, zone)?,
    };
    Some(start.to_utc())
}

fn gap_end(local: NaiveDateTime, zone: Tz) -> Option<DateTime<Tz>> {
    GapInfo::new(&local, &zone)?.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(text: &str, zone: Tz) -> Result<String, InvalidMoment> {
        Moment::parse(text)?.start_in(zone).map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }

    fn end(text: &str, zone: Tz) -> Result<String, InvalidMoment> {
        Moment::parse(text)?.end_in(zone).map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }

    #[test]
    fn an_instant_keeps_its_offset_and_a_local_time_takes_the_zone_s() {
        for text in [
            "2027-01-01T03:00:00+01:00",
            "2027-01-01 03:00:00+01:00",
            "2027-01-01T03:00+01:00",
            "2027-01-01T02:00Z",
            "2027-01-01t02:00:00z",
        ] {
            assert_eq!(start(text, Tz::Asia__Tokyo).as_deref(), Ok("2027-01-01T02:00:00Z"), "{text}");
        }
        for text in ["2027-01-01T03:00:00", "2027-01-01 03:00"] {
            assert_eq!(start(text, Tz::Asia__Tokyo).as_deref(), Ok("2026-12-31T18:00:00Z"), "{text}");
        }
        assert_eq!(start("2027-01-01T03:00:00.5", Tz::UTC).as_deref(), Ok("2027-01-01T03:00:00.500Z"));
    }

    #[test]
    fn a_day_lasts_from_its_first_instant_to_the_next_day_s() {
        assert_eq!(start("2027-01-01", Tz::Europe__Berlin).as_deref(), Ok("2026-12-31T23:00:00Z"));
        assert_eq!(end("2027-01-01", Tz::Europe__Berlin).as_deref(), Ok("2027-01-01T23:00:00Z"));
        assert_eq!(end("2027-01-01T12:00", Tz::Europe__Berlin).as_deref(), Ok("2027-01-01T11:00:00Z"));
        // Midnight is skipped in Santiago, comes twice in Havana, and Apia has no 30 December at all.
        assert_eq!(start("2026-09-06", Tz::America__Santiago).as_deref(), Ok("2026-09-06T04:00:00Z"));
        assert_eq!(end("2026-09-05", Tz::America__Santiago).as_deref(), Ok("2026-09-06T04:00:00Z"));
        assert_eq!(start("2026-11-01", Tz::America__Havana).as_deref(), Ok("2026-11-01T04:00:00Z"));
        assert_eq!(start("2011-12-30", Tz::Pacific__Apia), start("2011-12-31", Tz::Pacific__Apia));
    }

    #[test]
    fn a_time_that_the_clocks_skip_or_show_twice_is_refused_with_what_to_write() {
        assert_eq!(
            start("2027-03-28T02:30", Tz::Europe__Berlin).map_err(|error| error.to_string()),
            Err(
                "the clocks of Europe/Berlin skip this time; write it with its offset, as in 2027-03-28T03:00:00+02:00"
                    .to_owned()
            )
        );
        assert_eq!(
            end("2026-10-25 02:30:00", Tz::Europe__Berlin).map_err(|error| error.to_string()),
            Err("the clocks of Europe/Berlin show this time twice; write 2026-10-25T02:30:00+02:00 \
                 or 2026-10-25T02:30:00+01:00"
                .to_owned())
        );
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in [
            "",
            "24h",
            "tomorrow",
            "2027",
            "2027-1-1",
            "2027-13-01",
            "2027-02-29",
            "+2027-01-01",
            "2027-01-01T",
            "2027-01-01T3:00",
            "2027-01-01T03",
            "2027-01-01T25:00",
            "2027-01-01T03:00:00 +01:00",
            "2027-01-01T03:00:00+0100",
            "2027-01-01 03:00 CET",
            "03:00:00",
            "2027-01-01T03:00ü",
            "ü27-01-01T03:00",
        ] {
            assert_eq!(Moment::parse(text), Err(InvalidMoment::Unreadable), "{text}");
        }
    }

    #[test]
    fn no_year_brings_more_than_an_answer() {
        for zone in [Tz::UTC, Tz::Pacific__Kiritimati, Tz::Pacific__Niue] {
            for text in ["0000-01-01", "0000-01-01T00:00", "9999-12-31", "9999-12-31T23:59:59"] {
                assert_eq!(start(text, zone), Err(InvalidMoment::TooFar), "{text}");
                assert_eq!(end(text, zone), Err(InvalidMoment::TooFar), "{text}");
            }
            for text in ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01", "9998-12-31T00:00"] {
                assert!(start(text, zone).is_ok(), "{text}");
            }
        }
    }
}

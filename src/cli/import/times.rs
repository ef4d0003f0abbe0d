//! The five fields of a line together: when Debian's cron would run it, and when it is meant to run.

use chrono::{Datelike, NaiveDate};

use super::field::{self, Bits, Debian};

/// When an entry is due, by the local clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Times {
    minute: Bits,
    hour: Bits,
    day: Bits,
    month: Bits,
    weekday: Bits,
    /// Neither day field starts with `*`: one of them is enough.
    either_day: bool,
    /// Minute or hour starts with `*`: the entry follows the clock where it jumps.
    pub wildcard: bool,
}

/// What a local clock shows, a bit in each field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    minute: Bits,
    hour: Bits,
    date: ShownDate,
}

/// The date of a local clock, a bit in each field.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShownDate {
    day: Bits,
    month: Bits,
    weekday: Bits,
}

impl ShownDate {
    /// What the clock shows all day.
    pub(super) fn on(date: NaiveDate) -> Self {
        Self { day: 1 << date.day(), month: 1 << date.month(), weekday: 1 << date.weekday().num_days_from_sunday() }
    }

    /// What it shows at a minute of the day, of 1,440.
    pub(super) fn at(self, minute: u32) -> Shown {
        Shown { minute: 1 << (minute % 60), hour: 1 << (minute / 60), date: self }
    }
}

impl Times {
    /// Whether the entry is due when a clock shows this.
    pub(super) fn are_due(&self, shown: &Shown) -> bool {
        self.minute & shown.minute != 0 && self.hour & shown.hour != 0 && self.fall_on(shown.date)
    }

    /// Whether the entry is due at all on such a date.
    pub(super) fn fall_on(&self, date: ShownDate) -> bool {
        let (day, weekday) = (self.day & date.day != 0, self.weekday & date.weekday != 0);
        self.month & date.month != 0 && if self.either_day { day || weekday } else { day && weekday }
    }
}

/// The times of an entry as they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// For the key `schedule`.
    pub text: String,
    /// What was typed.
    pub typed: String,
    /// When it is meant to run.
    pub meant: Times,
    /// When Debian's cron runs it; `None` if it refuses the line.
    pub debian: Option<Times>,
}

/// What stands in the place of five fields.
pub(super) enum Shorthand {
    /// The same as these fields.
    Fields([&'static str; 5]),
    /// `@reboot`.
    Reboot,
}

/// Reads a word that starts with `@`, in any case.
///
/// # Errors
/// The remedy for a word that no cron knows, or not all do.
pub(super) fn shorthand(word: &str) -> Result<Shorthand, String> {
    let fields = match word.to_ascii_lowercase().as_str() {
        "@reboot" => return Ok(Shorthand::Reboot),
        "@hourly" => ["0", "*", "*", "*", "*"],
        "@daily" | "@midnight" => ["0", "0", "*", "*", "*"],
        "@weekly" => ["0", "0", "*", "*", "0"],
        "@monthly" => ["0", "0", "1", "*", "*"],
        "@yearly" | "@annually" => ["0", "0", "1", "1", "*"],
        "@every" => return Err(format!("{word:?} is no crontab's; write e.g. */5 * * * *")),
        "@every_minute" => return Err(format!("{word:?} is known to BSD only; write * * * * *")),
        _ => {
            let known = "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and @reboot";
            return Err(format!("{word:?} is no shorthand; there are {known}"));
        }
    };
    Ok(Shorthand::Fields(fields))
}

impl Read {
    /// Reads five fields.
    ///
    /// # Errors
    /// What is wrong with the first that can't be read.
    pub(super) fn fields(tokens: [&str; 5]) -> Result<Self, String> {
        let mut values = Vec::with_capacity(tokens.len());
        for (number, token) in tokens.iter().enumerate() {
            values.push(field::read(number, token)?);
        }
        let starred = |number: usize| values[number].starred;
        let times = |bits: [Bits; 5]| Times {
            minute: bits[0],
            hour: bits[1],
            day: bits[2],
            month: bits[3],
            weekday: bits[4],
            either_day: !starred(2) && !starred(4),
            wildcard: starred(0) || starred(1),
        };
        let debian = [0, 1, 2, 3, 4].map(|number: usize| values[number].debian);
        let read: Vec<Bits> = debian
            .iter()
            .filter_map(|debian| match debian {
                Debian::Reads(bits) => Some(*bits),
                Debian::Refuses => None,
            })
            .collect();
        let text: Vec<&str> = values.iter().map(|values| values.text.as_str()).collect();
        Ok(Self {
            text: text.join(" "),
            typed: tokens.join(" "),
            meant: times([0, 1, 2, 3, 4].map(|number: usize| values[number].meant)),
            debian: <[Bits; 5]>::try_from(read).ok().map(times),
        })
    }

    /// Reads a shorthand that stands for fields; Debian's cron knows it in lower case only.
    ///
    /// # Errors
    /// As [`fields`](Self::fields): none, for the fields of shorthands are right.
    pub(super) fn shorthand(word: &str, fields: [&str; 5]) -> Result<Self, String> {
        let read = Self::fields(fields)?;
        let lower = word.to_ascii_lowercase();
        let debian = read.debian.filter(|_| lower == word);
        Ok(Self { text: lower, typed: word.to_owned(), debian, ..read })
    }

    /// The times that the old cron goes by: Debian's reading, or, where that refuses the line, the
    /// meaning, which another cron may have taken.
    pub(super) fn old(&self) -> &Times {
        self.debian.as_ref().unwrap_or(&self.meant)
    }

    /// Whether Debian's cron reads other times than those that are meant.
    pub(super) fn is_misread(&self) -> bool {
        *self.old() != self.meant
    }
}

#[cfg(test)]
mod tests {
    use chrono::{NaiveDateTime, Timelike};

    use super::*;

    fn read(line: &str) -> Read {
        let tokens: Vec<&str> = line.split(' ').collect();
        Read::fields(tokens.try_into().unwrap()).unwrap()
    }

    fn is_due(times: &Times, local: &str) -> bool {
        let local: NaiveDateTime = local.parse().unwrap();
        times.are_due(&ShownDate::on(local.date()).at(local.hour() * 60 + local.minute()))
    }

    #[test]
    fn two_restricted_day_fields_mean_either_unless_one_starts_with_a_star() {
        // 2026-12-13 is a Sunday, 2026-12-18 a Friday.
        let either = read("0 0 13 * FRI").meant;
        assert!(is_due(&either, "2026-12-13T00:00:00") && is_due(&either, "2026-12-18T00:00:00"));
        for both in ["0 0 */13 * FRI", "0 0 13 * */5"] {
            let times = read(both).meant;
            assert!(!is_due(&times, "2026-12-13T00:01:00"), "{both}");
        }
        assert!(!is_due(&read("0 0 */13 * FRI").meant, "2026-12-18T00:00:00"));
        assert!(is_due(&read("0 0 13 * ?").meant, "2026-12-13T00:00:00"));
    }

    #[test]
    fn an_entry_is_wild_by_the_first_character_of_minute_or_hour() {
        for (line, wildcard) in [("*/5 3 * * *", true), ("5 *,3 * * *", true), ("0-59 3 * * *", false)] {
            assert_eq!(read(line).meant.wildcard, wildcard, "{line}");
        }
    }

    #[test]
    fn shorthands_are_read_in_any_case_and_debians_cron_refuses_capitals() {
        let Ok(Shorthand::Fields(fields)) = shorthand("@Daily") else { panic!("it is known") };
        let read = Read::shorthand("@Daily", fields).unwrap();
        assert_eq!((read.text.as_str(), read.debian.is_none()), ("@daily", true));
        assert!(matches!(shorthand("@REBOOT"), Ok(Shorthand::Reboot)));
        for wrong in ["@every", "@fortnightly", "@"] {
            assert!(shorthand(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_debians_cron_misreads_is_known_as_such() {
        assert!(read("0 22-2 * * *").is_misread());
        assert!(!read("5/15 * * * *").is_misread());
        assert!(!read("0 22-23,0-2 * * *").is_misread());
    }
}

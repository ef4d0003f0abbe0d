use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};

use crate::clock::human;

/// An instant that was typed: RFC 3339, or a date, which is its midnight in UTC.
///
/// # Errors
/// A sentence that says what may be written.
pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    read(text).ok_or_else(|| "write an instant like 2026-12-02T08:00:00Z, or a date like 2026-12-02".to_owned())
}

/// The same, or how long ago (`24h`).
///
/// # Errors
/// A sentence that says what may be written.
pub(super) fn since(text: &str) -> Result<DateTime<Utc>, String> {
    let ago = || {
        let ago = humantime::parse_duration(text).ok()?;
        Utc::now().checked_sub_signed(TimeDelta::from_std(ago).ok()?)
    };
    read(text).or_else(ago).ok_or_else(|| {
        "write an instant like 2026-12-02T08:00:00Z, a date like 2026-12-02, or how long ago, like 24h".to_owned()
    })
}

/// A space in the place of the T too, as tables show instants.
fn read(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(date) = text.parse::<NaiveDate>() {
        return Some(date.and_time(NaiveTime::MIN).and_utc());
    }
    DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)).ok().map(|at| at.to_utc())
}

/// RFC 3339 in UTC, for programs.
pub(super) fn json(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// In UTC, for people.
pub(super) fn people(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// How far an instant lies from now.
pub(super) fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let text = human((at - now).abs().to_std().unwrap_or_default());
    if at > now { format!("in {text}") } else { format!("{text} ago") }
}

/// How long ago an instant was; one that is to come says so.
pub(super) fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    if at > now { relative(at, now) } else { human((now - at).to_std().unwrap_or_default()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_may_be_typed_as_it_is_shown_or_as_a_date() {
        let midnight = instant("2026-12-02").unwrap();
        assert_eq!(json(midnight), "2026-12-02T00:00:00Z");
        assert_eq!(instant(&people(midnight)), Ok(midnight));
        assert_eq!(instant("2026-12-02T01:00:00+01:00"), Ok(midnight));
        for wrong in ["yesterday", "24h", "2026-13-02", "2026-12-02T08:00"] {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn since_takes_how_long_ago_too() {
        assert!(since("24h").is_ok_and(|at| at < Utc::now()));
        assert_eq!(since("2026-12-02"), instant("2026-12-02"));
        assert!(since("yesterday").is_err());
    }
}

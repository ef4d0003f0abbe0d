use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::clock::human;
use crate::job::Moment;

/// A moment that was typed; where it has no offset, its zone is known later.
///
/// # Errors
/// A sentence that says what may be written.
pub(super) fn moment(text: &str) -> Result<Moment, String> {
    Moment::parse(text).map_err(|_| {
        "write an instant like 2026-12-02T08:00:00Z, or a time or a date like 2026-12-02T08:00 or 2026-12-02".to_owned()
    })
}

/// An instant that was typed, in UTC where it has no offset; or how long ago (`24h`).
///
/// # Errors
/// A sentence that says what may be written.
pub(super) fn since(text: &str) -> Result<DateTime<Utc>, String> {
    let instant = || Moment::parse(text).ok()?.start_in(Tz::UTC).ok();
    let ago = || {
        let ago = humantime::parse_duration(text).ok()?;
        Utc::now().checked_sub_signed(TimeDelta::from_std(ago).ok()?)
    };
    instant().or_else(ago).ok_or_else(|| {
        "write an instant like 2026-12-02T08:00:00Z, a date like 2026-12-02, or how long ago, like 24h".to_owned()
    })
}

/// RFC 3339 in UTC, for programs.
pub(super) fn json(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// In UTC, for people.
pub(super) fn people(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// By the clocks of a zone, for people.
pub(super) fn local(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%a %Y-%m-%d %H:%M:%S %:z").to_string()
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
    fn a_moment_may_be_typed_as_it_is_shown_or_as_a_date() {
        let midnight = since("2026-12-02").unwrap();
        assert_eq!(json(midnight), "2026-12-02T00:00:00Z");
        assert_eq!(moment(&people(midnight)), Ok(Moment::Instant(midnight)));
        assert_eq!(since("2026-12-02T01:00:00+01:00"), Ok(midnight));
        for wrong in ["yesterday", "24h", "2026-13-02", "2026-12-02T8"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn since_takes_how_long_ago_too() {
        assert!(since("24h").is_ok_and(|at| at < Utc::now()));
        assert!(since("yesterday").is_err());
    }
}

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::clock::human;

/// An instant that was typed: RFC 3339, or how long ago (`24h`).
///
/// # Errors
/// A sentence that says what may be written.
pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.to_utc());
    }
    humantime::parse_duration(text)
        .ok()
        .and_then(|ago| TimeDelta::from_std(ago).ok())
        .and_then(|ago| Utc::now().checked_sub_signed(ago))
        .ok_or_else(|| "write an instant like 2026-12-02T08:00:00Z, or how long ago, like 24h".to_owned())
}

/// RFC 3339 in UTC, for programs.
pub(super) fn json(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Absolute and relative, for people.
pub(super) fn people(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("{} ({})", at.format("%Y-%m-%d %H:%M:%SZ"), relative(at, now))
}

/// How far an instant lies from now.
pub(super) fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let away = at - now;
    let text = human(away.abs().to_std().unwrap_or_default());
    if away > TimeDelta::zero() { format!("in {text}") } else { format!("{text} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_may_be_typed_either_way() {
        assert!(instant("2026-12-02T08:00:00+01:00").is_ok());
        assert!(instant("24h").is_ok_and(|at| at < Utc::now()));
        assert!(instant("yesterday").is_err());
    }
}

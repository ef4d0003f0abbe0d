use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

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
    let text = short(away.abs().to_std().unwrap_or_default());
    if away > TimeDelta::zero() { format!("in {text}") } else { format!("{text} ago") }
}

/// A duration in at most two units.
pub(super) fn short(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    if millis < 10_000 {
        return format!("{}.{}s", millis / 1_000, millis % 1_000 / 100);
    }
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {:02}s", seconds % 60),
        (0, ..) => format!("{hours}h {minutes:02}m"),
        _ => format!("{days}d {hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let short = |ms| short(Duration::from_millis(ms));
        assert_eq!(short(999), "999ms");
        assert_eq!(short(1_250), "1.2s");
        assert_eq!(short(59_999), "59s");
        assert_eq!(short(61_000), "1m 01s");
        assert_eq!(short(3_660_000), "1h 01m");
        assert_eq!(short(90_000_000), "1d 01h");
    }

    #[test]
    fn an_instant_may_be_typed_either_way() {
        assert!(instant("2026-12-02T08:00:00+01:00").is_ok());
        assert!(instant("24h").is_ok_and(|at| at < Utc::now()));
        assert!(instant("yesterday").is_err());
    }
}

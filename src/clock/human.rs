use std::time::Duration;

/// A duration as people read it: one unit with a tenth, or two units; cut off, not rounded.
pub fn human(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    let seconds = duration.as_secs();
    if seconds < 60 {
        let tenth = millis % 1_000 / 100;
        return if tenth == 0 { format!("{seconds}s") } else { format!("{seconds}.{tenth}s") };
    }
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}m {:02}s", seconds % 60),
        (0, _) => format!("{hours}h {minutes:02}m"),
        _ => format!("{days}d {hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let human = |ms| human(Duration::from_millis(ms));
        assert_eq!(human(999), "999ms");
        assert_eq!(human(1_250), "1.2s");
        assert_eq!(human(6_000), "6s");
        assert_eq!(human(59_999), "59.9s");
        assert_eq!(human(61_000), "1m 01s");
        assert_eq!(human(3_660_000), "1h 01m");
        assert_eq!(human(90_000_000), "1d 01h");
    }
}

use std::time::Duration;

use humantime::format_duration;

/// How long a grant lasts unless it is renewed: more than zero, at most seven days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(Duration);

/// Why a duration can't be a TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTtl {
    /// Below a millisecond, the resolution of the tables.
    #[error("a TTL is at least 1ms")]
    TooShort,
    /// More than [`Ttl::MAX`].
    #[error("a TTL is at most 7days, this one is {}", format_duration(*.0))]
    TooLong(Duration),
}

impl Ttl {
    /// The longest TTL.
    pub const MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// Checks a duration; parts below a millisecond are cut off.
    ///
    /// # Errors
    /// [`InvalidTtl`] when it is too short or too long.
    pub fn new(ttl: Duration) -> Result<Self, InvalidTtl> {
        if ttl > Self::MAX {
            return Err(InvalidTtl::TooLong(ttl));
        }
        let millis = u64::try_from(ttl.as_millis()).expect("seven days of milliseconds fit");
        if millis == 0 {
            return Err(InvalidTtl::TooShort);
        }
        Ok(Self(Duration::from_millis(millis)))
    }

    /// The duration.
    pub fn get(self) -> Duration {
        self.0
    }

    /// The duration in milliseconds, as the tables have it.
    pub fn as_millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).expect("seven days of milliseconds fit")
    }
}

/// The timing of one lease, with the rule that keeps a job from outliving its lock.
///
/// A job is told to stop `slack + kill_grace` before its lock can be taken, and killed `slack`
/// before. The rule leaves room for two failed renewals and for the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    ttl: Ttl,
    heartbeat: Duration,
    kill_grace: Duration,
}

/// Why three durations can't guard a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTiming {
    /// The TTL itself is out of range.
    #[error(transparent)]
    Ttl(#[from] InvalidTtl),
    /// A heartbeat that would never rest.
    #[error("heartbeat = {:?} is too short: at least 10ms", format_duration(*.0).to_string())]
    HeartbeatTooShort(Duration),
    /// The rule is broken.
    #[error(
        "3 * heartbeat ({}) + kill_grace ({}) + ttl / 12 ({}) = {} is more than ttl ({}): \
         raise ttl to {} or more, or shorten heartbeat or kill_grace",
        format_duration(*.heartbeat), format_duration(*.kill_grace), format_duration(ttl.get() / 12),
        format_duration(*.heartbeat * 3 + *.kill_grace + ttl.get() / 12), format_duration(ttl.get()),
        format_duration(least_ttl(*.heartbeat, *.kill_grace))
    )]
    NoRoom {
        /// The TTL asked for.
        ttl: Ttl,
        /// The time between renewals asked for.
        heartbeat: Duration,
        /// The time between TERM and KILL asked for.
        kill_grace: Duration,
    },
}

/// The shortest whole number of seconds that the rule allows as TTL.
fn least_ttl(heartbeat: Duration, kill_grace: Duration) -> Duration {
    let least = (heartbeat * 3 + kill_grace) * 12 / 11;
    Duration::from_secs(least.as_secs() + u64::from(least.subsec_nanos() > 0))
}

impl LeaseTiming {
    /// Checks the rule `3 * heartbeat + kill_grace + ttl / 12 <= ttl`.
    ///
    /// # Errors
    /// [`InvalidTiming`] names the numbers and the remedy.
    pub fn new(ttl: Duration, heartbeat: Duration, kill_grace: Duration) -> Result<Self, InvalidTiming> {
        let ttl = Ttl::new(ttl)?;
        if heartbeat < Duration::from_millis(10) {
            return Err(InvalidTiming::HeartbeatTooShort(heartbeat));
        }
        let timing = Self { ttl, heartbeat, kill_grace };
        let needed = heartbeat.checked_mul(3).and_then(|three| three.checked_add(kill_grace));
        if needed.is_none_or(|needed| needed + timing.slack() > ttl.get()) {
            let (heartbeat, kill_grace) = (heartbeat.min(Ttl::MAX), kill_grace.min(Ttl::MAX));
            return Err(InvalidTiming::NoRoom { ttl, heartbeat, kill_grace });
        }
        Ok(timing)
    }

    /// How long a grant lasts.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// The time between two renewals.
    pub fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// The time between TERM and KILL.
    pub fn kill_grace(&self) -> Duration {
        self.kill_grace
    }

    /// What is kept back from every TTL for clock rates, scheduling delays and the kill itself.
    pub fn slack(&self) -> Duration {
        self.ttl.get() / 12
    }

    /// How long one database call of the heartbeat may take, the wait for a connection included.
    /// With the longest pause after it, a third of the heartbeat.
    pub fn call_timeout(&self) -> Duration {
        self.heartbeat / 4
    }

    /// The longest pause after a renewal that brought no answer.
    pub fn retry_pause(&self) -> Duration {
        self.heartbeat / 12
    }

    /// The longest outage of the database that stops no job: a renewal may be one heartbeat old
    /// when it begins, and one call may hang, and be followed by a pause, when it ends.
    pub fn survived_outage(&self) -> Duration {
        let one_try = self.call_timeout() + self.retry_pause();
        (self.ttl.get() - self.slack() - self.kill_grace - self.heartbeat).saturating_sub(one_try)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn both_sets_of_defaults_meet_the_rule() {
        let short = LeaseTiming::new(secs(60), secs(15), secs(10)).expect("60/15/10 meets it exactly");
        assert_eq!(short.slack(), secs(5));
        assert_eq!(short.survived_outage(), secs(25));
        let long = LeaseTiming::new(secs(180), secs(30), secs(15)).expect("180/30/15 meets it");
        assert_eq!(long.survived_outage(), secs(110));
    }

    #[test]
    fn a_refusal_names_the_numbers_and_a_ttl_that_would_do() {
        let refused = LeaseTiming::new(secs(30), secs(15), secs(10)).expect_err("no room");
        let text = refused.to_string();
        for part in ["(15s)", "(10s)", "2s 500ms", "57s 500ms", "raise ttl to 1m"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        assert!(LeaseTiming::new(secs(60), secs(15), secs(10)).is_ok());
    }

    #[test]
    fn a_ttl_out_of_range_is_refused() {
        assert_eq!(Ttl::new(Duration::ZERO), Err(InvalidTtl::TooShort));
        assert_eq!(Ttl::new(secs(700_000)), Err(InvalidTtl::TooLong(secs(700_000))));
        assert!(LeaseTiming::new(secs(60), Duration::MAX, secs(1)).is_err());
    }
}

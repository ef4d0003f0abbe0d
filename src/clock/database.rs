use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::BootInstant;

/// How far a reading may lie from the extrapolation before the database's clock counts as stepped.
const TOLERANCE: Duration = Duration::from_secs(1);

/// From which round trip on a reading says too little.
const VAGUE: Duration = Duration::from_secs(1);

/// One reading of the database's clock.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Before the request was sent.
    pub sent: BootInstant,
    /// When the answer was there.
    pub received: BootInstant,
    /// What the database said, somewhere between the two.
    pub at: DateTime<Utc>,
}

/// The database's now as a host extrapolates it, to be read at the moment of use.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    at: DateTime<Utc>,
    as_of: BootInstant,
}

impl Expected {
    /// An expectation that is true now.
    pub fn new(at: DateTime<Utc>) -> Self {
        Self { at, as_of: BootInstant::now() }
    }

    /// What it comes to at an instant of this host.
    pub fn at(self, boot: BootInstant) -> DateTime<Utc> {
        extrapolate((self.as_of, self.at), boot)
    }
}

/// What a new sample says about the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It goes on as extrapolated.
    Steady,
    /// It stepped by this many milliseconds (positive: forwards); take-overs of locks that nobody
    /// released are held back for one longest TTL.
    Stepped(i64),
}

/// The database's clock as this host knows it: the last sample and the time since.
///
/// Triggers fire by it, so that hosts whose wall clocks differ agree. Before any sample it is the
/// host's wall clock. Shared by the tick loop (reads), the claims (read) and every call that
/// brings a sample home (writes).
#[derive(Debug, Default)]
pub struct DatabaseClock {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The newest sample: what triggers fire by.
    fire: Option<(BootInstant, DateTime<Utc>)>,
    /// What a take-over is judged by: left behind on purpose while a step is not believed yet.
    base: Option<(BootInstant, DateTime<Utc>)>,
    /// Set by a step; past it the newest sample becomes the base.
    doubt_until: Option<BootInstant>,
}

impl DatabaseClock {
    /// A clock without a sample.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a sample in. `longest_ttl` is how long a step is not believed for take-overs. One whose
    /// answer took longer than a second says too little, unless there is no other.
    pub fn sample(&self, sample: Sample, longest_ttl: Duration) -> Trust {
        let round_trip = sample.received.since(sample.sent);
        let middle = sample.sent + round_trip / 2;
        let mut state = self.lock();
        if round_trip > VAGUE {
            state.fire.get_or_insert((middle, sample.at));
            return Trust::Steady;
        }
        let last = state.fire.replace((middle, sample.at));
        let goes_on = last.is_none_or(|last| is_within(sample.at - extrapolate(last, middle), round_trip));
        if goes_on && state.doubt_until.is_some_and(|until| until <= sample.received) {
            state.doubt_until = None;
            state.base = None;
        }
        let Some(base) = state.base else {
            state.base = Some((middle, sample.at));
            return Trust::Steady;
        };
        let off = sample.at - extrapolate(base, middle);
        if is_within(off, round_trip) {
            state.base = Some((middle, sample.at));
            state.doubt_until = None;
            return Trust::Steady;
        }
        if goes_on && state.doubt_until.is_some() {
            return Trust::Steady;
        }
        let stepped = last.map_or(off, |last| sample.at - extrapolate(last, middle));
        // A second step makes the wait begin anew.
        state.doubt_until = Some(sample.received + longest_ttl);
        Trust::Stepped(stepped.num_milliseconds())
    }

    /// Whether the clock has stepped, and is not believed yet.
    pub fn is_doubted(&self) -> bool {
        self.lock().doubt_until.is_some()
    }

    /// The database's now, as well as this host can tell; the wall clock before any sample.
    pub fn now(&self) -> DateTime<Utc> {
        let fire = self.lock().fire;
        fire.map_or_else(Utc::now, |base| extrapolate(base, BootInstant::now()))
    }

    /// What a claim sends along for the database to compare its own clock with; `None` before any
    /// sample.
    pub fn expected(&self) -> Option<Expected> {
        let base = self.lock().base;
        base.map(|(as_of, at)| Expected { at, as_of })
    }

    /// This host's wall clock less the database's clock; `None` before any sample.
    pub fn offset(&self) -> Option<TimeDelta> {
        let fire = self.lock().fire;
        fire.map(|base| Utc::now() - extrapolate(base, BootInstant::now()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Every write leaves the state whole, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a reading goes on as extrapolated.
fn is_within(off: TimeDelta, round_trip: Duration) -> bool {
    off.abs().to_std().unwrap_or_default() <= TOLERANCE + round_trip / 2
}

fn extrapolate((boot, at): (BootInstant, DateTime<Utc>), now: BootInstant) -> DateTime<Utc> {
    let forth = TimeDelta::from_std(now.since(boot)).unwrap_or(TimeDelta::MAX);
    let back = TimeDelta::from_std(boot.since(now)).unwrap_or(TimeDelta::MAX);
    at.checked_add_signed(forth - back).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn sample(boot: BootInstant, at: DateTime<Utc>) -> Sample {
        Sample { sent: boot, received: boot, at }
    }

    #[test]
    fn a_wall_clock_that_is_off_does_not_move_the_fire_clock() {
        let clock = DatabaseClock::new();
        let ahead = Utc::now() + TimeDelta::hours(3);
        clock.sample(sample(BootInstant::now(), ahead), TTL);
        let off = clock.now() - ahead;
        assert!(off >= TimeDelta::zero() && off < TimeDelta::seconds(5), "{off}");
        assert!(clock.offset().is_some_and(|off| off < TimeDelta::hours(-2)));
    }

    #[test]
    fn a_step_is_not_believed_for_take_overs_until_one_ttl_has_gone() {
        let clock = DatabaseClock::new();
        let boot = BootInstant::now();
        let at = Utc::now();
        assert_eq!(clock.sample(sample(boot, at), TTL), Trust::Steady);
        let stepped = at + TimeDelta::minutes(10);
        let later = boot + Duration::from_secs(1);
        assert_eq!(clock.sample(sample(later, stepped), TTL), Trust::Stepped(599_000));
        let expected = clock.expected().expect("there was a sample").at(later);
        assert!(expected - at < TimeDelta::minutes(1), "{expected}");
        let past = later + TTL;
        clock.sample(sample(past, stepped + TimeDelta::seconds(60)), TTL);
        let expected = clock.expected().expect("there was a sample").at(past);
        assert!((expected - stepped).abs() < TimeDelta::minutes(2), "{expected}");
    }

    #[test]
    fn a_second_step_makes_the_wait_begin_anew() {
        let clock = DatabaseClock::new();
        let boot = BootInstant::now();
        let at = Utc::now();
        let read = |after: u64, off: i64| {
            let after = Duration::from_secs(after);
            let on = at + TimeDelta::from_std(after).expect("short") + TimeDelta::seconds(off);
            clock.sample(sample(boot + after, on), TTL)
        };
        assert_eq!(read(0, 0), Trust::Steady);
        assert_eq!(read(10, 600), Trust::Stepped(600_000));
        assert_eq!(read(20, 600), Trust::Steady);
        assert_eq!(read(50, 1_200), Trust::Stepped(600_000));
        assert_eq!(read(80, 1_200), Trust::Steady);
        assert!(clock.is_doubted(), "one TTL after the first step is not enough");
        assert_eq!(read(111, 1_200), Trust::Steady);
        assert!(!clock.is_doubted());
    }

    #[test]
    fn a_sample_whose_answer_took_long_is_only_better_than_none() {
        let clock = DatabaseClock::new();
        let sent = BootInstant::now();
        let vague = |at| Sample { sent, received: sent + Duration::from_secs(4), at };
        clock.sample(vague(Utc::now() + TimeDelta::hours(3)), TTL);
        assert!(clock.offset().is_some_and(|off| off < TimeDelta::hours(-2)), "better than this host's own");
        assert!(clock.expected().is_none(), "nothing is judged by it");
        clock.sample(sample(sent, Utc::now()), TTL);
        clock.sample(vague(Utc::now() + TimeDelta::hours(3)), TTL);
        assert!(clock.offset().is_some_and(|off| off.abs() < TimeDelta::minutes(1)));
        assert!(!clock.is_doubted());
    }
}

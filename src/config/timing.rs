use std::time::Duration;

use super::document::{Field, Place, Section, Typed};
use super::problem::Problem;
use crate::lock::{InvalidTiming, LeaseTiming};

/// The three keys of a lease as they were typed, in `[lock]`, in `[defaults]` or in a job.
#[derive(Clone, Debug, Default)]
pub struct TypedTiming {
    ttl: Field<Duration>,
    heartbeat: Field<Duration>,
    kill_grace: Field<Duration>,
}

/// `ttl` where nothing says otherwise: an outage of 110 s stops no job, as a managed failover takes.
const TTL: Duration = Duration::from_secs(180);
const HEARTBEAT: Duration = Duration::from_secs(30);
const KILL_GRACE: Duration = Duration::from_secs(15);

impl TypedTiming {
    /// Reads the three keys.
    pub fn read(section: &mut Section<'_>) -> Self {
        let mut duration = |key| section.field(key, |value| value.duration(Duration::ZERO));
        Self { ttl: duration("ttl"), heartbeat: duration("heartbeat"), kill_grace: duration("kill_grace") }
    }

    /// These keys, and the others' where these are absent.
    pub fn over(&self, others: &Self) -> Self {
        Self {
            ttl: self.ttl.or(&others.ttl),
            heartbeat: self.heartbeat.or(&others.heartbeat),
            kill_grace: self.kill_grace.or(&others.kill_grace),
        }
    }

    /// Whether none of the three is there.
    pub fn is_absent(&self) -> bool {
        self.each().iter().all(|(_, field)| field.is_absent())
    }

    /// Whether there is nothing to judge, since a value of the three was refused by itself.
    pub fn is_refused(&self) -> bool {
        self.each().iter().any(|(_, field)| field.is_refused())
    }

    /// Judges these keys merged over others. The problem stands at one of *these* keys, for the
    /// others were judged where they stand.
    pub fn judge_over(&self, others: &Self) -> Result<LeaseTiming, Box<Problem>> {
        let merged = self.over(others);
        let ttl = merged.ttl.value_or(TTL);
        let heartbeat = merged.heartbeat.value_or(HEARTBEAT);
        let kill_grace = merged.kill_grace.value_or(KILL_GRACE);
        LeaseTiming::new(ttl, heartbeat, kill_grace).map_err(|error| Box::new(self.blame(error, &merged)))
    }

    fn each(&self) -> [(&'static str, &Field<Duration>); 3] {
        [("ttl", &self.ttl), ("heartbeat", &self.heartbeat), ("kill_grace", &self.kill_grace)]
    }

    fn blame(&self, error: InvalidTiming, merged: &Self) -> Problem {
        let culprit = match error {
            InvalidTiming::Ttl(_) => self.ttl.typed(),
            InvalidTiming::HeartbeatTooShort(_) => self.heartbeat.typed(),
            InvalidTiming::NoRoom { .. } => self.each().into_iter().find_map(|(_, field)| field.typed()),
        };
        let anywhere = || merged.each().into_iter().find_map(|(_, field)| field.typed());
        let culprit: &Typed<Duration> =
            culprit.or_else(anywhere).expect("the built-in defaults meet the rule, so one of the three was typed");
        let place = &culprit.place;
        match error {
            InvalidTiming::NoRoom { .. } => {
                let origins = merged.origins(place);
                place.problem_with_remedy_inside(format!("{error} ({origins})")).resting_on_others()
            }
            InvalidTiming::Ttl(_) => place.problem(error.to_string(), "write it like ttl = \"3m\""),
            InvalidTiming::HeartbeatTooShort(_) => {
                place.problem(error.to_string(), "write it like heartbeat = \"30s\"")
            }
        }
    }

    /// Where each of the three comes from, as seen from one of them.
    fn origins(&self, seen_from: &Place) -> String {
        let origin = |(key, field): (&str, &Field<Duration>)| match field.typed() {
            Some(typed) => format!("{key}: {}", typed.place.seen_from(seen_from)),
            None => format!("{key}: default"),
        };
        self.each().map(origin).join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_defaults_meet_the_rule() {
        let timing = TypedTiming::default().judge_over(&TypedTiming::default()).expect("they meet it");
        assert_eq!(timing.survived_outage(), Duration::from_secs(110));
    }
}

use std::collections::BTreeSet;
use std::time::Duration;

use super::document::{Field, Refused, Section, Value};
use super::problem::Problem;
use crate::job::{OnLeaseLost, Retries, SuccessCodes};

/// More would hold a lock for ever.
const MOST_RETRIES: u32 = 1_000;

/// The keys about what becomes of a run, as they were typed.
#[derive(Clone, Debug, Default)]
pub struct TypedOutcome {
    pub success_codes: Field<SuccessCodes>,
    pub retries: Field<u32>,
    pub retry_delay: Field<Duration>,
    pub retry_max_delay: Field<Duration>,
    pub on_lease_lost: Field<OnLeaseLost>,
}

impl TypedOutcome {
    /// Reads the keys.
    pub fn read(section: &mut Section<'_>) -> Self {
        const ON_LEASE_LOST: [(&str, OnLeaseLost); 2] =
            [("kill", OnLeaseLost::Kill), ("continue", OnLeaseLost::Continue)];
        Self {
            success_codes: section.field("success_codes", read_codes),
            retries: section.field("retries", |value| value.whole_number(0..=MOST_RETRIES)),
            retry_delay: section.field("retry_delay", |value| value.duration(Duration::ZERO)),
            retry_max_delay: section.field("retry_max_delay", |value| value.duration(Duration::ZERO)),
            on_lease_lost: section.field("on_lease_lost", |value| value.word(&ON_LEASE_LOST, &[])),
        }
    }

    /// These keys, and the defaults' where these are absent.
    pub fn over(&self, defaults: &Self) -> Self {
        Self {
            success_codes: self.success_codes.or(&defaults.success_codes),
            retries: self.retries.or(&defaults.retries),
            retry_delay: self.retry_delay.or(&defaults.retry_delay),
            retry_max_delay: self.retry_max_delay.or(&defaults.retry_max_delay),
            on_lease_lost: self.on_lease_lost.or(&defaults.on_lease_lost),
        }
    }

    /// What the merged keys say about retries. A delay beyond the longest by default is the longest.
    pub fn retries(&self) -> Retries {
        let usual = Retries::default();
        let delay = self.retry_delay.value_or(usual.delay.min(self.retry_max_delay.value_or(usual.delay)));
        Retries {
            most: self.retries.value_or(usual.most),
            delay,
            longest_delay: self.retry_max_delay.value_or(usual.longest_delay.max(delay)),
        }
    }

    /// What is wrong between a job's own keys and all of them, which are in `keys`.
    pub fn problems(&self, keys: &Self) -> Vec<Problem> {
        const RETRIES: &str = "retries";
        if keys.retries.value_or(0) == 0 && !keys.retries.is_refused() {
            let needy = [
                self.retry_delay.needs("retry_delay", RETRIES),
                self.retry_max_delay.needs("retry_max_delay", RETRIES),
            ];
            return needy.into_iter().flatten().collect();
        }
        self.crossed(keys).into_iter().collect()
    }

    /// A first pause that is longer than the longest one; told at a key of the job, if one of the two is.
    fn crossed(&self, keys: &Self) -> Option<Problem> {
        let (delay, longest) = (keys.retry_delay.typed()?, keys.retry_max_delay.typed()?);
        if delay.value <= longest.value {
            return None;
        }
        let problem = if self.retry_max_delay.is_absent() && !self.retry_delay.is_absent() {
            let wrong = format!("longer than retry_max_delay ({})", longest.place.seen_from(&delay.place));
            delay.place.problem(wrong, "shorten it, or lengthen retry_max_delay")
        } else {
            let wrong = format!("shorter than retry_delay ({})", delay.place.seen_from(&longest.place));
            longest.place.problem(wrong, "lengthen it, or shorten retry_delay")
        };
        Some(problem.resting_on_others())
    }
}

fn read_codes(value: &Value<'_>) -> Result<SuccessCodes, Refused> {
    let codes: BTreeSet<u8> = value.whole_numbers(0..=u8::MAX)?.into_iter().collect();
    SuccessCodes::new(codes)
        .ok_or_else(|| value.refuse("an empty list, so no run could succeed", "write success_codes = [0]"))
}

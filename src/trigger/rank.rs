use std::hash::{Hash, Hasher};
use std::time::Duration;

use siphasher::sip::SipHasher13;

use super::Trigger;
use crate::fleet::InstanceId;

/// The longest wait of any rank: a trigger whose first hosts are all dead is late by no more.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// The wait between two ranks while the fleet is small enough for it.
const STEP: Duration = Duration::from_millis(250);

/// This instance's place in the order in which the live ones claim a trigger; 0 claims at once.
///
/// Rendezvous hashing: each instance's score depends on itself and the trigger alone, so a host
/// that comes or goes changes the place of no other pair. All hosts agree as far as they agree
/// about who is alive; where they don't, the row in `runs` decides. `live` need not hold `me`.
pub fn rank(trigger: &Trigger, me: InstanceId, live: &[InstanceId]) -> usize {
    let mine = (score(trigger, me), me);
    live.iter().filter(|other| **other != me && (score(trigger, **other), **other) < mine).count()
}

/// How long the instance of this rank waits before it claims, among `live` instances.
pub fn claim_delay(rank: usize, live: usize) -> Duration {
    let steps = u32::try_from(live.saturating_sub(1).max(1)).unwrap_or(u32::MAX);
    let step = STEP.min(LONGEST_DELAY / steps);
    step.saturating_mul(u32::try_from(rank).unwrap_or(u32::MAX)).min(LONGEST_DELAY)
}

/// SipHash with fixed keys: the same on every host and in every version, unlike std's hasher.
fn score(trigger: &Trigger, instance: InstanceId) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(0x6372_6f6e, 0x006c_6174_6368);
    trigger.job.as_str().hash(&mut hasher);
    trigger.scheduled_at.timestamp_millis().hash(&mut hasher);
    instance.as_uuid().as_bytes().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::job::JobName;

    #[test]
    fn runs_spread_evenly_and_every_rank_is_taken_once() {
        let live: Vec<_> = (0..3).map(|_| InstanceId::generate()).collect();
        let job = JobName::new("backup").expect("a valid name");
        let mut first = [0_u32; 3];
        for second in 0..3_000 {
            let at = DateTime::from_timestamp(1_800_000_000 + second, 0).expect("in range");
            let trigger = Trigger::scheduled(job.clone(), at);
            let ranks: Vec<_> = live.iter().map(|me| rank(&trigger, *me, &live)).collect();
            let mut sorted = ranks.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            first[ranks.iter().position(|rank| *rank == 0).expect("one is first")] += 1;
        }
        assert!(first.iter().all(|n| (850..1_150).contains(n)), "{first:?}");
    }

    #[test]
    fn no_rank_waits_longer_than_a_second() {
        assert_eq!(claim_delay(0, 50), Duration::ZERO);
        assert_eq!(claim_delay(1, 3), STEP);
        assert!(claim_delay(49, 50) <= LONGEST_DELAY);
        assert!(claim_delay(usize::MAX, 50) <= LONGEST_DELAY);
    }
}

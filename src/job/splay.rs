use std::hash::{Hash, Hasher};
use std::time::Duration;

use siphasher::sip::SipHasher13;

use super::JobName;

/// How long after its instant a job starts: a whole number of seconds below `splay`, derived from
/// its name, so that it is the same on all hosts, after every restart and in every version.
pub fn start_delay(job: &JobName, splay: Duration) -> Duration {
    let Some(seconds) = std::num::NonZero::new(splay.as_secs()) else { return Duration::ZERO };
    let mut hasher = SipHasher13::new_with_keys(0x7370_6c61_7900_0000, 0x0000_6372_6f6e);
    job.as_str().hash(&mut hasher);
    Duration::from_secs(hasher.finish() % seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_stable_below_the_splay_and_spread() {
        let splay = Duration::from_secs(600);
        let name = |n: u32| JobName::new(format!("job-{n}")).expect("a name");
        assert_eq!(start_delay(&name(1), splay), Duration::from_secs(87), "never change it");
        assert_eq!(start_delay(&name(1), Duration::ZERO), Duration::ZERO);
        let mut tenths = [0_u32; 10];
        for n in 0..1_000 {
            let delay = start_delay(&name(n), splay);
            assert!(delay < splay);
            tenths[usize::try_from(delay.as_secs() / 60).expect("below ten")] += 1;
        }
        assert!(tenths.iter().all(|tenth| (60..150).contains(tenth)), "{tenths:?}");
    }
}

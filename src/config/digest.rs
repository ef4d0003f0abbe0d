use std::fmt::{self, Write};
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// A short name for what something says: equal on all hosts that say the same.
///
/// It serves to notice a difference, not to resist one that was made on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u64);

/// The keys of the hash. Hosts of different versions compare digests: never change them.
const KEYS: (u64, u64) = (0x6372_6f6e_6c61_7463, 0x685f_6469_6765_7374);

/// Collects what a digest stands for.
#[derive(Debug, Default)]
pub struct Canon(String);

impl Canon {
    /// Adds a named value. Its length stands before it, so that no two lists of values look alike.
    pub fn add(&mut self, name: &str, value: impl fmt::Display) {
        let value = value.to_string();
        writeln!(self.0, "{name} {} {value}", value.len()).expect("a String takes all that is written");
    }

    /// The digest of all that was added, in its order.
    pub fn digest(&self) -> Digest {
        let mut hasher = SipHasher13::new_with_keys(KEYS.0, KEYS.1);
        hasher.write(self.0.as_bytes());
        Digest(hasher.finish())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_stays_the_same_in_every_version() {
        let mut canon = Canon::default();
        canon.add("command", "/usr/bin/true");
        assert_eq!(canon.digest().to_string(), "42e3822a80c6ed0b");
    }

    #[test]
    fn moving_a_character_from_one_value_to_the_next_changes_it() {
        let of = |values: [&str; 2]| {
            let mut canon = Canon::default();
            values.iter().for_each(|value| canon.add("argument", value));
            canon.digest()
        };
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }
}

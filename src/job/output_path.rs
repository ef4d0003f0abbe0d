use std::fmt::Write;
use std::hash::Hasher;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use siphasher::sip::SipHasher13;

use super::{JobName, OutputFile};
use crate::fleet::HostName;

/// The longest text that stands for a name, in bytes: several of them, and the number of a rotated file,
/// fit into the 255 that a file's name may have.
const LONGEST_NAME: usize = 100;

/// What stands for the placeholders of a pattern.
#[derive(Clone, Copy, Debug)]
pub struct OutputNames<'a> {
    /// `{job}`.
    pub job: &'a JobName,
    /// `{host}`.
    pub host: &'a HostName,
    /// `{run}`: the run's id, letters, digits and `-`.
    pub run: &'a str,
    /// `{date}` and `{time}`: the trigger's instant, not that of the attempt.
    pub scheduled_at: DateTime<Utc>,
    /// In which zone they are told.
    pub zone: Tz,
}

impl OutputFile {
    /// The placeholders that a pattern may hold.
    pub const PLACEHOLDERS: [&str; 5] = ["{job}", "{host}", "{run}", "{date}", "{time}"];

    /// The file of a run: `{date}` is `2027-01-31`, `{time}` is `021500`.
    ///
    /// Names can't leave the directory that the pattern says: whatever is not a letter, a digit or one of
    /// `-_.@+=,` is written as `%2F`, and so is a dot at the front. Two names never give the same text,
    /// except that of a name beyond 100 bytes the end is a hash.
    pub fn path(&self, names: &OutputNames<'_>) -> PathBuf {
        let at = names.scheduled_at.with_timezone(&names.zone);
        let values = [
            safe(names.job.as_str()),
            safe(names.host.as_str()),
            safe(names.run),
            at.format("%Y-%m-%d").to_string(),
            at.format("%H%M%S").to_string(),
        ];
        let mut path = String::new();
        let mut left = self.pattern.as_str();
        // From left to right, so that nothing that stands for a name is looked at again.
        while let Some(at) = left.find('{') {
            let (before, from) = left.split_at(at);
            path.push_str(before);
            let found = Self::PLACEHOLDERS.iter().zip(&values).find(|(name, _)| from.starts_with(**name));
            let (name, value) = found.map_or(("{", "{"), |(name, value)| (*name, value.as_str()));
            path.push_str(value);
            left = &from[name.len()..];
        }
        path.push_str(left);
        path.into()
    }
}

/// A name as a part of a file's name.
fn safe(name: &str) -> String {
    let mut safe = String::new();
    for (at, c) in name.char_indices() {
        if c.is_alphanumeric() || "-_@+=,".contains(c) || (c == '.' && at > 0) {
            safe.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                write!(safe, "%{byte:02X}").expect("a String takes everything");
            }
        }
    }
    if safe.len() > LONGEST_NAME {
        let mut hasher = SipHasher13::new_with_keys(0x6f75_7470_7574_0000, 0x0000_7061_7468);
        hasher.write(name.as_bytes());
        safe.truncate(safe.floor_char_boundary(LONGEST_NAME - 17));
        write!(safe, "~{:016x}", hasher.finish()).expect("a String takes everything");
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::OutputKeep;

    fn path_with(pattern: &str, job: &str) -> String {
        let names = OutputNames {
            job: &JobName::new(job).unwrap(),
            host: &HostName::new("web-1.internal").unwrap(),
            run: "0192f0c1-1111-7abc-8def-000000000001",
            scheduled_at: "2027-01-31T23:15:00Z".parse().unwrap(),
            zone: Tz::Europe__Berlin,
        };
        let file = OutputFile { pattern: pattern.to_owned(), keep: OutputKeep::default() };
        file.path(&names).into_os_string().into_string().unwrap()
    }

    #[test]
    fn a_pattern_is_filled_in_with_the_run_and_the_zones_own_date() {
        assert_eq!(
            path_with("/var/log/{host}/{job}-{date}T{time}.{run}.log", "backup"),
            "/var/log/web-1.internal/backup-2027-02-01T001500.0192f0c1-1111-7abc-8def-000000000001.log"
        );
        assert_eq!(path_with("/var/log/{job}{job}", "ä b"), "/var/log/ä%20bä%20b");
        assert_eq!(path_with("/a/{what}/{{date}/{", "x"), "/a/{what}/{2027-02-01/{");
    }

    #[test]
    fn no_name_leaves_the_directory() {
        for (job, part) in [
            ("a/b", "a%2Fb"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
            ("..", "%2E."),
            (".", "%2E"),
            ("a\\b*'\"$;", "a%5Cb%2A%27%22%24%3B"),
            ("{run}%2F", "%7Brun%7D%252F"),
        ] {
            assert_eq!(path_with("/var/log/.{job}", job), format!("/var/log/.{part}"), "{job}");
            assert_eq!(path_with("/var/log/{job}", job), format!("/var/log/{part}"), "{job}");
        }
    }

    #[test]
    fn two_jobs_never_have_one_file_and_long_names_fit() {
        let long = |last: &str| path_with("/{job}", &format!("{}{last}", "x/日".repeat(60)));
        assert_ne!(long("a"), long("b"));
        assert!(long("a").len() <= 1 + LONGEST_NAME, "{}", long("a"));
        assert_eq!(long("a"), long("a"));
        assert_ne!(path_with("/{job}", "a/b"), path_with("/{job}", "a%2Fb"));
        let all = path_with("/{job}-{host}-{run}-{date}-{time}.log", &"j".repeat(190));
        assert!(all.len() < 250, "{all}");
    }
}

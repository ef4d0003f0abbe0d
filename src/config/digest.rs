use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::hash::Hasher;
use std::time::Duration;

use siphasher::sip::SipHasher13;

use crate::job::{
    CatchUp, Command, Job, Limits, Notices, OnCrash, OnLeaseLost, OutputKeep, OutputTo, Overlap, PingUrl, ProcessSetup,
    Retries, RunOn, Stdin, SuccessCodes, Umask,
};

/// A short name for what something says: equal on all hosts that say the same.
///
/// It serves to notice a difference, not to resist one that was made on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u64);

/// The keys of the hash. Hosts of different versions compare digests: never change them.
const KEYS: (u64, u64) = (0x6372_6f6e_6c61_7463, 0x685f_6469_6765_7374);

impl Digest {
    /// The digest of everything that changes what a job does or when: not its description, and not the
    /// default of `catch_up_max_age`, which depends on the moment of reading, so that `max_age` is only
    /// there if it was typed.
    pub fn of_job(job: &Job, max_age: Option<Duration>) -> Self {
        let mut canon = Canon::default();
        canon.add("name", &job.name);
        canon.add("enabled", job.enabled);
        job.schedule.canon().iter().for_each(|(name, value)| canon.add(name, value));
        job.command.argv().iter().for_each(|argument| canon.add("argument", argument));
        canon.add("lock", &job.resource);
        canon.add("ttl_ms", job.timing.ttl().as_millis());
        canon.add("heartbeat_ms", job.timing.heartbeat().as_millis());
        canon.add("kill_grace_ms", job.timing.kill_grace().as_millis());
        match job.overlap {
            Overlap::Skip => canon.add("overlap", "skip"),
            Overlap::Wait(wait_for) => canon.add("wait_for_ms", wait_for.as_millis()),
            Overlap::Replace(wait_for) => canon.add("replace_within_ms", wait_for.as_millis()),
        }
        job.timeout.iter().for_each(|timeout| canon.add("timeout_ms", timeout.as_millis()));
        for (name, value) in &job.env {
            canon.add("variable", name);
            canon.add("value", value);
        }
        job.directory.iter().for_each(|directory| canon.add("directory", directory.display()));
        match job.on_crash {
            OnCrash::Record => canon.add("on_crash", "record"),
            OnCrash::Rerun { max } => canon.add("max_reruns", max),
        }
        canon.add("start_deadline_ms", job.start_deadline.as_millis());
        canon.add_catch_up(job.catch_up);
        max_age.iter().for_each(|age| canon.add("catch_up_max_age_ms", age.as_millis()));
        canon.add_placement(job);
        canon.add_process(&job.process);
        canon.add_outcome(job);
        canon.add_output(&job.output);
        job.notices.iter().for_each(|notices| canon.add_notices(notices));
        canon.digest()
    }
}

/// Collects what a digest stands for.
#[derive(Debug, Default)]
pub struct Canon {
    text: String,
    /// The value that is being added; there are thousands in a schedule.
    value: String,
}

impl Canon {
    /// Adds a named value. Its length stands before it, so that no two lists of values look alike.
    pub fn add(&mut self, name: &str, value: impl fmt::Display) {
        const TAKEN: &str = "a String takes all that is written";
        self.value.clear();
        write!(self.value, "{value}").expect(TAKEN);
        writeln!(self.text, "{name} {} {}", self.value.len(), self.value).expect(TAKEN);
    }

    fn add_catch_up(&mut self, catch_up: CatchUp) {
        match catch_up {
            CatchUp::Latest => self.add("catch_up", "latest"),
            CatchUp::None => self.add("catch_up", "none"),
            CatchUp::All { max_runs, spacing } => {
                self.add("catch_up_max_runs", max_runs);
                self.add("catch_up_spacing_ms", spacing.as_millis());
            }
        }
    }

    /// Only what differs from a plain job, whose digest is as old as the first version.
    fn add_placement(&mut self, job: &Job) {
        if !job.start_delay.is_zero() {
            self.add("start_delay_ms", job.start_delay.as_millis());
        }
        let upstream: BTreeSet<_> = job.after.iter().collect();
        upstream.iter().for_each(|name| self.add("after", name));
        if job.placement.run_on == RunOn::Every {
            self.add("run_on", "every");
        }
        let hosts: BTreeSet<_> = job.placement.hosts.iter().collect();
        hosts.iter().for_each(|host| self.add("host", host));
        job.placement.labels.iter().for_each(|label| self.add("label", label));
    }

    /// As [`add_placement`](Self::add_placement), what differs from the defaults alone.
    fn add_process(&mut self, process: &ProcessSetup) {
        self.add_some("user", process.user.as_ref());
        self.add_some("group", process.group.as_ref());
        self.add_other("umask", process.umask.0, Umask::default().0);
        self.add_some("env_file", process.env_file.as_ref().map(|file| file.display()));
        match &process.stdin {
            Stdin::Empty => {}
            Stdin::Text(text) => self.add("stdin", text),
            Stdin::File(file) => self.add("stdin_file", file.display()),
        }
        self.add_other("nice", process.nice, 0);
        let Limits { memory, cpu_time, open_files, processes } = process.limits;
        self.add_some("limit_memory", memory);
        self.add_some("limit_cpu_time_ms", cpu_time.map(|time| time.as_millis()));
        self.add_some("limit_open_files", open_files);
        self.add_some("limit_processes", processes);
    }

    fn add_outcome(&mut self, job: &Job) {
        if job.success_codes != SuccessCodes::default() {
            job.success_codes.iter().for_each(|code| self.add("success_code", code));
        }
        // The pauses mean nothing to a job that has no retries.
        if job.retries.most > 0 {
            let Retries { most, delay, longest_delay } = job.retries;
            self.add("retries", most);
            self.add("retry_delay_ms", delay.as_millis());
            self.add("retry_max_delay_ms", longest_delay.as_millis());
        }
        if job.on_lease_lost == OnLeaseLost::Continue {
            self.add("on_lease_lost", "continue");
        }
    }

    fn add_output(&mut self, output: &OutputTo) {
        match output {
            OutputTo::Log => {}
            OutputTo::Discard => self.add("output", "discard"),
            OutputTo::File(file) => {
                let OutputKeep { size, files, age } = file.keep;
                self.add("output_file", &file.pattern);
                self.add("output_keep_size", size);
                self.add("output_keep_files", files);
                self.add_some("output_keep_age_ms", age.map(|age| age.as_millis()));
            }
        }
    }

    fn add_notices(&mut self, notices: &Notices) {
        for (name, command) in [("on_failure", &notices.on_failure), ("on_recovery", &notices.on_recovery)] {
            let argv = command.as_ref().map(Command::argv).unwrap_or_default();
            argv.iter().for_each(|argument| self.add(name, argument));
        }
        self.add_other("failures_before_notice", notices.failures_before_notice, 1);
        self.add_some("ping_url", notices.ping_url.as_ref().map(PingUrl::as_secret));
    }

    fn add_some(&mut self, name: &str, value: Option<impl fmt::Display>) {
        value.iter().for_each(|value| self.add(name, value));
    }

    fn add_other<T: fmt::Display + PartialEq>(&mut self, name: &str, value: T, default: T) {
        if value != default {
            self.add(name, value);
        }
    }

    /// The digest of all that was added, in its order.
    pub fn digest(&self) -> Digest {
        let mut hasher = SipHasher13::new_with_keys(KEYS.0, KEYS.1);
        hasher.write(self.text.as_bytes());
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

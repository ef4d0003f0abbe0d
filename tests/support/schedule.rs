//! The text of a configuration, from the few keys that a test is about.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use super::fleet::Fleet;
use super::tables::Database;

/// Fires at every full second.
pub const EVERY_SECOND: &str = "* * * * * *";

/// A configuration that all hosts of a fleet share, but for the host's name.
///
/// Its timing is short, and still long enough for a busy machine: a renewal may take 200 ms, and an
/// outage of two seconds stops no job.
#[derive(Clone, Debug)]
pub struct Schedule {
    url: String,
    ttl: Duration,
    heartbeat: Duration,
    kill_grace: Duration,
    drain: Duration,
    level: &'static str,
    folder: PathBuf,
    jobs: String,
}

impl Schedule {
    /// No job yet. Jobs start in the fleet's folder, so that they end with it, and as whoever runs the tests.
    pub fn new(fleet: &Fleet, database: &Database) -> Self {
        Self {
            url: database.url().to_owned(),
            ttl: Duration::from_secs(4),
            heartbeat: Duration::from_millis(800),
            kill_grace: Duration::from_millis(500),
            drain: Duration::from_secs(2),
            level: "info",
            folder: fleet.folder().to_owned(),
            jobs: String::new(),
        }
    }

    /// Another way to the same database.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = url.into();
        self
    }

    /// `ttl`, `heartbeat` and `kill_grace`, in milliseconds.
    pub fn timing(mut self, ttl: u64, heartbeat: u64, kill_grace: u64) -> Self {
        [self.ttl, self.heartbeat, self.kill_grace] = [ttl, heartbeat, kill_grace].map(Duration::from_millis);
        self
    }

    /// How long jobs may go on after the first SIGTERM.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// What the daemons log, down to the expected.
    pub fn log_all(mut self) -> Self {
        self.level = "debug";
        self
    }

    /// A job that is a line for the shell; `keys` are more lines of its table.
    pub fn job(self, name: &str, schedule: &str, shell: &str, keys: &[&str]) -> Self {
        let shell = format!("shell = {shell:?}");
        let keys: Vec<_> = std::iter::once(shell.as_str()).chain(keys.iter().copied()).collect();
        self.table(name, schedule, &keys)
    }

    /// A job of which `keys` say what it runs, too.
    pub fn table(mut self, name: &str, schedule: &str, keys: &[&str]) -> Self {
        self.jobs.push_str(&format!("\n[jobs.{name}]\nschedule = {schedule:?}\n{}\n", keys.join("\n")));
        self
    }

    /// A job that has no `schedule`; `keys` say when it ticks.
    pub fn bare(mut self, name: &str, shell: &str, keys: &[&str]) -> Self {
        self.jobs.push_str(&format!("\n[jobs.{name}]\nshell = {shell:?}\n{}\n", keys.join("\n")));
        self
    }

    /// The text for one host that has labels.
    pub fn on_labelled(&self, host: &str, labels: &[&str]) -> String {
        self.on(host).replacen("[daemon]\n", &format!("[daemon]\nlabels = {labels:?}\n"), 1)
    }

    /// The TTL of all jobs.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The heartbeat of all jobs.
    pub fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// The time between TERM and KILL of all jobs.
    pub fn kill_grace(&self) -> Duration {
        self.kill_grace
    }

    /// The text for one host.
    pub fn on(&self, host: &str) -> String {
        let ms = |duration: Duration| format!("{}ms", duration.as_millis());
        format!(
            "[database]\nurl = {:?}\n\n[daemon]\nhost = {host:?}\ndrain = {:?}\n\n\
             [lock]\nttl = {:?}\nheartbeat = {:?}\nkill_grace = {:?}\n\n\
             [log]\nlevel = {:?}\n\n[defaults]\nuser = \"@daemon\"\ndirectory = {:?}\n{}",
            self.url,
            ms(self.drain),
            ms(self.ttl),
            ms(self.heartbeat),
            ms(self.kill_grace),
            self.level,
            self.folder,
            self.jobs,
        )
    }
}

/// A schedule with one instant only: the first full second that is at least `ahead` from now.
pub fn once_in(ahead: Duration) -> (String, DateTime<Utc>) {
    let ahead = TimeDelta::from_std(ahead).expect("a short time");
    let at = (Utc::now() + ahead + TimeDelta::seconds(1)).trunc_subsecs(0);
    (at.format("%-S %-M %-H %-d %-m *").to_string(), at)
}

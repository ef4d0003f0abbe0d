//! A file that jobs append to: what really ran, in which order, and under which lock.
//!
//! Each entry is one line, written by one `write` to a file opened with O_APPEND, so the order of
//! the lines is the order of the events on this machine, finer than any clock. A run marks its
//! start, beats while it lives, and marks its end; its children beat for it. An overlap is then
//! plain: after a run's start, a line of another run that was granted the same lock before. A run
//! that is dead just stops to appear.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// What jobs read in: `mark WORD` appends an entry without starting a process. `@LEDGER@` and
/// `@WORDS@` stand for the two files.
const WORDS: &str = r#"
mark() {
    read -r up idle </proc/uptime
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$CRONLATCH_LOCK" "$CRONLATCH_FENCING_TOKEN" \
        "$CRONLATCH_JOB" "$CRONLATCH_SCHEDULED_AT" "$CRONLATCH_ATTEMPT" "$CRONLATCH_RUN_ID" "$CRONLATCH_HOST" \
        "$up" "$$" >>'@LEDGER@'
}
beats() { n=0; while [ $n -lt "$1" ]; do sleep 0.02; mark beat; n=$((n + 1)); done; }
endure() { trap 'mark term' TERM; trap '' HUP INT; while :; do mark beat; sleep 0.02; done; }
offspring() { setsid /bin/sh -c ". '@WORDS@'; endure" & }
"#;

/// The file, and the words for jobs beside it.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
    words: PathBuf,
}

/// What an entry says about its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The job's first act.
    Start,
    /// The job, or one of its children, is alive.
    Beat,
    /// A SIGTERM came.
    Term,
    /// The job's last act.
    End,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it says.
    pub mark: Mark,
    /// `CRONLATCH_LOCK`.
    pub lock: String,
    /// `CRONLATCH_FENCING_TOKEN`.
    pub token: i64,
    /// `CRONLATCH_JOB`.
    pub job: String,
    /// `CRONLATCH_SCHEDULED_AT`.
    pub scheduled_at: String,
    /// `CRONLATCH_ATTEMPT`.
    pub attempt: String,
    /// `CRONLATCH_RUN_ID`.
    pub run: String,
    /// `CRONLATCH_HOST`.
    pub host: String,
    /// Time since boot, suspend included, to the hundredth of a second.
    pub at: Duration,
    /// The process that wrote it.
    pub pid: i32,
}

/// The entries of a ledger, in order.
#[derive(Clone, Debug, Default)]
pub struct Entries(Vec<Entry>);

impl Ledger {
    /// Makes an empty one in `folder` that every user may append to.
    pub fn new(folder: &Path) -> Self {
        let ledger = Self { path: folder.join("ledger"), words: folder.join("ledger.sh") };
        fs::write(&ledger.path, "").expect("the ledger can be made");
        fs::set_permissions(&ledger.path, fs::Permissions::from_mode(0o666)).expect("the ledger is our own");
        let words = WORDS.replace("@LEDGER@", &ledger.path.to_string_lossy());
        fs::write(&ledger.words, words.replace("@WORDS@", &ledger.words.to_string_lossy()))
            .expect("the words can be made");
        ledger
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A job's `shell` text: start, beats for about `work`, end.
    ///
    /// Like the others it is one line without `"` and `\`, so it fits TOML's `"..."`.
    pub fn job(&self, work: Duration) -> String {
        self.job_then(work, "exit 0")
    }

    /// As [`Self::job`], but it ends with the shell text `last`, e.g. `exit 3`.
    pub fn job_then(&self, work: Duration, last: &str) -> String {
        format!("{}; mark start; beats {}; mark end; {last}", self.prelude(), work.as_millis() / 20)
    }

    /// A job that notes SIGTERM, goes on for ever, and has a child in a session of its own that
    /// does the same: only the death of the whole tree ends it.
    pub fn stubborn_job(&self) -> String {
        format!("{}; mark start; offspring; endure", self.prelude())
    }

    /// A job that ends at once and leaves a stubborn child behind in a session of its own.
    pub fn job_that_leaves_a_child(&self) -> String {
        format!("{}; mark start; offspring; mark end", self.prelude())
    }

    /// Shell text that defines `mark start|beat|term|end`, `beats COUNT`, `endure` and `offspring`.
    pub fn prelude(&self) -> String {
        format!(". '{}'", self.words.display())
    }

    /// Reads it. Panics on a line that no job of ours wrote.
    pub fn read(&self) -> Entries {
        let text = fs::read_to_string(&self.path).expect("the ledger is there");
        text.parse().unwrap_or_else(|e| panic!("{}: {e}", self.path.display()))
    }
}

impl Entries {
    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// Those with this mark, in order.
    pub fn marked(&self, mark: Mark) -> impl Iterator<Item = &Entry> {
        self.iter().filter(move |entry| entry.mark == mark)
    }

    /// The signs of life of one run, in order.
    pub fn of_run(&self, run: &str) -> impl Iterator<Item = &Entry> {
        self.iter().filter(move |entry| entry.run == run)
    }

    /// For each lock, the lines of a run that came after another run had been granted the lock.
    /// Empty if nothing overlapped.
    pub fn overlaps_per_lock(&self) -> BTreeMap<String, Vec<String>> {
        let mut newest: HashMap<&str, &Entry> = HashMap::new();
        let mut superseded: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut told: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut overlaps: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in self.iter() {
            let (lock, run) = (entry.lock.as_str(), entry.run.as_str());
            let current = newest.entry(lock).or_insert(entry);
            if superseded.contains(&(lock, run)) {
                // Once a run is enough: a survivor beats fifty times a second.
                if told.insert((lock, run)) {
                    let text = format!("{} was alive after {} had started", entry.words(), current.words());
                    overlaps.entry(entry.lock.clone()).or_default().push(text);
                }
            } else if current.run != entry.run {
                superseded.insert((lock, &current.run));
                *current = entry;
            }
        }
        overlaps
    }

    /// What is wrong with the fencing tokens: within a lock each start has a greater one than the
    /// start before, or the same if it is another attempt of the same trigger. Empty if all is well.
    pub fn tokens_out_of_order(&self) -> Vec<String> {
        let mut last: HashMap<&str, &Entry> = HashMap::new();
        let mut wrong = Vec::new();
        for entry in self.marked(Mark::Start) {
            if let Some(before) = last.insert(&entry.lock, entry) {
                let retried = entry.token == before.token && entry.trigger() == before.trigger();
                if entry.token <= before.token && !retried {
                    wrong.push(format!("{} started after {}", entry.words(), before.words()));
                }
            }
        }
        wrong
    }

    /// Whether tokens rise in the order of the starts; see [`Self::tokens_out_of_order`].
    pub fn tokens_rise_in_order_of_start(&self) -> bool {
        self.tokens_out_of_order().is_empty()
    }

    /// How many runs each trigger (job, instant) had.
    pub fn runs_per_trigger(&self) -> BTreeMap<(String, String), usize> {
        count(self.marked(Mark::Start).map(|entry| (entry.job.clone(), entry.scheduled_at.clone())))
    }

    /// How many runs each host had.
    pub fn runs_by_host(&self) -> BTreeMap<String, usize> {
        count(self.marked(Mark::Start).map(|entry| entry.host.clone()))
    }

    /// Panics unless nothing overlapped and tokens rose.
    #[track_caller]
    pub fn assert_locks_held(&self) {
        let overlaps = self.overlaps_per_lock();
        assert!(overlaps.is_empty(), "runs overlapped: {overlaps:#?}");
        let tokens = self.tokens_out_of_order();
        assert!(tokens.is_empty(), "fencing tokens fell: {tokens:#?}");
    }

    /// Panics unless there is a trigger, and each ran exactly once.
    #[track_caller]
    pub fn assert_each_trigger_ran_once(&self) {
        let runs = self.runs_per_trigger();
        assert!(!runs.is_empty(), "nothing ran");
        let several: Vec<_> = runs.iter().filter(|(_, count)| **count != 1).collect();
        assert!(several.is_empty(), "triggers ran more than once: {several:#?}");
    }
}

impl Entry {
    fn trigger(&self) -> (&str, &str) {
        (&self.job, &self.scheduled_at)
    }

    fn words(&self) -> String {
        format!("run {} ({} at {}, token {}, {})", self.run, self.job, self.scheduled_at, self.token, self.host)
    }
}

impl FromStr for Entries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.lines().map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let no = |what: &str| format!("{what} in the ledger's line {line:?}");
        let fields: Vec<&str> = line.split('\t').collect();
        let [mark, lock, token, job, scheduled_at, attempt, run, host, up, pid] = fields[..] else {
            return Err(no("not ten fields"));
        };
        let up: f64 = up.parse().map_err(|_| no("no time since boot"))?;
        Ok(Self {
            mark: mark.parse().map_err(|()| no("an unknown mark"))?,
            lock: lock.to_owned(),
            token: token.parse().map_err(|_| no("no token"))?,
            job: job.to_owned(),
            scheduled_at: scheduled_at.to_owned(),
            attempt: attempt.to_owned(),
            run: run.to_owned(),
            host: host.to_owned(),
            at: Duration::try_from_secs_f64(up).map_err(|_| no("no time since boot"))?,
            pid: pid.parse().map_err(|_| no("no process id"))?,
        })
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "start" => Ok(Self::Start),
            "beat" => Ok(Self::Beat),
            "term" => Ok(Self::Term),
            "end" => Ok(Self::End),
            _ => Err(()),
        }
    }
}

fn count<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

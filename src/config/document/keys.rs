/// The keys of one kind of table.
#[derive(Debug)]
pub struct Keys {
    /// Where they stand, in words that complete "it belongs ...".
    pub place: &'static str,
    /// Those of this version.
    pub known: &'static [&'static str],
    /// Those that a later version will know.
    pub later: &'static [&'static str],
}

/// The tables of the main file.
pub static MAIN_FILE: Keys = Keys {
    place: "at the top of the main file",
    known: &["database", "daemon", "lock", "history", "log", "defaults", "jobs"],
    later: &["http"],
};

/// The tables of a file in `jobs.d`.
pub static JOB_FILE: Keys = Keys { place: "at the top of a file of jobs.d", known: &["jobs"], later: &[] };

/// `[database]`.
pub static DATABASE: Keys = Keys {
    place: "in [database]",
    known: &["url", "password_file", "pooler", "direct_url", "migrate", "max_connections"],
    later: &["cluster"],
};

/// `[daemon]`.
pub static DAEMON: Keys = Keys {
    place: "in [daemon]",
    known: &["host", "labels", "timezone", "max_running_jobs", "drain"],
    later: &["ping_url"],
};

/// `[lock]`.
pub static LOCK: Keys = Keys { place: "in [lock]", known: &["ttl", "heartbeat", "kill_grace"], later: &[] };

/// `[history]`.
pub static HISTORY: Keys = Keys { place: "in [history]", known: &["keep", "keep_runs"], later: &[] };

/// `[log]`.
pub static LOG: Keys = Keys { place: "in [log]", known: &["format", "level"], later: &[] };

/// `[jobs.NAME]` and `[defaults]`.
pub static JOB: Keys = Keys {
    place: "in a job",
    known: &[
        "description",
        "enabled",
        "schedule",
        "every",
        "offset",
        "at",
        "after",
        "timezone",
        "dst_gap",
        "dst_fold",
        "splay",
        "active_from",
        "active_until",
        "blackouts",
        "command",
        "shell",
        "lock",
        "ttl",
        "heartbeat",
        "kill_grace",
        "overlap",
        "wait_for",
        "timeout",
        "retries",
        "retry_delay",
        "retry_max_delay",
        "success_codes",
        "on_lease_lost",
        "user",
        "group",
        "env",
        "env_file",
        "directory",
        "umask",
        "stdin",
        "nice",
        "limits",
        "output",
        "output_keep",
        "on_failure",
        "on_recovery",
        "failures_before_notice",
        "ping_url",
        "run_on",
        "hosts",
        "labels",
        "on_crash",
        "max_reruns",
        "start_deadline",
        "catch_up",
        "catch_up_max_age",
        "catch_up_max_runs",
        "catch_up_spacing",
    ],
    later: &["alert_if_no_success", "parameters", "when_unreachable"],
};

/// A table in the list `blackouts`.
pub static BLACKOUT: Keys =
    Keys { place: "in a blackout of a job", known: &["from", "until", "schedule", "lasts"], later: &[] };

/// `limits` of a job.
pub static LIMITS: Keys =
    Keys { place: "in limits of a job", known: &["memory", "cpu_time", "open_files", "processes"], later: &[] };

/// `output_keep` of a job.
pub static OUTPUT_KEEP: Keys = Keys { place: "in output_keep of a job", known: &["size", "files", "age"], later: &[] };

/// `stdin` of a job, where it is a table.
pub static STDIN: Keys = Keys { place: "in stdin of a job", known: &["file"], later: &[] };

/// Every kind of table, with the path that documentation gives it.
pub static ALL: &[(&str, &Keys)] = &[
    ("", &MAIN_FILE),
    ("database", &DATABASE),
    ("daemon", &DAEMON),
    ("lock", &LOCK),
    ("history", &HISTORY),
    ("log", &LOG),
    ("jobs.NAME", &JOB),
    ("jobs.NAME.blackouts", &BLACKOUT),
    ("jobs.NAME.limits", &LIMITS),
    ("jobs.NAME.output_keep", &OUTPUT_KEEP),
    ("jobs.NAME.stdin", &STDIN),
];

impl Keys {
    /// What is wrong with a key that is not known here, and the remedy.
    pub fn judge_unknown(&self, key: &str) -> (String, String) {
        const UNKNOWN: &str = "unknown key";
        if self.later.contains(&key) {
            return ("not supported by this version yet".to_owned(), "remove it".to_owned());
        }
        if let Some(near) = self.nearest(key) {
            return (UNKNOWN.to_owned(), format!("did you mean {near:?}?"));
        }
        let elsewhere = ALL.iter().map(|(_, keys)| *keys).find(|keys| keys.known.contains(&key));
        if let Some(keys) = elsewhere {
            return (format!("unknown key {}", self.place), format!("it belongs {}", keys.place));
        }
        (UNKNOWN.to_owned(), format!("the keys here are {}", self.known.join(", ")))
    }

    /// The known key that somebody may have meant: at most a third of the letters differ, or one is
    /// a piece of the other (`max_age` for `catch_up_max_age`).
    pub fn nearest(&self, key: &str) -> Option<&'static str> {
        const SHORTEST_PIECE: usize = 5;
        // Also the keys to come: what is nearest to one of them was not meant for anything known.
        let near = self.known.iter().chain(self.later).copied().map(|known| (strsim::osa_distance(known, key), known));
        let (distance, nearest) = near.min_by_key(|(distance, _)| *distance)?;
        if distance <= key.chars().count().div_ceil(3) && self.known.contains(&nearest) {
            return Some(nearest);
        }
        let is_piece = |piece: &str, whole: &str| piece.len() >= SHORTEST_PIECE && whole.contains(piece);
        self.known.iter().copied().find(|known| is_piece(key, known) || is_piece(known, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_gets_the_nearest_known_one() {
        assert_eq!(JOB.nearest("comand"), Some("command"));
        assert_eq!(JOB.nearest("time_zone"), Some("timezone"));
        assert_eq!(JOB.nearest("max_age"), Some("catch_up_max_age"));
        assert_eq!(DAEMON.nearest("max_running"), Some("max_running_jobs"));
        assert_eq!(JOB.nearest("colour"), None);
        assert_eq!(JOB.nearest("rate_limit"), None, "two letters, as in at, are no piece");
    }

    #[test]
    fn a_key_near_to_one_of_a_later_version_gets_no_far_fetched_suggestion() {
        assert_eq!(DAEMON.nearest("ping_ulr"), None);
        assert_eq!(JOB.nearest("ping_ulr"), Some("ping_url"));
    }

    #[test]
    fn a_key_of_another_table_is_sent_there() {
        let (_, remedy) = LOCK.judge_unknown("timeout");
        assert_eq!(remedy, "it belongs in a job");
    }

    #[test]
    fn no_key_is_both_of_this_version_and_of_a_later_one() {
        for (path, keys) in ALL {
            assert!(keys.known.iter().all(|key| !keys.later.contains(key)), "{path}");
        }
    }
}

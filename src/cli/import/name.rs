//! Names for jobs that never had one.

use std::collections::{BTreeMap, BTreeSet};

use super::program;

/// The names that were given so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    /// The number that comes next, for each program.
    next: BTreeMap<String, u32>,
}

/// Long enough to know a program by.
const MOST_CHARS: usize = 60;

/// Endings that say how a program is made, not what it does.
const ENDINGS: [&str; 11] = [".sh", ".bash", ".py", ".pl", ".rb", ".php", ".js", ".jar", ".exe", ".bin", ".cron"];

impl Names {
    /// A name for the job that runs this line: its program's, with a number if that is taken. The
    /// same crontab gets the same names, and a line that is added at its end changes none.
    pub(super) fn give(&mut self, line: &str) -> String {
        let program = program::of(line).unwrap_or_default();
        let base = Some(clean(&program)).filter(|name| !name.is_empty()).unwrap_or_else(|| "job".to_owned());
        let next = self.next.entry(base.clone()).or_insert(1);
        loop {
            let name = if *next == 1 { base.clone() } else { format!("{base}-{next}") };
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The last part of a path in small letters, digits, `-` and `_`: a key of TOML without quotes.
fn clean(path: &str) -> String {
    let name = program::base_name(path).to_ascii_lowercase();
    let bare = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let mut clean = String::new();
    for c in bare.chars().take(MOST_CHARS) {
        if c.is_ascii_alphanumeric() || c == '_' {
            clean.push(c);
        } else if !clean.ends_with('-') {
            clean.push('-');
        }
    }
    clean.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_clean_and_unique_and_stay_when_lines_are_added() {
        let mut names = Names::default();
        for (line, name) in [
            ("/usr/local/bin/Backup.sh --full", "backup"),
            ("/usr/local/bin/backup --incremental", "backup-2"),
            ("backup", "backup-3"),
            ("/opt/backup-2", "backup-2-2"),
            ("\"$SCRIPT\" x", "script"),
            ("/srv/\u{fc}bung.py", "bung"),
            ("python3 -m http.server", "http-server"),
            ("/opt/***", "job"),
            ("# nothing", "job-2"),
        ] {
            assert_eq!(names.give(line), name, "{line}");
        }
    }

    #[test]
    fn a_name_is_never_too_long() {
        assert_eq!(Names::default().give(&"x".repeat(5_000)).len(), MOST_CHARS);
    }
}

//! The text that goes into `jobs.d`.

use std::path::Path;

use super::note::{Kind, Note};
use super::{Imported, document};
use crate::cli::Failure;
use crate::config::{self, Loaded};

/// The whole text: what was not carried over stands in it as a remark.
pub(super) fn text(files: &[Imported]) -> String {
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let mut text = document::comment(&format!("Made by cronlatch import from {}.", names.join(", ")));
    for file in files {
        let remark = |note: &Note| {
            let line = note.line.map(|line| format!(":{line}")).unwrap_or_default();
            document::comment(&format!("{}{line}: not carried over: {}", file.name, note.text()))
        };
        let lost = |note: &&Note| matches!(note.kind, Kind::Unreadable | Kind::Dropped);
        let mut parts: Vec<(Option<usize>, String)> =
            file.notes.iter().filter(lost).map(|note| (note.line, remark(note))).collect();
        parts.extend(file.entries.iter().map(|entry| {
            let dropped = || entry.notes.iter().filter(lost).map(remark).collect();
            (Some(entry.line), entry.job.as_ref().map_or_else(dropped, |job| job.toml.clone()))
        }));
        parts.sort_by_key(|(line, _)| *line);
        text.extend(parts.iter().map(|(_, part)| format!("\n{part}")));
    }
    text
}

/// Reads the text as the daemon will.
///
/// # Errors
/// [`Failure`]: it is refused, which is a bug.
pub(super) fn verified(toml: &str) -> Result<Loaded, Failure> {
    let loaded = config::load_jobs(Path::new("jobs.d/crontab.toml"), toml.to_owned());
    if loaded.problems.is_empty() {
        return Ok(loaded);
    }
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let problems = problems.join("\n");
    Err(Failure::bug(format!("the jobs that were made are refused, which is a fault of cronlatch:\n{problems}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_the_daemon_would_refuse_is_told_as_a_bug_with_its_place() {
        let good = "[jobs.a]\nschedule = \"@daily\"\nshell = \"true\"\n";
        assert_eq!(verified(good).unwrap().jobs.len(), 1);
        let refused = verified("[jobs.a]\nschedule = \"@dayly\"\nshell = \"true\"\n").unwrap_err();
        let said = format!("{refused:?}");
        assert!(said.contains("a fault of cronlatch") && said.contains("jobs.d/crontab.toml:2:1"), "{said}");
        assert!(said.contains("code: 70"), "{said}");
    }
}

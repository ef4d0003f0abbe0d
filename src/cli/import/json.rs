//! What programs read in the place of TOML and report.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::compare::{Comparison, Difference, Starts};
use super::note::Note;
use super::{Compared, Imported};
use crate::cli::when;

/// An object an entry, and one each other line that something is said of; in the order of the lines.
pub(super) fn objects(files: &[Imported]) -> Vec<Value> {
    let mut objects = Vec::new();
    for file in files {
        let lines = file.notes.iter().map(|note| (note.line, of_line(&file.name, note)));
        let entries = file.entries.iter().map(|entry| (Some(entry.line), of_entry(&file.name, entry)));
        let mut of_file: Vec<(Option<usize>, Value)> = lines.chain(entries).collect();
        of_file.sort_by_key(|(line, _)| *line);
        objects.extend(of_file.into_iter().map(|(_, object)| object));
    }
    objects
}

fn of_line(file: &str, note: &Note) -> Value {
    json!({
        "file": file, "line": note.line, "job": null, "toml": null, "notes": [said(note)],
        "old": null, "new": null, "differs": [],
    })
}

fn of_entry(file: &str, entry: &Compared) -> Value {
    let job = entry.job.as_ref();
    let comparison = &entry.comparison;
    json!({
        "file": file,
        "line": entry.line,
        "job": job.map(|job| &job.name),
        "toml": job.map(|job| &job.toml),
        "notes": entry.notes.iter().map(said).collect::<Vec<_>>(),
        "old": job.map(|_| starts(&comparison.old)),
        "new": job.map(|_| starts(&comparison.new)),
        "differs": differs(comparison),
    })
}

fn said(note: &Note) -> Value {
    json!({ "kind": note.kind.as_str(), "what": note.what, "remedy": note.remedy })
}

fn starts(starts: &Starts) -> Value {
    json!({ "count": starts.count, "first": starts.first.iter().map(|at| when::json(*at)).collect::<Vec<_>>() })
}

fn differs(comparison: &Comparison) -> Vec<Value> {
    let instant = |(at, times): &(DateTime<Utc>, usize)| json!({ "at": when::json(*at), "times": times });
    let object = |difference: &Difference| {
        let first: Vec<Value> = difference.first.iter().map(instant).collect();
        json!({ "cause": difference.cause, "more_in": difference.who.as_str(), "count": difference.count, "first": first })
    };
    comparison.differences.iter().map(object).collect()
}

//! The files in `config/` are in step with the code.

use std::collections::BTreeSet;
use std::path::Path;

use cronlatch::config::{self, Loaded};
use cronlatch::job::Overlap;
use cronlatch::lock::LeaseTiming;

use crate::fixtures::{good, names, secs};

const SAMPLE: &str = include_str!("../../config/cronlatch.toml");

/// What a line of the sample file is; keys come with the whole of `key = value`.
enum Line<'a> {
    Table(&'a str),
    Set(&'a str),
    /// Behind a `#`.
    Default(&'a str, &'a str),
    /// Behind `# example: `.
    Example(&'a str, &'a str),
    Text,
}

fn line_of(line: &str) -> Line<'_> {
    if let Some(table) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
        return Line::Table(table);
    }
    if let Some(key) = key_of(line) {
        return Line::Set(key);
    }
    if let Some(example) = line.strip_prefix("# example: ") {
        return Line::Example(key_of(example).expect("an example is a key with a value"), example);
    }
    match line.strip_prefix('#').and_then(|default| Some((key_of(default)?, default))) {
        Some((key, default)) => Line::Default(key, default),
        None => Line::Text,
    }
}

fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(" = ")?;
    key.chars().all(|c| c.is_ascii_lowercase() || c == '_').then_some(key)
}

/// Settings and jobs as text, to compare all of them at once.
fn whole(loaded: &Loaded) -> String {
    format!("{:#?}\n{:#?}", loaded.settings, loaded.jobs)
}

#[test]
fn the_sample_shows_every_key_and_no_other() {
    let mut shown = BTreeSet::new();
    let mut table = "";
    for line in SAMPLE.lines() {
        match line_of(line) {
            Line::Table(name) => {
                table = if name.starts_with("jobs.") { "jobs.NAME" } else { name };
                shown.insert(("", table.trim_end_matches(".NAME")));
            }
            // [defaults] takes the keys of a job, which the jobs show.
            Line::Set(key) | Line::Default(key, _) | Line::Example(key, _) if table == "defaults" => {
                shown.insert(("jobs.NAME", key));
            }
            Line::Example(key @ ("blackouts" | "limits" | "output_keep" | "stdin"), inner)
            | Line::Default(key @ "output_keep", inner) => {
                shown.insert((table, key));
                let mut inside = config::known_keys().map(|(path, _)| path);
                let inside = inside.find(|path| path.strip_prefix("jobs.NAME.") == Some(key)).expect("it is a table");
                let keys = inner.split(['{', ',']).skip(1).filter_map(|part| key_of(part.trim_start()));
                shown.extend(keys.map(|key| (inside, key)));
            }
            Line::Set(key) | Line::Default(key, _) | Line::Example(key, _) => {
                shown.insert((table, key));
            }
            Line::Text => {}
        }
    }
    assert_eq!(shown, config::known_keys().collect::<BTreeSet<_>>());
}

#[test]
fn the_defaults_that_the_sample_shows_are_those_of_the_code() {
    let spelt_out: Vec<&str> = SAMPLE
        .lines()
        .map(|line| match line_of(line) {
            Line::Default(_, text) => text,
            _ => line,
        })
        .collect();
    assert_ne!(spelt_out.join("\n"), SAMPLE.trim_end());
    assert_eq!(whole(&good(&spelt_out.join("\n"))), whole(&good(SAMPLE)));
}

#[test]
fn the_examples_of_the_sample_are_without_a_fault() {
    let mut lines: Vec<&str> = Vec::new();
    for line in SAMPLE.lines() {
        if let Line::Example(key, text) = line_of(line) {
            // An example beside a key that is set stands for another value of it.
            let table = lines.iter().rposition(|line| matches!(line_of(line), Line::Table(_))).unwrap_or_default();
            let same = |line: &&str| matches!(line_of(line), Line::Set(set) if set == key);
            if let Some(at) = lines[table..].iter().position(same) {
                lines.remove(table + at);
            }
            lines.push(text);
        } else {
            lines.push(line);
        }
    }
    let loaded = good(&lines.join("\n"));
    assert_ne!(whole(&loaded), whole(&good(SAMPLE)));
}

#[test]
fn the_demo_shows_contention_within_seconds() {
    let loaded = good(include_str!("../../config/demo.toml"));
    assert_eq!(names(&loaded), ["deploy", "report", "slow", "tick"]);
    assert_eq!(loaded.jobs[0].resource, loaded.jobs[1].resource);
    assert_ne!(loaded.jobs[1].overlap, Overlap::Skip);
    let settings = loaded.settings.unwrap();
    assert_eq!(settings.lock, LeaseTiming::new(secs(12), secs(2), secs(2)).unwrap());
    assert_eq!(settings.database.url.sqlite_path(), Some(Path::new("/tmp/cronlatch-demo.db")));
}

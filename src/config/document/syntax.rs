use std::collections::BTreeSet;
use std::rc::Rc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::Source;
use crate::config::problem::Problem;

/// How far the table that was made from a file can be believed.
///
/// The parser recovers and goes on, so that a syntax error hides nothing before it and, if it spoils
/// no more than its own value, nothing after it. What is found where the parser guessed is not told:
/// it would send people to lines that are right.
#[derive(Debug, Default)]
pub struct Trust {
    faulty_lines: BTreeSet<usize>,
    /// The first line from which on the parser may have taken one thing for another.
    lost_from: Option<usize>,
}

impl Trust {
    /// Whether all of the file is valid TOML.
    pub fn is_whole(&self) -> bool {
        self.faulty_lines.is_empty()
    }

    /// Whether a problem found in the table is one of the file.
    pub fn covers(&self, problem: &Problem) -> bool {
        if self.is_whole() {
            return true;
        }
        let line = problem.position.map_or(0, |position| position.line);
        !problem.rests_on_others
            && !self.faulty_lines.contains(&line)
            && self.lost_from.is_none_or(|lost_from| line < lost_from)
    }
}

/// Parses a file's text; one problem for each line that is not valid TOML.
pub fn parse(source: &Rc<Source>) -> (DeTable<'_>, Trust, Vec<Problem>) {
    let (table, mut errors) = DeTable::parse_recoverable(&source.text);
    errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
    let mut trust = Trust::default();
    let mut problems = Vec::new();
    for error in errors {
        let position = source.position(error.span().map_or(0, |span| span.start));
        if !is_local(error.message()) && trust.lost_from.is_none() {
            trust.lost_from = Some(position.line);
        }
        if trust.faulty_lines.insert(position.line) {
            let (wrong, remedy) = words_for(&error, &source.text);
            let file = Problem::of_file(source.scope.clone(), source.path.clone(), wrong, remedy);
            problems.push(Problem { position: Some(position), ..file });
        }
    }
    (table.into_inner(), trust, problems)
}

/// A key with its value, out of a table.
pub type Taken<'s> = (Spanned<DeString<'s>>, Spanned<DeValue<'s>>);

/// Takes a key out of a table; `None` if it is not there.
pub fn take<'s>(table: &mut DeTable<'s>, key: &str) -> Option<Taken<'s>> {
    table.remove_entry(key)
}

/// Whether an error spoils nothing but its own value. An error that is not known here is taken for
/// the worse kind.
fn is_local(message: &str) -> bool {
    message.starts_with("string values must be quoted") || message == "duplicate key"
}

/// What is wrong and the remedy. The parser's messages quote nothing of the file, so no secret.
fn words_for(error: &toml::de::Error, text: &str) -> (String, String) {
    let message = error.message();
    if message == "duplicate key" {
        let name = error.span().and_then(|span| text.get(span)).unwrap_or_default();
        return (format!("the key {name} is there twice"), "rename or remove one of the two".to_owned());
    }
    if message.starts_with("string values must be quoted") {
        return ("not valid TOML: a value that is no number needs quotes".to_owned(), "write \"...\"".to_owned());
    }
    (format!("not valid TOML: {message}"), "mend this line or the one before".to_owned())
}

use std::ops::Range;
use std::rc::Rc;

use super::Source;
use crate::config::problem::Problem;

/// Where something stands: the file, the position of its key, its path, and what was typed there.
#[derive(Clone, Debug)]
pub struct Place {
    source: Rc<Source>,
    /// Byte offset of the key; `None` for the file as a whole.
    at: Option<usize>,
    path: String,
    /// Byte range of the value, if there is one to show.
    shown: Option<Range<usize>>,
    /// Whether neither this value nor any below it may be shown.
    secret: bool,
}

impl Place {
    /// The longest piece of a value that a message shows, in characters.
    const SHOWN_CHARS: usize = 60;

    /// A file as a whole.
    pub fn file(source: &Rc<Source>) -> Self {
        Self { source: Rc::clone(source), at: None, path: String::new(), shown: None, secret: false }
    }

    /// A key that is there.
    pub fn key(&self, key: &str, at: usize, value: Range<usize>) -> Self {
        let shown = (!self.secret).then_some(value);
        Self { at: Some(at), path: self.path_of(key), shown, ..self.clone() }
    }

    /// A key that is not there: its path, at the position of its table.
    pub fn absent(&self, key: &str) -> Self {
        Self { path: self.path_of(key), shown: None, ..self.clone() }
    }

    /// An element of a list.
    pub fn element(&self, index: usize, value: Range<usize>) -> Self {
        let (at, shown) = (Some(value.start), (!self.secret).then_some(value));
        Self { at, path: format!("{}[{index}]", self.path), shown, ..self.clone() }
    }

    /// The same, of a table: its text is no value to show.
    pub fn of_table(self) -> Self {
        Self { shown: None, ..self }
    }

    /// The same, with a value that no message may show, nor any below it.
    pub fn secret(self) -> Self {
        Self { shown: None, secret: true, ..self }
    }

    /// The key with its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What was typed, shortened.
    pub fn typed(&self) -> Option<String> {
        self.shown.clone().map(|range| self.snippet(range))
    }

    /// `FILE:LINE`, for messages that point at a second place.
    pub fn file_and_line(&self) -> String {
        let file = self.source.path.display();
        match self.at {
            Some(at) => format!("{file}:{}", self.source.position(at).line),
            None => file.to_string(),
        }
    }

    /// `line N` if both stand in one file, else `FILE:LINE`.
    pub fn seen_from(&self, other: &Self) -> String {
        match self.at {
            Some(at) if Rc::ptr_eq(&self.source, &other.source) => format!("line {}", self.source.position(at).line),
            _ => self.file_and_line(),
        }
    }

    /// A problem here.
    pub fn problem(&self, wrong: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { remedy: Some(remedy.into()), ..self.problem_with_remedy_inside(wrong) }
    }

    /// A problem here, whose text names the remedy itself.
    pub fn problem_with_remedy_inside(&self, wrong: impl Into<String>) -> Problem {
        Problem {
            scope: self.source.scope.clone(),
            file: self.source.path.clone(),
            position: self.at.map(|at| self.source.position(at)),
            key: (!self.path.is_empty()).then(|| self.path.clone()),
            value: self.typed(),
            wrong: wrong.into(),
            remedy: None,
            rests_on_others: false,
        }
    }

    fn path_of(&self, key: &str) -> String {
        let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let key = if bare { key.to_owned() } else { format!("{key:?}") };
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    /// The first line of what was typed, shortened, without control characters: messages are one line.
    fn snippet(&self, range: Range<usize>) -> String {
        let typed = self.source.text.get(range).unwrap_or_default();
        let line = typed.lines().next().unwrap_or_default();
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        let short: String = line.chars().take(Self::SHOWN_CHARS).map(clean).collect();
        if short.len() < typed.len() { format!("{short}...") } else { short }
    }
}

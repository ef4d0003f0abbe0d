use std::fmt;

/// A word that says what a host can do: letters, digits, `-`, `_`, `.`, `:` and `=`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(String);

/// Why a text is no label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabel {
    /// Nothing there, or more than [`Label::MAX_CHARS`].
    #[error("a label has 1 to 64 characters, this one has {0}")]
    Length(usize),
    /// A character that lists and metrics could not show.
    #[error("a label can't hold {0:?}: letters, digits, '-', '_', '.', ':' and '=' only")]
    Forbidden(char),
}

impl Label {
    /// The longest label, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Checks a label.
    ///
    /// # Errors
    /// [`InvalidLabel`] says what is wrong with it.
    pub fn new(label: impl Into<String>) -> Result<Self, InvalidLabel> {
        let label = label.into();
        let chars = label.chars().count();
        if chars == 0 || chars > Self::MAX_CHARS {
            return Err(InvalidLabel::Length(chars));
        }
        match label.chars().find(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.' | ':' | '=')) {
            Some(c) => Err(InvalidLabel::Forbidden(c)),
            None => Ok(Self(label)),
        }
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

use std::fmt;

/// The name of a job: 1 to 190 characters, not blank, no control characters.
///
/// 190, so that the lock's default name `job:NAME` fits into
/// [`Resource::MAX_CHARS`](crate::lock::Resource::MAX_CHARS) with room to spare. A job that runs on every
/// host needs a shorter name or a lock of its own:
/// [`Resource::MAX_CHARS_OF_EVERY_HOST`](crate::lock::Resource::MAX_CHARS_OF_EVERY_HOST).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName(String);

/// Why a text can't name a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJobName {
    /// Empty, or white space only.
    #[error("a job's name can't be blank")]
    Blank,
    /// More than [`JobName::MAX_CHARS`].
    #[error("a job's name has at most 190 characters, this one has {0}")]
    TooLong(usize),
    /// NUL, a line feed, or another control character.
    #[error("a job's name can't hold control characters (character {0} is one)")]
    Control(usize),
}

impl JobName {
    /// The longest name, in characters.
    pub const MAX_CHARS: usize = 190;

    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidJobName`] says what is wrong with it.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidJobName> {
        let name = name.into();
        if name.trim().is_empty() {
            return Err(InvalidJobName::Blank);
        }
        let chars = name.chars().count();
        if chars > Self::MAX_CHARS {
            return Err(InvalidJobName::TooLong(chars));
        }
        if let Some(at) = name.chars().position(char::is_control) {
            return Err(InvalidJobName::Control(at + 1));
        }
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

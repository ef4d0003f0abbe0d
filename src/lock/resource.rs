use std::fmt;

use crate::fleet::HostName;

/// The name of what is locked: 1 to 255 characters, not blank, no control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(String);

/// Why a text can't name a resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResource {
    /// Empty, or white space only.
    #[error("a resource name can't be blank")]
    Blank,
    /// More than [`Resource::MAX_CHARS`].
    #[error("a resource name has at most 255 characters, this one has {0}")]
    TooLong(usize),
    /// NUL, a line feed, or another control character.
    #[error("a resource name can't hold control characters (character {0} is one)")]
    Control(usize),
}

impl Resource {
    /// The longest name, in characters.
    pub const MAX_CHARS: usize = 255;

    /// The longest name, in characters, to which every host adds its own.
    pub const MAX_CHARS_OF_EVERY_HOST: usize = Self::MAX_CHARS - 1 - HostName::MAX_CHARS;

    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidResource`] says what is wrong with it.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidResource> {
        let name = name.into();
        if name.trim().is_empty() {
            return Err(InvalidResource::Blank);
        }
        let chars = name.chars().count();
        if chars > Self::MAX_CHARS {
            return Err(InvalidResource::TooLong(chars));
        }
        if let Some(at) = name.chars().position(char::is_control) {
            return Err(InvalidResource::Control(at + 1));
        }
        Ok(Self(name))
    }

    /// The resource of a job that runs on every host: each host has its own.
    ///
    /// # Panics
    /// When the name has more than [`Self::MAX_CHARS_OF_EVERY_HOST`] characters, which whoever reads
    /// such a job refuses.
    pub fn on_host(&self, host: &HostName) -> Self {
        Self::new(format!("{self}@{host}")).expect("the name leaves room for a host's")
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_characters() {
        assert!(Resource::new("ß".repeat(255)).is_ok());
        assert_eq!(Resource::new("ß".repeat(256)), Err(InvalidResource::TooLong(256)));
    }

    #[test]
    fn blank_and_control_characters_are_refused() {
        assert_eq!(Resource::new(" \t"), Err(InvalidResource::Blank));
        assert_eq!(Resource::new("a\0b"), Err(InvalidResource::Control(2)));
    }
}

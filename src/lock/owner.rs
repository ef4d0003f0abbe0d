use std::fmt;

use uuid::Uuid;

use crate::fleet::{HostName, InstanceId};

/// The token that identifies one holder: 1 to 255 characters, not blank, no control characters.
///
/// It is a secret: whoever knows it can renew and release. `Debug` masks it, and only the store
/// reads it whole.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Owner(String);

/// The part of an owner that may be shown: everything but the secret last part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PublicOwner(String);

/// Why a text can't be an owner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOwner {
    /// Empty, or white space only.
    #[error("an owner can't be blank")]
    Blank,
    /// More than [`Owner::MAX_CHARS`].
    #[error("an owner has at most 255 characters, this one has {0}")]
    TooLong(usize),
    /// NUL, a line feed, or another control character.
    #[error("an owner can't hold control characters (character {0} is one)")]
    Control(usize),
}

impl Owner {
    /// The longest owner, in characters.
    pub const MAX_CHARS: usize = 255;

    /// Checks an owner that somebody else made.
    ///
    /// # Errors
    /// [`InvalidOwner`] says what is wrong with it.
    pub fn new(owner: impl Into<String>) -> Result<Self, InvalidOwner> {
        let owner = owner.into();
        if owner.trim().is_empty() {
            return Err(InvalidOwner::Blank);
        }
        let chars = owner.chars().count();
        if chars > Self::MAX_CHARS {
            return Err(InvalidOwner::TooLong(chars));
        }
        if let Some(at) = owner.chars().position(char::is_control) {
            return Err(InvalidOwner::Control(at + 1));
        }
        Ok(Self(owner))
    }

    /// Makes a new owner for one run: `HOST/INSTANCE/SECRET`, the last a random UUID, so that two
    /// runs on one host are two owners and nobody guesses one.
    pub fn generate(host: &HostName, instance: InstanceId) -> Self {
        Self(format!("{host}/{instance}/{}", Uuid::new_v4()))
    }

    /// The whole text, secret included. For the store's statements only.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The part that may be shown. An owner that we did not make is shown whole.
    pub fn public(&self) -> PublicOwner {
        PublicOwner(mask(&self.0).to_owned())
    }
}

impl PublicOwner {
    /// Masks a stored owner: cuts the secret off if it has the shape of one that we made.
    pub fn of(stored: &str) -> Self {
        Self(mask(stored).to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host in it, if it is one that we made.
    pub fn host(&self) -> Option<&str> {
        let (host, instance) = self.0.split_once('/')?;
        Uuid::try_parse(instance).is_ok().then_some(host)
    }
}

/// `HOST/INSTANCE` of `HOST/INSTANCE/SECRET`; any other shape is not ours and stays as it is.
fn mask(owner: &str) -> &str {
    let Some((public, secret)) = owner.rsplit_once('/') else {
        return owner;
    };
    let ours = Uuid::try_parse(secret).is_ok()
        && public.split_once('/').is_some_and(|(_, instance)| Uuid::try_parse(instance).is_ok());
    if ours { public } else { owner }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({}/***)", mask(&self.0))
    }
}

impl fmt::Display for PublicOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_part_is_shown_nowhere() {
        let host = HostName::new("web-1").expect("a valid name");
        let owner = Owner::generate(&host, InstanceId::generate());
        let secret = owner.reveal().rsplit('/').next().expect("three parts");
        assert!(!format!("{owner:?}").contains(secret));
        assert!(!owner.public().as_str().contains(secret));
        assert_eq!(owner.public().host(), Some("web-1"));
        assert_eq!(PublicOwner::of(owner.reveal()), owner.public());
    }

    #[test]
    fn a_clients_owner_is_shown_whole() {
        assert_eq!(PublicOwner::of("deploy/42").as_str(), "deploy/42");
    }
}

use std::fmt;

use super::HostName;

/// Names of hosts as a job asks for them: a name in which `*` stands for any characters, none
/// included, and `?` for one. Case counts, as it does in names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern(String);

/// Why a text can't match hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHostPattern {
    /// Nothing there, or more than [`HostPattern::MAX_CHARS`].
    #[error("a pattern of hosts has 1 to 128 characters, this one has {0}")]
    Length(usize),
    /// A character that no host name holds, so that it would never match.
    #[error("no host name holds {0:?}, so the pattern would match none; write a name, with * and ? as wildcards")]
    Forbidden(char),
}

impl HostPattern {
    /// The longest pattern, in characters.
    pub const MAX_CHARS: usize = 128;

    /// Checks a pattern.
    ///
    /// # Errors
    /// [`InvalidHostPattern`] says what is wrong with it.
    pub fn new(pattern: impl Into<String>) -> Result<Self, InvalidHostPattern> {
        let pattern = pattern.into();
        let chars = pattern.chars().count();
        if chars == 0 || chars > Self::MAX_CHARS {
            return Err(InvalidHostPattern::Length(chars));
        }
        let forbidden =
            |c: &char| matches!(c, '/' | '@' | '[' | ']' | '{' | '}') || c.is_whitespace() || c.is_control();
        match pattern.chars().find(forbidden) {
            Some(c) => Err(InvalidHostPattern::Forbidden(c)),
            None => Ok(Self(pattern)),
        }
    }

    /// The pattern as typed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a host is meant.
    pub fn matches(&self, host: &HostName) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = host.as_str().chars().collect();
        let (mut at, mut seen) = (0, 0);
        // Where the last star stands, and how much of the name it has taken so far.
        let mut star: Option<(usize, usize)> = None;
        while seen < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, seen));
                    at += 1;
                }
                Some(c) if *c == '?' || *c == name[seen] => {
                    at += 1;
                    seen += 1;
                }
                _ => {
                    let Some((place, taken)) = star else { return false };
                    star = Some((place, taken + 1));
                    at = place + 1;
                    seen = taken + 1;
                }
            }
        }
        pattern[at..].iter().all(|c| *c == '*')
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        let matches = |pattern: &str, host: &str| {
            HostPattern::new(pattern).expect("a pattern").matches(&HostName::new(host).expect("a name"))
        };
        for (pattern, host) in [
            ("web-1", "web-1"),
            ("web-*", "web-1"),
            ("web-*", "web-"),
            ("*", "a"),
            ("*-eu-*", "web-us-eu-3"),
            ("db?", "db1"),
            ("*a*b", "xaxbxb"),
        ] {
            assert!(matches(pattern, host), "{pattern} {host}");
        }
        for (pattern, host) in
            [("web-1", "web-10"), ("web-*", "db-1"), ("db?", "db"), ("*a*b", "xaxbx"), ("WEB", "web")]
        {
            assert!(!matches(pattern, host), "{pattern} {host}");
        }
    }

    #[test]
    fn what_could_match_no_host_is_refused() {
        for pattern in ["", "web 1", "web/1", "web-[12]", "{a,b}"] {
            assert!(HostPattern::new(pattern).is_err(), "{pattern}");
        }
    }
}

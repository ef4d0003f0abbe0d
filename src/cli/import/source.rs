//! A crontab as it lies there: its bytes, its lines, and which form it has.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::entry;
use super::note::{Kind, Note};
use crate::cli::Failure;

/// More than any crontab; a device or a log named by mistake must not fill the memory.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Whether its lines name a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `crontab -e`: no user column.
    User,
    /// `/etc/crontab`, `/etc/cron.d`: a user between fields and command.
    System,
}

/// A file, or standard input.
#[derive(Debug)]
pub(super) struct Source {
    /// As it was named.
    pub name: String,
    pub form: Form,
    /// The user whose crontab it is, if its path or the command line says so.
    pub owner: Option<String>,
    /// How the form is known.
    pub by: &'static str,
    pub bytes: Vec<u8>,
}

impl Source {
    /// Reads a file, or standard input for `-`. Pipes are fine. `user` is whose it is if it has no user column.
    ///
    /// # Errors
    /// [`Failure`]: usage for a directory and for another user than its path names, else i/o.
    pub(super) fn open(name: &str, is_system: bool, user: Option<&str>) -> Result<Self, Failure> {
        let path = Path::new(name);
        let guessed = Self::guessed(path, is_system).of_user(name, user)?;
        let bytes = if name == "-" {
            limited(io::stdin().lock())
        } else if path.is_dir() {
            let remedy = format!("name its files, as in {}/*", name.trim_end_matches('/'));
            return Err(Failure::usage(format!("{name} is a directory; {remedy}")));
        } else {
            File::open(path).and_then(limited)
        };
        let bytes = bytes.map_err(|error| Failure::io(format!("{name} can't be read: {error}")))?;
        Ok(Self { name: name.to_owned(), bytes, ..guessed })
    }

    fn of_user(self, name: &str, user: Option<&str>) -> Result<Self, Failure> {
        let Some(user) = user.filter(|_| self.form == Form::User) else { return Ok(self) };
        match &self.owner {
            Some(owner) if owner != user => {
                let wrong = format!("{name} is the crontab of {owner} by its path, and not of {user}");
                Err(Failure::usage(format!("{wrong}; leave --user out, or import the files one by one")))
            }
            _ => Ok(Self { owner: Some(user.to_owned()), by: "--user", ..self }),
        }
    }

    fn guessed(path: &Path, is_system: bool) -> Self {
        let is_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
        let (form, by) = if is_system {
            (Form::System, "--system")
        } else if path.ends_with("etc/crontab") || is_in("etc/cron.d") {
            (Form::System, "guessed from its path")
        } else {
            (Form::User, "write --system if there is one")
        };
        let is_spool = form == Form::User && (is_in("cron/crontabs") || is_in("spool/cron"));
        let owner = path.file_name().filter(|_| is_spool).and_then(|name| entry::user(name.to_str()?).ok());
        Self { name: String::new(), form, owner, by, bytes: Vec::new() }
    }

    /// A text as if it were a file.
    #[cfg(test)]
    pub(super) fn of_text(path: &Path, text: &str) -> Self {
        Self { name: path.display().to_string(), bytes: text.as_bytes().to_vec(), ..Self::guessed(path, false) }
    }

    /// What it was taken for, in a line.
    pub(super) fn taken_for(&self) -> String {
        let what = match (self.form, &self.owner) {
            (Form::System, _) => "a system crontab, with a user column".to_owned(),
            (Form::User, Some(owner)) => format!("the crontab of {owner}, without a user column"),
            (Form::User, None) => "a user's crontab, without a user column".to_owned(),
        };
        format!("{}: read as {what} ({})", self.name, self.by)
    }

    /// Its lines with their numbers, without line ends; what of a line is no text stands in its place.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, Result<&str, &'static str>)> {
        let bytes = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes);
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        lines.map(text).enumerate().map(|(index, line)| (index + 1, line))
    }

    /// What concerns the file as a whole.
    pub(super) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut note = |line: Option<usize>, what: &str, remedy: &str| {
            notes.push(Note::new(line, Kind::Differs, what, remedy));
        };
        if self.bytes.starts_with(b"\xef\xbb\xbf") {
            note(Some(1), "starts with a byte order mark, which cron takes for a part of the line", "it was left out");
        }
        if self.bytes.windows(2).any(|pair| pair == b"\r\n") {
            let what = "lines end with CR LF: cron hands the CR to the command, and refuses a blank line";
            note(None, what, "the CRs were left out");
        }
        if !self.bytes.is_empty() && !self.bytes.ends_with(b"\n") {
            let what = "the last line has no line feed, so Debian's cron never read it";
            note(Some(self.lines().count()), what, "remove its job if it isn't wanted");
        }
        if self.is_left_out_by_debian() {
            let what = "Debian's cron reads no file of cron.d with such a name";
            note(None, what, "remove its jobs if they aren't wanted");
        }
        notes
    }

    /// Editors and packages leave `x.bak` and `x~` there.
    fn is_left_out_by_debian(&self) -> bool {
        let path = Path::new(&self.name);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        path.parent().is_some_and(|parent| parent.ends_with("etc/cron.d")) && !name.chars().all(is_plain)
    }
}

fn limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 16 MiB, so no crontab"));
    }
    Ok(bytes)
}

fn text(line: &[u8]) -> Result<&str, &'static str> {
    match std::str::from_utf8(line) {
        Err(_) => Err("not UTF-8; save the file as UTF-8"),
        Ok(text) if text.contains('\0') => Err("holds a NUL character, at which cron stops; remove it"),
        Ok(text) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, bytes: &[u8]) -> Source {
        Source { name: name.to_owned(), bytes: bytes.to_vec(), ..Source::guessed(Path::new(name), false) }
    }

    #[test]
    fn the_form_and_the_user_are_guessed_from_the_path() {
        for (name, form, owner) in [
            ("/etc/crontab", Form::System, None),
            ("/mnt/old/etc/cron.d/php", Form::System, None),
            ("crontab", Form::User, None),
            ("/srv/cron.d/php", Form::User, None),
            ("/var/spool/cron/crontabs/joe", Form::User, Some("joe")),
            ("/var/spool/cron/joe", Form::User, Some("joe")),
            ("-", Form::User, None),
        ] {
            let source = source(name, b"");
            assert_eq!((source.form, source.owner.as_deref()), (form, owner), "{name}");
        }
        assert_eq!(Source::guessed(Path::new("x"), true).form, Form::System);
    }

    #[test]
    fn lines_lose_their_ends_and_keep_their_numbers() {
        let source = source("x", b"\xef\xbb\xbfa\r\n\nb\xff\nc\0d\ne");
        let lines: Vec<_> = source.lines().map(|(number, line)| (number, line.ok())).collect();
        assert_eq!(lines, [(1, Some("a")), (2, Some("")), (3, None), (4, None), (5, Some("e"))]);
        assert_eq!(source.notes().iter().map(|note| note.line).collect::<Vec<_>>(), [Some(1), None, Some(5)]);
    }

    #[test]
    fn a_well_formed_file_has_no_notes_and_one_that_debian_leaves_out_has_one() {
        assert_eq!(source("/etc/cron.d/php", b"# x\n").notes().len(), 0);
        assert_eq!(source("/etc/cron.d/php.bak", b"# x\n").notes().len(), 1);
        assert_eq!(source("x", b"").lines().count(), 1);
    }
}

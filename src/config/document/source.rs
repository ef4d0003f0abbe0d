use std::cell::OnceCell;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::OFlags;

use crate::config::problem::{Position, Problem, Scope};

/// One file and its text.
#[derive(Debug)]
pub struct Source {
    /// Its name, as it was given.
    pub path: PathBuf,
    /// What its problems put out of use.
    pub scope: Scope,
    /// All of it.
    pub text: String,
    /// Where each line begins; made when the first place in the text is asked for.
    lines: OnceCell<Vec<usize>>,
}

impl Source {
    /// More than any schedule needs; a device or a log named by mistake must not fill the memory.
    const MAX_BYTES: u64 = 16 * 1024 * 1024;

    /// Reads a file whole. There can be a source *and* problems: a file that is too open is read on,
    /// so that everything is told at once.
    pub fn read(path: &Path, scope: Scope, root: bool) -> (Option<Rc<Self>>, Vec<Problem>) {
        let problem = |wrong: String, remedy: &str| Problem::of_file(scope.clone(), path.to_owned(), wrong, remedy);
        let (metadata, bytes) = match read_bytes(path) {
            Ok(read) => read,
            Err(error) => {
                let refused = problem(format!("can't be read: {error}"), remedy_of(error.kind(), &scope));
                return (None, vec![refused]);
            }
        };
        let mut problems = if root { unsafe_as_root(path, &scope, &metadata) } else { Vec::new() };
        if bytes.len() as u64 > Self::MAX_BYTES {
            problems.push(problem("is larger than 16 MiB".to_owned(), "name a schedule file"));
            return (None, problems);
        }
        match String::from_utf8(bytes) {
            Ok(text) => (Some(Rc::new(Self::new(path, scope, text))), problems),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let readable = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
                let position = Some(Self::new(path, scope.clone(), readable).position(at));
                let not_utf8 = problem("not UTF-8 from here on".to_owned(), "save the file as UTF-8");
                problems.push(Problem { position, ..not_utf8 });
                (None, problems)
            }
        }
    }

    /// A text that lies in no file.
    pub fn of_text(path: &Path, scope: Scope, text: String) -> Rc<Self> {
        Rc::new(Self::new(path, scope, text))
    }

    fn new(path: &Path, scope: Scope, text: String) -> Self {
        Self { path: path.to_owned(), scope, text, lines: OnceCell::new() }
    }

    /// Where a byte of the text stands. Thousands of problems may ask, so the lines are counted once.
    pub fn position(&self, at: usize) -> Position {
        let starts = self.lines.get_or_init(|| {
            let feeds = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(feeds.map(|(feed, _)| feed + 1)).collect()
        });
        let line = starts.partition_point(|start| *start <= at);
        let before = &self.text.as_bytes()[starts[line - 1]..at.min(self.text.len())];
        Position { line, column: 1 + String::from_utf8_lossy(before).chars().count() }
    }
}

/// What root must not run: whoever owns or writes the file decides what that is.
pub fn unsafe_as_root(path: &Path, scope: &Scope, metadata: &Metadata) -> Vec<Problem> {
    let problem = |wrong: String, command: &str| {
        let remedy = format!("{command} {}", path.display());
        Problem::of_file(scope.clone(), path.to_owned(), wrong, remedy)
    };
    let owned = foreign(metadata.uid()).map(|wrong| problem(wrong, "chown root"));
    let open = too_open(metadata.mode()).map(|wrong| problem(wrong, "chmod go-w"));
    owned.into_iter().chain(open).collect()
}

fn foreign(uid: u32) -> Option<String> {
    (uid != 0).then(|| format!("owned by user {uid}, and its jobs would run as root"))
}

fn too_open(mode: u32) -> Option<String> {
    const GROUP_OR_OTHERS: u32 = 0o022;
    (mode & GROUP_OR_OTHERS != 0).then(|| {
        format!("writable by others than its owner (mode {:04o}), and its jobs would run as root", mode & 0o7777)
    })
}

/// The metadata, taken from the descriptor that is read and not from a name that can change, and the bytes.
fn read_bytes(path: &Path) -> io::Result<(Metadata, Vec<u8>)> {
    // Without it, opening a named pipe waits for a writer for ever. Regular files don't heed it.
    let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag of open(2) is an int");
    let file = fs::OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // With room for all of it, and one byte more, the end is seen at once.
    let room = usize::try_from(metadata.len().min(Source::MAX_BYTES)).unwrap_or_default() + 1;
    let mut bytes = Vec::with_capacity(room);
    file.take(Source::MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((metadata, bytes))
}

fn remedy_of(kind: io::ErrorKind, scope: &Scope) -> &'static str {
    match (kind, scope) {
        (io::ErrorKind::NotFound, Scope::Settings) => "create it, or name another with --config FILE",
        (io::ErrorKind::PermissionDenied, _) => "let the user that runs cronlatch read it",
        (_, Scope::Settings) => "name a schedule file with --config FILE",
        (_, Scope::JobFile(_)) => "replace it by a TOML file, or remove it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let position = |text: &str, at| Source::new(Path::new("a"), Scope::Settings, text.to_owned()).position(at);
        assert_eq!(position("", 0), Position { line: 1, column: 1 });
        assert_eq!(position("a\nüüx\n", 6), Position { line: 2, column: 3 });
        assert_eq!(position("a\nüüx\n", 7), Position { line: 2, column: 4 });
        assert_eq!(position("a\n", 2), Position { line: 2, column: 1 });
        assert_eq!(position("a\n\n", 99), Position { line: 3, column: 1 }, "past the end is the end");
    }

    #[test]
    fn a_file_that_others_own_or_write_is_not_for_root() {
        assert!(too_open(0o100664).is_some() && too_open(0o100646).is_some());
        assert!(too_open(0o100644).is_none() && too_open(0o100600).is_none());
        assert!(foreign(1000).is_some_and(|wrong| wrong.contains("1000")) && foreign(0).is_none());
    }
}

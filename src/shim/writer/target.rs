use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::OFlags;

use super::lock::{Hold, Locked};
use super::rotation::{fitting, prune, shift};
use crate::job::OutputKeep;

/// How long a file that can't be opened, or not be rotated, is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// How often a file is opened anew because others rotate it, before it is written to as it is.
const MOST_TURNS: u32 = 8;

/// The file that is written to, across its rotations.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) path: &'a Path,
    keep: &'a OutputKeep,
    file: Option<File>,
    /// Whether the last byte written ends no line.
    is_in_line: bool,
    /// Whether a line feed is due, for what stands before is a line without an end.
    is_torn: bool,
    /// Whether its predecessors have been looked through since it is the newest.
    is_pruned: bool,
    /// Until when it is not opened, and not rotated.
    closed_until: Option<Instant>,
    unrotated_until: Option<Instant>,
    /// Why it could not be rotated last; taken by the writer, to be said once.
    pub(super) unrotated_because: Option<io::Error>,
}

impl<'a> Target<'a> {
    pub(super) fn new(path: &'a Path, keep: &'a OutputKeep) -> Self {
        Self {
            path,
            keep,
            file: None,
            is_in_line: false,
            is_torn: false,
            is_pruned: false,
            closed_until: None,
            unrotated_until: None,
            unrotated_because: None,
        }
    }

    /// Appends some of the bytes, and says how many; not 0, unless there are none.
    ///
    /// # Errors
    /// When nothing can be written now. It may be tried again at any time.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let appended = self.try_append(bytes);
        match &appended {
            Ok(size) => self.is_in_line = bytes[..*size].last().is_some_and(|byte| *byte != b'\n'),
            Err(error) => {
                // What comes next is not the rest of this line.
                self.is_torn |= std::mem::take(&mut self.is_in_line);
                // A full disk is the same disk later; anything else may be mended by opening it anew.
                if !matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                    self.file = None;
                }
            }
        }
        appended
    }

    fn try_append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for turn in 0.. {
            let file = self.take_open()?;
            let locked = Locked::try_for(&file, Hold::ToWrite);
            let metadata = file.metadata()?;
            if turn < MOST_TURNS && !is_at(self.path, &metadata) {
                // Somebody has rotated it.
                continue;
            }
            let may_rotate = turn < MOST_TURNS && !is_before(self.unrotated_until);
            let size = if may_rotate { fitting(bytes, metadata.len(), self.keep.size) } else { bytes.len() };
            if size == 0 {
                drop(locked);
                self.rotate(file);
                continue;
            }
            let written = self.write_to(&file, &bytes[..size]);
            drop(locked);
            self.file = Some(file);
            return written;
        }
        unreachable!("the last turn writes")
    }

    fn write_to(&mut self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        if self.is_torn {
            write(file, b"\n")?;
            self.is_torn = false;
        }
        write(file, bytes)
    }

    /// Makes room for a new file, unless somebody else has. If that can't be, the old one grows.
    fn rotate(&mut self, file: File) {
        let rotated = match Locked::try_for(&file, Hold::ToRotate) {
            Some(_locked) => match file.metadata() {
                Ok(metadata) if !is_at(self.path, &metadata) => Ok(()),
                Ok(_) => shift(self.path, self.keep.files),
                Err(error) => Err(error),
            },
            None => Err(io::Error::new(io::ErrorKind::WouldBlock, "another process holds its lock")),
        };
        self.is_pruned = false;
        if let Err(error) = rotated {
            self.unrotated_until = Some(Instant::now() + LEFT_ALONE);
            self.unrotated_because = Some(error);
            self.file = Some(file);
        }
    }

    fn take_open(&mut self) -> io::Result<File> {
        if let Some(file) = self.file.take() {
            return Ok(file);
        }
        if is_before(self.closed_until) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "the file could not be opened a moment ago"));
        }
        let opened = open(self.path);
        let file = opened.inspect_err(|_| self.closed_until = Some(Instant::now() + LEFT_ALONE))?;
        self.closed_until = None;
        if !std::mem::replace(&mut self.is_pruned, true) {
            // What can't be removed now is tried again after the next rotation.
            prune(self.path, self.keep, SystemTime::now()).ok();
        }
        self.is_torn = ends_in_line(self.path);
        Ok(file)
    }
}

/// Opens a regular file for appending; makes it and its directories if they are missing.
fn open(path: &Path) -> io::Result<File> {
    // Not blocking, for a named pipe without a reader would hang it.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut how = OpenOptions::new();
    how.append(true).create(true).mode(0o640).custom_flags(flags.bits().cast_signed());
    let file = match how.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
            how.open(path)?
        }
        opened => opened?,
    };
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
    }
}

/// Whether an open file is still the one that its path names.
fn is_at(path: &Path, open: &Metadata) -> bool {
    let named = path.symlink_metadata();
    named.is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino()))
}

/// Whether a file's last byte ends no line; unknown, if it can't be read, counts as a whole line.
fn ends_in_line(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    last().is_ok_and(|last| last != b'\n')
}

/// One write, not interrupted and not empty.
fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => return written,
        }
    }
}

fn is_before(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() < until)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::rotation::numbered;
    use super::*;

    #[test]
    fn who_comes_second_to_a_rotation_leaves_the_new_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.log");
        let keep = OutputKeep { size: 10, files: 3, age: None };
        let mut first = Target::new(&path, &keep);
        first.append(b"123456789\n").unwrap();
        let mut second = Target::new(&path, &keep);
        let file = second.take_open().unwrap();
        first.append(b"new\n").unwrap();
        second.rotate(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        assert!(!numbered(&path, 2).exists());
    }
}

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use crate::job::OutputKeep;

/// Rotated files beyond this number are not looked for: `log.2027` and `log.20270131` are not ours.
const HIGHEST: u32 = 999;

/// How much of `bytes` goes into a file that has `size` bytes of at most `most`: whole lines, if any. 0:
/// nothing, it is to be rotated first.
pub(super) fn fitting(bytes: &[u8], size: u64, most: u64) -> usize {
    let room = usize::try_from(most.saturating_sub(size)).unwrap_or(usize::MAX);
    if bytes.len() <= room {
        return bytes.len();
    }
    match bytes[..room].iter().rposition(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        // A line that fits into no file goes on in the next one.
        None if size == 0 => room.max(1),
        None => 0,
    }
}

/// Renames a file to `FILE.1`, its predecessors to the next numbers, and removes the last of them.
///
/// # Errors
/// When the directory can't be changed. What has been renamed until then stays so.
pub(super) fn shift(path: &Path, files: u32) -> io::Result<()> {
    if files == 0 {
        return fs::remove_file(path);
    }
    let is_free = |number: &u32| fs::symlink_metadata(numbered(path, *number)).is_err();
    let free = (1..files).find(is_free).unwrap_or(files);
    for number in (1..free).rev() {
        fs::rename(numbered(path, number), numbered(path, number + 1))?;
    }
    fs::rename(path, numbered(path, 1))
}

/// Removes rotated files beyond the count, and those that were written too long ago.
///
/// # Errors
/// The first file that can't be removed, or the directory that can't be read; the others are removed.
pub(super) fn prune(path: &Path, keep: &OutputKeep, now: SystemTime) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let mut result = Ok(());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(number) = number_of(&entry.file_name(), name) else { continue };
        let is_surplus = number > keep.files || is_older(&entry, keep, now);
        if is_surplus && let Err(error) = fs::remove_file(entry.path()) {
            // Another writer may be about the same.
            let is_gone = error.kind() == io::ErrorKind::NotFound;
            result = if is_gone { result } else { result.and(Err(error)) };
        }
    }
    result
}

fn is_older(entry: &fs::DirEntry, keep: &OutputKeep, now: SystemTime) -> bool {
    let written = entry.metadata().and_then(|metadata| metadata.modified());
    let age = written.ok().and_then(|written| now.duration_since(written).ok());
    keep.age.zip(age).is_some_and(|(most, age)| age > most)
}

/// The number that a file of the directory has as a rotated one.
fn number_of(entry: &OsStr, name: &OsStr) -> Option<u32> {
    let rest = entry.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b".")?;
    let digits = str::from_utf8(rest).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let number = digits.parse().ok().filter(|number| (1..=HIGHEST).contains(number))?;
    (!digits.starts_with('0')).then_some(number)
}

pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut numbered = path.as_os_str().to_owned();
    numbered.push(format!(".{number}"));
    numbered.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_whole_lines_up_to_its_size() {
        let lines = b"one\ntwo\nthree\n";
        assert_eq!(fitting(lines, 0, 100), 14);
        assert_eq!(fitting(lines, 86, 100), 14);
        assert_eq!(fitting(lines, 87, 100), 8);
        assert_eq!(fitting(lines, 93, 100), 4);
        assert_eq!(fitting(lines, 97, 100), 0, "it is rotated first");
        assert_eq!(fitting(lines, 500, 100), 0, "it was made by somebody else");
        assert_eq!(fitting(b"long line\n", 0, 4), 4, "where a line end is not possible");
        assert_eq!(fitting(b"long", 0, 0), 1, "it goes on in any case");
    }

    #[test]
    fn only_numbers_make_a_rotated_file() {
        let number = |entry: &str| number_of(entry.as_ref(), "a.log".as_ref());
        assert_eq!((number("a.log.1"), number("a.log.42")), (Some(1), Some(42)));
        for other in ["a.log", "a.log.", "a.log.0", "a.log.01", "a.log.1.gz", "a.log.2027", "a.log.+1", "b.log.1"] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}

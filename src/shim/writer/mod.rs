//! What the process does that writes a job's output to files, as the job's own user: a file system that
//! hangs, or a directory with a trap in it, meets this process and never the daemon.
//!
//! Synchronous and of one thread. It promises that
//! - its input is read to the end whatever becomes of the files, so that the job never waits for a disk
//!   that is full; what could not be written is counted and said on standard error, and writing goes on
//!   when there is room again;
//! - a file holds whole lines of each run, also if two runs write it at once, as long as lines have at
//!   most 64 KiB;
//! - a file is rotated, in the middle of a run too, before it would grow beyond its size: `FILE` becomes
//!   `FILE.1`, `FILE.1` becomes `FILE.2`. Between two lines, unless one line is longer than that.
//!
//! What it does *not* do: remove files of other names, such as those of yesterday if the pattern holds
//! `{date}`; write through a symbolic link, or to anything that is no regular file.

mod lock;
mod rotation;
mod target;

use std::io::{self, Read, Write};
use std::path::Path;

use crate::job::OutputKeep;
use target::Target;

/// The longest line that is certainly written in one piece.
const LONGEST_LINE: usize = 64 * 1024;

/// What became of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How many bytes of it are in files.
    pub bytes: u64,
    /// How many are not.
    pub lost: u64,
}

struct Writer<'a, C> {
    target: Target<'a>,
    written: Written,
    /// The first cause of a loss.
    cause: Option<String>,
    /// Whether it was said that the file can't be rotated.
    growth_is_said: bool,
    complaints: C,
}

/// Writes `input` to the end of `path`, and keeps of it and its rotated predecessors what `keep` says.
/// Missing directories are made (0755), the file too (0640). Returns at the end of the input.
///
/// # Errors
/// When the input can't be read. Files that can't be written are no error, but a loss.
pub fn write_files(input: impl Read, path: &Path, keep: &OutputKeep) -> io::Result<Written> {
    Writer::new(path, keep, io::stderr()).drain(input)
}

impl<'a, C: Write> Writer<'a, C> {
    fn new(path: &'a Path, keep: &'a OutputKeep, complaints: C) -> Self {
        Self {
            target: Target::new(path, keep),
            written: Written::default(),
            cause: None,
            growth_is_said: false,
            complaints,
        }
    }

    fn drain(mut self, mut input: impl Read) -> io::Result<Written> {
        let mut buffer = vec![0; LONGEST_LINE];
        let mut held = 0;
        loop {
            let size = match input.read(&mut buffer[held..]) {
                Ok(0) => break,
                Ok(size) => size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            held += size;
            let whole = match buffer[..held].iter().rposition(|byte| *byte == b'\n') {
                Some(at) => at + 1,
                None if held == buffer.len() => held,
                None => 0,
            };
            self.write(&buffer[..whole]);
            buffer.copy_within(whole..held, 0);
            held -= whole;
        }
        self.write(&buffer[..held]);
        if let Some(cause) = self.cause.take() {
            self.say(&format!("{} bytes of output were lost: {cause}", self.written.lost));
        }
        Ok(self.written)
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.target.append(bytes) {
                Ok(size) => {
                    self.written.bytes += size as u64;
                    bytes = &bytes[size..];
                }
                Err(error) => {
                    self.written.lost += bytes.len() as u64;
                    if self.cause.is_none() {
                        self.say(&format!("output is being lost: {error}"));
                        self.cause = Some(error.to_string());
                    }
                    break;
                }
            }
        }
        if let Some(error) = self.target.unrotated_because.take()
            && !std::mem::replace(&mut self.growth_is_said, true)
        {
            self.say(&format!("it grows beyond its size, for it can't be rotated: {error}"));
        }
    }

    fn say(&mut self, what: &str) {
        // There is nobody left to be told.
        writeln!(self.complaints, "{}: {what}", self.target.path.display()).ok();
    }
}

#[cfg(test)]
mod tests;

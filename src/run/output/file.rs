use std::path::PathBuf;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::lines::Block;
use super::losses::{Amount, Losses};
use super::sink::Source;
use crate::events::{self, OutputDropped};

/// How long the writer may take nothing before output is dropped: a disk that is busy recovers within it.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// Where a run's output goes if its job writes to files.
#[derive(Debug)]
pub(in crate::run) struct FileOutput {
    /// The file that the writer process writes to; see [`OutputFile::path`](crate::job::OutputFile::path).
    pub(in crate::run) path: PathBuf,
    /// Its standard input.
    pub(in crate::run) stdin: pipe::Sender,
}

/// Sends blocks to the process that writes files as the job's user.
#[derive(Debug)]
pub(in crate::run) struct FileSink {
    pub(super) source: Source,
    pub(super) losses: Losses,
    /// `None` once the writer is gone.
    stdin: Option<pipe::Sender>,
    /// Whether it took nothing for so long that it is not waited for.
    is_stuck: bool,
    /// Whether the last byte that it took ends no line.
    is_in_line: bool,
}

impl FileSink {
    pub(super) fn new(source: Source, stdin: Option<pipe::Sender>) -> Self {
        Self { source, losses: Losses::default(), stdin, is_stuck: false, is_in_line: false }
    }

    /// Gives a block to the writer, and drops what it doesn't take.
    ///
    /// # Cancel safety
    /// What it has not taken stays pending.
    pub(super) async fn take(&mut self, block: Block<'_>) {
        if self.losses.is_due() {
            self.tell();
        }
        self.losses.pending.add(block.amount());
        // What comes after a gap begins with a line of its own.
        let is_whole = !(self.is_stuck && self.is_in_line) || self.write(b"\n").await;
        if is_whole && self.write(block.bytes).await {
            // A last line without its end has no line feed to be counted by.
            let had_gap = self.losses.has_gap();
            if !had_gap {
                self.losses.pending = Amount::default();
            }
        } else {
            self.losses.drop_pending();
        }
    }

    /// Says what was dropped.
    pub(super) fn tell(&mut self) {
        let why = if self.stdin.is_none() { OutputDropped::WriterIsGone } else { OutputDropped::WriterIsStuck };
        if let Some(lost) = self.losses.take() {
            events::run_output_dropped(self.source.label(), lost.lines, lost.bytes, why);
        }
    }

    /// Whether the writer took all of it.
    async fn write(&mut self, mut bytes: &[u8]) -> bool {
        while let Some(last) = bytes.last() {
            let Some(stdin) = &self.stdin else { return false };
            match timeout(if self.is_stuck { Duration::ZERO } else { STUCK_AFTER }, write(stdin, bytes)).await {
                Ok(Some(size)) => {
                    let ends_here = size == bytes.len();
                    self.is_in_line = !(ends_here && *last == b'\n');
                    self.is_stuck = false;
                    self.losses.pending.take_off(Amount::of(&bytes[..size]));
                    bytes = &bytes[size..];
                }
                Ok(None) => self.stdin = None,
                Err(_) => {
                    self.is_stuck = true;
                    return false;
                }
            }
        }
        true
    }
}

/// Writes some of the bytes, once there is room for any. `None`: the reader is gone.
async fn write(stdin: &pipe::Sender, bytes: &[u8]) -> Option<usize> {
    loop {
        stdin.writable().await.ok()?;
        match stdin.try_write(bytes) {
            Ok(0) => return None,
            Ok(size) => return Some(size),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

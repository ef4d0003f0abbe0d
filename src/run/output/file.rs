use std::path::PathBuf;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::lines::Block;
use super::losses::{Amount, Losses};
use super::sink::Source;
use crate::events::{self, OutputDropped};

/// How long the writer may take nothing before output is dropped: a disk that is busy recovers within it.
const STUCK_AFTER: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(10) };

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
    /// Of which stream the line is that the last byte it took doesn't end.
    in_line_of: Option<&'static str>,
}

impl FileSink {
    pub(super) fn new(source: Source, stdin: Option<pipe::Sender>) -> Self {
        Self { source, losses: Losses::default(), stdin, is_stuck: false, in_line_of: None }
    }

    /// Gives a block to the writer, and drops what it doesn't take.
    ///
    /// # Cancel safety
    /// What it has not taken stays pending.
    pub(super) async fn take(&mut self, stream: &'static str, block: Block<'_>) {
        if self.losses.is_due() {
            self.tell();
        }
        self.losses.pending.add(block.amount());
        // What comes after a gap, or of the other stream, begins with a line of its own.
        let is_torn = self.in_line_of.is_some_and(|line| self.is_stuck || line != stream);
        let is_apart = !is_torn || block.bytes.is_empty() || self.write(stream, b"\n", Amount::default()).await;
        if !is_apart || !self.write(stream, block.bytes, block.amount()).await {
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

    /// Whether the writer took all of it, which counts for an amount.
    async fn write(&mut self, stream: &'static str, mut bytes: &[u8], mut amount: Amount) -> bool {
        while let Some(last) = bytes.last() {
            let Some(stdin) = &self.stdin else { return false };
            match timeout(if self.is_stuck { Duration::ZERO } else { STUCK_AFTER }, write(stdin, bytes)).await {
                Ok(Some(size)) => {
                    let (taken, left) = bytes.split_at(size);
                    let is_whole = left.is_empty() && *last == b'\n';
                    self.in_line_of = (!is_whole).then_some(stream);
                    self.is_stuck = false;
                    // A last line without its end has no line feed to be counted by.
                    let taken = if left.is_empty() { amount } else { Amount::of(taken) };
                    self.losses.pending.take_off(taken);
                    amount.take_off(taken);
                    bytes = left;
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

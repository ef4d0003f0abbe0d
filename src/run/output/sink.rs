use std::sync::Arc;

use super::file::{FileOutput, FileSink};
use super::lines::Block;
use super::log::LogSink;
use crate::events::{self, RunLabel};
use crate::job::OutputTo;
use crate::lock::FencingToken;
use crate::run::Assignment;

/// Whose output it is.
#[derive(Clone, Debug)]
pub(super) struct Source {
    assignment: Arc<Assignment>,
    token: FencingToken,
}

/// Where a run's output goes.
#[derive(Debug)]
pub(in crate::run) enum Sink {
    /// To the log.
    Log(LogSink),
    /// To the process that writes the job's files.
    File(FileSink),
    /// Nowhere.
    Discard,
}

impl Source {
    pub(super) fn label(&self) -> RunLabel<'_> {
        self.assignment.label(Some(self.token))
    }
}

impl Sink {
    /// The sink that the job names. If it names files and there is none, all of its output is lost, and
    /// that is told: it may be more than the log's readers should see.
    pub(in crate::run) fn of(assignment: &Arc<Assignment>, token: FencingToken, file: Option<FileOutput>) -> Self {
        let source = Source { assignment: assignment.clone(), token };
        match (&assignment.job.output, file) {
            (OutputTo::Log, None) => Self::Log(LogSink::new(source)),
            (OutputTo::Discard, None) => Self::Discard,
            (_, Some(file)) => {
                events::run_output_to_file(source.label(), &file.path);
                Self::File(FileSink::new(source, Some(file.stdin)))
            }
            (OutputTo::File(_), None) => Self::File(FileSink::new(source, None)),
        }
    }

    /// Takes a block of one stream, or drops of it what can't be taken in time.
    ///
    /// # Cancel safety
    /// What was not taken is told as dropped by [`Self::tell`].
    pub(in crate::run) async fn take(&mut self, stream: &'static str, block: Block<'_>) {
        match self {
            Self::Log(log) => log.take(stream, block).await,
            Self::File(file) => file.take(stream, block).await,
            Self::Discard => {}
        }
    }

    /// Waits until something was dropped and it is time to [`Self::tell`]; for ever otherwise.
    ///
    /// # Cancel safety
    /// Safe.
    pub(in crate::run) async fn has_to_tell(&self) {
        match self {
            Self::Log(log) => log.losses.due().await,
            Self::File(file) => file.losses.due().await,
            Self::Discard => std::future::pending().await,
        }
    }

    /// Says what was dropped, if anything was.
    pub(in crate::run) fn tell(&mut self) {
        match self {
            Self::Log(log) => log.tell(),
            Self::File(file) => file.tell(),
            Self::Discard => {}
        }
    }
}

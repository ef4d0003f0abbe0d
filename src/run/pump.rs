use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};

use super::Assignment;
use super::output::{Buffer, FileOutput, Sink, Tail};
use crate::lock::FencingToken;
use crate::shim::Output;

/// How long output is still read after the process has ended. All that could write is dead then, so the
/// end comes at once; unless it is not, or what takes the output is slow.
const AFTER_EXIT: Duration = Duration::from_secs(1);

/// How long what takes the output is waited for with lines that have no end, when the time is up.
const UNENDED: Duration = Duration::from_millis(100);

/// Reads a job's output and passes it on, apart from the run itself: a job that writes fast delays no
/// deadline, and one task reads both streams in turn, so that neither waits for the other. Dropped, it
/// reads no more.
#[derive(Debug)]
pub(super) struct Pump {
    /// Its one task, which gives the tail.
    reader: JoinSet<Option<String>>,
    /// Told, or dropped, when the process has ended.
    ended: oneshot::Sender<()>,
}

struct Reader {
    stdout: Stream,
    stderr: Stream,
    sink: Sink,
    tail: Tail,
}

struct Stream {
    name: &'static str,
    /// `None` at its end.
    pipe: Option<pipe::Receiver>,
    buffer: Buffer,
}

impl Pump {
    /// Begins to read. `file` is there if the job's output goes to files.
    pub(super) fn start(
        output: Output,
        assignment: &Arc<Assignment>,
        token: FencingToken,
        file: Option<FileOutput>,
    ) -> Self {
        Self::reading(output, Sink::of(assignment, token, file))
    }

    /// Reads output of which only the last lines are of use: nothing of it is logged.
    pub(super) fn for_tail_alone(output: Output) -> Self {
        Self::reading(output, Sink::Discard)
    }

    fn reading(output: Output, sink: Sink) -> Self {
        let reader = Reader {
            stdout: Stream::new("stdout", output.stdout),
            stderr: Stream::new("stderr", output.stderr),
            sink,
            tail: Tail::default(),
        };
        let (ended, process_ended) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(reader.run(process_ended));
        Self { reader: task, ended }
    }

    /// Reads what is left and gives the last lines. Call it once the process has ended. It takes 1.1
    /// seconds at most.
    ///
    /// # Cancel safety
    /// Dropped, what is left is not read.
    pub(super) async fn finish(mut self) -> Option<String> {
        // The reader may be at its end already.
        self.ended.send(()).ok();
        // A reader that panicked was told by the hook, and has no tail.
        self.reader.join_next().await.and_then(Result::ok).flatten()
    }
}

impl Reader {
    async fn run(mut self, process_ended: oneshot::Receiver<()>) -> Option<String> {
        let time_is_up = async {
            // Dropped means the same: nobody waits for the process any more.
            process_ended.await.ok();
            sleep(AFTER_EXIT).await;
        };
        tokio::select! {
            () = self.read() => {}
            () = time_is_up => timeout(UNENDED, self.pass_on_rest()).await.unwrap_or_default(),
        }
        self.sink.tell();
        self.tail.text()
    }

    /// Reads both streams to their ends.
    async fn read(&mut self) {
        while self.stdout.pipe.is_some() || self.stderr.pipe.is_some() {
            let stream = tokio::select! {
                () = self.stdout.fill() => &mut self.stdout,
                () = self.stderr.fill() => &mut self.stderr,
                () = self.sink.has_to_tell() => {
                    self.sink.tell();
                    continue;
                }
            };
            pass_on(stream, &mut self.tail, &mut self.sink).await;
            // The heartbeat has its turn after each piece, however much there is to read.
            yield_now().await;
        }
    }

    /// The lines that have no end yet, of streams that somebody keeps open.
    async fn pass_on_rest(&mut self) {
        for stream in [&mut self.stdout, &mut self.stderr] {
            stream.pipe = None;
            pass_on(stream, &mut self.tail, &mut self.sink).await;
        }
    }
}

impl Stream {
    fn new(name: &'static str, pipe: pipe::Receiver) -> Self {
        Self { name, pipe: Some(pipe), buffer: Buffer::default() }
    }

    /// Waits for more of it, or its end; for ever after that.
    ///
    /// # Cancel safety
    /// Safe.
    async fn fill(&mut self) {
        let Some(pipe) = &self.pipe else { return std::future::pending().await };
        // An error ends the stream like its end: nothing more can be expected of it.
        if !matches!(self.buffer.fill(pipe).await, Ok(1..)) {
            self.pipe = None;
        }
    }
}

async fn pass_on(stream: &mut Stream, tail: &mut Tail, sink: &mut Sink) {
    let block = stream.buffer.take(stream.pipe.is_none());
    // First, so that it is there even if the sink is not waited for.
    tail.push(block);
    sink.take(stream.name, block).await;
}

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::Assignment;
use super::output::{Line, Lines, Tail};
use crate::events;
use crate::lock::FencingToken;
use crate::shim::Output;

/// How long output is still read after the process has ended: a descendant may hold the pipe open
/// for ever.
const AFTER_EXIT: Duration = Duration::from_millis(500);

/// How much is read at once.
const PIECE: usize = 16 * 1024;

/// Reads a job's output line by line into the log, apart from the run itself: a job that writes
/// fast delays no deadline. The job never waits for the log, whose queue drops what it can't take.
/// Dropped, it reads no more.
#[derive(Debug)]
pub(super) struct Pump {
    streams: JoinSet<()>,
    tail: Arc<Mutex<Tail>>,
}

/// One stream on its way to the log.
struct Stream {
    name: &'static str,
    assignment: Arc<Assignment>,
    token: FencingToken,
    tail: Arc<Mutex<Tail>>,
}

impl Pump {
    pub(super) fn start(output: Output, assignment: &Arc<Assignment>, token: FencingToken) -> Self {
        let tail = Arc::<Mutex<Tail>>::default();
        let mut streams = JoinSet::new();
        for (name, pipe) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let stream = Stream { name, assignment: assignment.clone(), token, tail: tail.clone() };
            streams.spawn(stream.read(pipe));
        }
        Self { streams, tail }
    }

    /// Reads output of which only the last lines are of use: nothing of it is logged.
    pub(super) fn for_tail_alone(output: Output) -> Self {
        let tail = Arc::<Mutex<Tail>>::default();
        let mut streams = JoinSet::new();
        for pipe in [output.stdout, output.stderr] {
            streams.spawn(keep_tail(pipe, tail.clone()));
        }
        Self { streams, tail }
    }

    /// Reads what is left and gives the last lines. Call it once the process has ended.
    pub(super) async fn finish(mut self) -> Option<String> {
        let deadline = Instant::now() + AFTER_EXIT;
        while let Ok(Some(_)) = timeout_at(deadline, self.streams.join_next()).await {}
        self.streams.abort_all();
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

impl Stream {
    async fn read(self, mut pipe: pipe::Receiver) {
        let mut lines = Lines::default();
        let mut piece = vec![0; PIECE];
        // An error ends the stream like its end: nothing more can be expected of it.
        while let Ok(read @ 1..) = pipe.read(&mut piece).await {
            lines.feed(&piece[..read]).iter().for_each(|line| self.log(line));
        }
        lines.finish().iter().for_each(|line| self.log(line));
    }

    fn log(&self, line: &Line) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(&line.text);
        events::run_output(self.assignment.label(Some(self.token)), self.name, &line.text, line.cut);
    }
}

async fn keep_tail(mut pipe: pipe::Receiver, tail: Arc<Mutex<Tail>>) {
    let mut lines = Lines::default();
    let mut piece = vec![0; PIECE];
    let keep = |line: &Line| tail.lock().unwrap_or_else(PoisonError::into_inner).push(&line.text);
    while let Ok(read @ 1..) = pipe.read(&mut piece).await {
        lines.feed(&piece[..read]).iter().for_each(keep);
    }
    lines.finish().iter().for_each(keep);
}

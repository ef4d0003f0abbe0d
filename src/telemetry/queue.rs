use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use super::OUTPUT;

/// How many bytes of jobs' output may wait for a slow reader.
const OUTPUT_SHARE: usize = 512 * 1024;

/// How many bytes of everything else may; some 10,000 lines.
const EVENTS_SHARE: usize = 4 * 1024 * 1024;

/// What a waiting line takes besides its text: its place in the queue and in the allocator.
const PLACE: usize = 48;

/// How long the end of the log is waited for, when nobody takes it.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Lines on their way to the thread that writes them: one queue, so that they stay in order, in which
/// jobs' output and everything else have a share each. However much a job writes, no event gives way.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// A line has come, or the end.
    filled: Condvar,
    /// The writer has come to the end.
    ended: Condvar,
    /// Bytes of output that wait. Changed under `waiting`; read by [`Queue::has_room_for_output`] without it.
    output: AtomicUsize,
    /// Lines that found their share full.
    dropped: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Line>,
    /// Bytes of all that is no output.
    events: usize,
    is_closed: bool,
    has_ended: bool,
}

#[derive(Debug)]
struct Line {
    text: Box<[u8]>,
    is_output: bool,
}

/// Takes one line, as `tracing_subscriber::fmt` writes it: in one piece.
#[derive(Debug)]
pub(super) struct LineWriter {
    queue: Arc<Queue>,
    is_output: bool,
}

/// The queue's end that subscribers hold.
#[derive(Clone, Debug)]
pub(super) struct Entrance(Arc<Queue>);

impl Line {
    fn weight(&self) -> usize {
        self.text.len() + PLACE
    }
}

impl Queue {
    /// Starts the thread that writes to `to`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(to: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let queue = Arc::<Self>::default();
        let taken = queue.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || taken.write_all(to))?;
        Ok(queue)
    }

    /// Where lines come in.
    pub(super) fn entrance(self: &Arc<Self>) -> Entrance {
        Entrance(self.clone())
    }

    /// Whether a line of output would be taken now. The last one to be may go beyond the share: each
    /// thread by one line.
    pub(super) fn has_room_for_output(&self) -> bool {
        self.output.load(Ordering::Relaxed) < OUTPUT_SHARE
    }

    /// How many lines were dropped.
    pub(super) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Lets the writer write what waits, and waits for it as long as may be.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        self.filled.notify_one();
        drop(self.ended.wait_timeout_while(waiting, LAST_LINES, |waiting| !waiting.has_ended));
    }

    fn push(&self, text: &[u8], is_output: bool) {
        let line = Line { text: text.into(), is_output };
        let mut waiting = self.lock();
        let (taken, share) = if is_output {
            (self.output.load(Ordering::Relaxed), OUTPUT_SHARE)
        } else {
            (waiting.events, EVENTS_SHARE)
        };
        if taken >= share || waiting.is_closed {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if is_output {
            self.output.fetch_add(line.weight(), Ordering::Relaxed);
        } else {
            waiting.events += line.weight();
        }
        waiting.lines.push_back(line);
        self.filled.notify_one();
    }

    /// The thread: one line after another, each in one piece, until the queue is closed and empty.
    fn write_all(&self, mut to: impl Write) {
        let mut waiting = self.lock();
        loop {
            if let Some(line) = waiting.lines.pop_front() {
                drop(waiting);
                // Standard error that can't be written: there is nobody to be told.
                to.write_all(&line.text).ok();
                waiting = self.lock();
                // Only now, so that a line that is being written counts as one that waits.
                if line.is_output {
                    self.output.fetch_sub(line.weight(), Ordering::Relaxed);
                } else {
                    waiting.events -= line.weight();
                }
            } else if waiting.is_closed {
                break;
            } else {
                waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        }
        waiting.has_ended = true;
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> MakeWriter<'a> for Entrance {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> LineWriter {
        LineWriter { queue: self.0.clone(), is_output: false }
    }

    fn make_writer_for(&'a self, line: &Metadata<'_>) -> LineWriter {
        LineWriter { queue: self.0.clone(), is_output: line.target() == OUTPUT }
    }
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.push(line, self.is_output);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    /// A queue whose reader takes nothing before it is read here: not even the pipe has room for all.
    fn stuck() -> (Arc<Queue>, BufReader<io::PipeReader>) {
        let (reader, writer) = io::pipe().unwrap();
        (Queue::start(writer).unwrap(), BufReader::new(reader))
    }

    #[test]
    fn output_that_fills_its_share_takes_no_event_away() {
        let (queue, reader) = stuck();
        let line = [b"output ".as_slice(), &[b'x'; 1000], b"\n"].concat();
        let mut taken = 0;
        // The writer still fills the pipe meanwhile, so it may be some more than the share.
        while queue.dropped() == 0 {
            queue.push(&line, true);
            taken += 1;
        }
        taken -= 1;
        assert!((OUTPUT_SHARE / 1100..2 * OUTPUT_SHARE / 1000).contains(&taken), "{taken}");
        for n in 0..5_000 {
            queue.push(format!("event {n}\n").as_bytes(), false);
        }
        assert_eq!(queue.dropped(), 1);
        let lines = thread::spawn(move || reader.lines().map(Result::unwrap).collect::<Vec<_>>());
        queue.close();
        drop(queue);
        let lines = lines.join().unwrap();
        assert_eq!(lines.len(), taken + 5_000);
        assert_eq!(lines[taken - 1], String::from_utf8_lossy(&line[..line.len() - 1]), "in the order they came");
        assert_eq!(lines[lines.len() - 1], "event 4999");
    }

    #[test]
    fn a_reader_that_takes_nothing_costs_bounded_memory_and_the_end_is_not_waited_for_long() {
        let (queue, reader) = stuck();
        for _ in 0..100_000 {
            queue.push(&[b'x'; 1_000], false);
        }
        assert!(queue.dropped() > 90_000, "{}", queue.dropped());
        assert!(queue.lock().events <= EVENTS_SHARE + 1_000 + PLACE);
        queue.close();
        queue.push(b"late\n", false);
        drop(reader);
    }

    #[test]
    fn room_comes_back_once_lines_are_written() {
        let queue = Queue::start(io::sink()).unwrap();
        for _ in 0..10 {
            queue.push(&vec![b'x'; OUTPUT_SHARE], true);
            while !queue.has_room_for_output() {
                thread::yield_now();
            }
        }
        queue.close();
        assert_eq!((queue.dropped(), queue.output.load(Ordering::Relaxed), queue.lock().events), (0, 0, 0));
    }
}

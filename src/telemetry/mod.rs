//! Beside the house: where log lines go and what they look like. Takes plain values only.
//!
//! Lines pass a bounded queue and a thread of their own: a terminal, pipe or disk that takes no
//! more stops the log, never the daemon. What didn't fit is counted.
//!
//! The queue is our own, for `tracing_appender` bounds lines and not bytes (8,192 lines of 16 KiB are
//! 128 MiB), and knows no difference between the output of a job, which may be dropped, and an event,
//! which must not be because some job is noisy.

mod queue;

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::{Arc, OnceLock};

use queue::{Entrance, Queue};
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::time::ChronoUtc;

/// The target of lines that jobs wrote; they have a share of the queue of their own.
pub const OUTPUT: &str = "cronlatch::events::run::output";

/// The queue of this process, once there is one.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

/// What a line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal and in systemd's journal, JSON elsewhere.
    Auto,
    /// A sentence and `key=value`.
    Text,
    /// One JSON object a line, every field at its top level.
    Json,
}

/// The log of this process. Lines that wait when the process ends without [`Log::finish`] are lost.
#[derive(Debug)]
pub struct Log {
    queue: Arc<Queue>,
}

/// Why the log can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The level is none that is known.
    #[error("log level {level:?}: {source}; write error, warn, info, debug or trace")]
    Level {
        /// What was asked for.
        level: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something else in this process has set one up.
    #[error("a log is set up already")]
    Twice,
    /// There is no thread for it.
    #[error("can't start the log's thread: {0}")]
    Thread(io::Error),
}

impl Log {
    /// How many lines were dropped because nobody took them.
    pub fn dropped_lines(&self) -> usize {
        self.queue.dropped()
    }

    /// Writes what is queued, unless nobody takes it for a second, and ends the log.
    pub fn finish(self) {
        self.queue.close();
    }
}

/// Whether the log takes a line of a job's output now; what is sent to it without room is dropped.
///
/// There is room whenever there is no log.
pub fn output_has_room() -> bool {
    QUEUE.get().is_none_or(|queue| queue.has_room_for_output())
}

/// Sends all events to standard error.
///
/// # Errors
/// [`LogError`] for an unknown level, without a thread, or when called twice.
pub fn start(format: LogFormat, level: &str) -> Result<Log, LogError> {
    let filter = filter(level)?;
    let queue = Queue::start(io::stderr()).map_err(LogError::Thread)?;
    let writer = queue.entrance();
    let terminal = io::stderr().is_terminal();
    let json = match format {
        // Set by systemd where standard error goes to the journal (systemd.exec(5)).
        LogFormat::Auto => !terminal && std::env::var_os("JOURNAL_STREAM").is_none(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    if json {
        start_json(filter, writer)?
    } else {
        start_text(filter, writer, terminal)?
    }
    QUEUE.set(queue.clone()).map_err(|_| LogError::Twice)?;
    Ok(Log { queue })
}

/// Without the driver's lines: they hold statements, notices, and parameters of URLs.
fn filter(level: &str) -> Result<EnvFilter, LogError> {
    let directives = format!("{level},sqlx=off");
    EnvFilter::builder().parse(directives).map_err(|source| LogError::Level { level: level.to_owned(), source })
}

/// Whether colours are wanted, on a terminal or elsewhere (<https://no-color.org>).
pub fn colours(is_terminal: bool) -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !no_color && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn start_json(filter: EnvFilter, writer: Entrance) -> Result<(), LogError> {
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_target(false)
        .with_timer(timer())
        .with_env_filter(filter)
        .with_writer(writer)
        .try_init()
        .map_err(|_| LogError::Twice)
}

fn start_text(filter: EnvFilter, writer: Entrance, terminal: bool) -> Result<(), LogError> {
    // Fields as people read them: what the sentence doesn't say, without the names of this host.
    let fields = debug_fn(text_field);
    tracing_subscriber::fmt()
        .with_ansi(colours(terminal))
        .with_target(false)
        .with_timer(timer())
        .fmt_fields(fields)
        .with_env_filter(filter)
        .with_writer(writer)
        .try_init()
        .map_err(|_| LogError::Twice)
}

fn timer() -> ChronoUtc {
    ChronoUtc::new("%Y-%m-%dT%H:%M:%S%.3fZ".to_owned())
}

fn text_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        // This host's own names, and what the sentence says already.
        "host" | "instance" | "line" | "stream" | "cut" | "attempt" | "scheduled_at" => Ok(()),
        name => {
            let text = format!("{value:?}");
            let plain = text.trim_matches('"');
            let simple = !plain.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\\' | '='));
            write!(writer, " {name}={}", if simple { plain } else { &text })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn the_drivers_own_lines_are_left_out_at_every_level() {
        for level in ["trace", "sqlx=debug", "info,sqlx=warn"] {
            let (reader, writer) = io::pipe().unwrap();
            let subscriber = tracing_subscriber::fmt()
                .with_env_filter(filter(level).unwrap())
                .with_writer(Mutex::new(writer))
                .finish();
            tracing::subscriber::with_default(subscriber, || {
                tracing::warn!(target: "sqlx_postgres::options::parse", "hunter2");
                tracing::error!(target: "sqlx::query", "hunter2");
                tracing::error!(target: "cronlatch::events", "kept if asked for");
            });
            let said = io::read_to_string(reader).unwrap();
            assert!(!said.contains("hunter2"), "{level}: {said}");
            assert_eq!(said.contains("kept"), level != "sqlx=debug", "{level}: {said}");
        }
        assert!(filter("info=loud").is_err());
    }
}

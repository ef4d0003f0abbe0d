//! Beside the house: where log lines go and what they look like. Takes plain values only.
//!
//! Lines pass a bounded queue and a thread of their own: a terminal, pipe or disk that takes no
//! more stops the log, never the daemon. What didn't fit is counted.

use std::fmt;
use std::io::{self, IsTerminal};

use tracing::field::Field;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::time::ChronoUtc;

/// How many lines may wait for a slow reader.
const QUEUED_LINES: usize = 8_192;

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

/// Keeps the log's thread alive; dropped, it writes what is queued.
#[derive(Debug)]
pub struct Log {
    dropped: ErrorCounter,
    guard: WorkerGuard,
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
}

impl Log {
    /// How many lines were dropped because nobody took them.
    pub fn dropped_lines(&self) -> usize {
        self.dropped.dropped_lines()
    }

    /// Writes what is queued, and ends the log.
    pub fn finish(self) {
        drop(self.guard);
    }
}

/// Sends all events to standard error.
///
/// # Errors
/// [`LogError`] for an unknown level, or when called twice.
pub fn start(format: LogFormat, level: &str) -> Result<Log, LogError> {
    let filter = EnvFilter::builder()
        .parse(directives(level))
        .map_err(|source| LogError::Level { level: level.to_owned(), source })?;
    let (writer, guard) = NonBlockingBuilder::default().buffered_lines_limit(QUEUED_LINES).finish(io::stderr());
    let dropped = writer.error_counter();
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
    Ok(Log { dropped, guard })
}

/// Down to `info` only events are logged: the driver would add the database's notices.
fn directives(level: &str) -> String {
    match level {
        "error" | "warn" | "info" => format!("{level},sqlx=off"),
        other => other.to_owned(),
    }
}

fn start_json(filter: EnvFilter, writer: NonBlocking) -> Result<(), LogError> {
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

fn start_text(filter: EnvFilter, writer: NonBlocking, terminal: bool) -> Result<(), LogError> {
    let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // Fields as people read them: what the sentence doesn't say, without the names of this host.
    let fields = debug_fn(text_field);
    tracing_subscriber::fmt()
        .with_ansi(colours)
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

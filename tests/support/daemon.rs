//! The real binary as a daemon: started, listened to, signalled, killed.

use std::io::{BufRead, BufReader, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::wait::{PATIENCE, eventually, eventually_some};

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_cronlatch");

/// One running daemon. Dropping it kills it, without a farewell.
#[derive(Debug)]
pub struct Daemon {
    host: String,
    child: Child,
    log: Log,
}

/// What a daemon has said so far. Clones are the same log; it can outlive its daemon.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    /// Written by the reader's thread; read by the test.
    lines: Vec<Value>,
    /// Set by the reader at end-of-file, when no process holds the daemon's output any more.
    closed: bool,
}

impl Daemon {
    /// Starts `cronlatch daemon --config CONFIG`; its working directory is the configuration's
    /// folder. `host` is what the test calls it.
    ///
    /// With the configuration in a [`Scratch`](super::scratch::Scratch), as in a
    /// [`Fleet`](super::fleet::Fleet), it ends with the test process too.
    pub fn start(host: &str, config: &Path) -> Self {
        Self::start_with(host, config, &[])
    }

    /// As [`Self::start`], with more environment.
    pub fn start_with(host: &str, config: &Path, env: &[(&str, &str)]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["daemon", "--config"]).arg(config).envs(env.iter().copied());
        command.current_dir(config.parent().expect("a file is in a folder"));
        Self::from_command(host, command)
    }

    /// Starts what `command` says: the daemon inside another program, with a faked clock for one.
    pub fn from_command(host: &str, mut command: Command) -> Self {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        command.env("CRONLATCH_LOG_FORMAT", "json").process_group(0).stdin(Stdio::null());
        command.stdout(writer.try_clone().expect("a pipe can be shared")).stderr(writer);
        let child = command.spawn().unwrap_or_else(|e| panic!("can't start {command:?}: {e}"));
        Self { host: host.to_owned(), child, log: Log::read_from(reader) }
    }

    /// What the test calls it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_nonzero().get()
    }

    /// What it has said so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Waits for an event of this name for which `pred` is true, said at any time since the start.
    ///
    /// Panics after [`PATIENCE`], with the whole log.
    #[track_caller]
    pub fn wait_for_event(&self, name: &str, pred: impl Fn(&Value) -> bool) -> Value {
        self.wait_for_event_after(0, name, pred)
    }

    /// As [`Self::wait_for_event`], but only what was said after `mark` (see [`Log::mark`]) counts.
    #[track_caller]
    pub fn wait_for_event_after(&self, mark: usize, name: &str, pred: impl Fn(&Value) -> bool) -> Value {
        let found = || self.log.events_after(mark, name).into_iter().find(&pred);
        eventually_some(self.explained(format!("event {name}")), PATIENCE, found)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|e| panic!("can't send {signal:?} to {}: {e}", self.host));
    }

    /// Kills it with SIGKILL and waits until it is dead. What its jobs do is another question.
    pub fn kill9(&mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }

    /// Waits until it has ended and all it said has been read.
    ///
    /// Panics when `timeout` is over, with the whole log.
    #[track_caller]
    pub fn wait_exit(&mut self, timeout: Duration) -> ExitStatus {
        let what = Explained { what: "the end".to_owned(), host: &self.host, log: &self.log };
        let status = eventually_some(what, timeout, || self.child.try_wait().expect("it is our child"));
        let what = self.explained("end-of-file (a process that the daemon started holds its output)".to_owned());
        eventually(what, PATIENCE, || self.log.is_closed());
        status
    }

    fn explained(&self, what: String) -> Explained<'_> {
        Explained { what, host: &self.host, log: &self.log }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Errors mean that it is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Log {
    /// Every line: an object, or a text if it was no JSON.
    pub fn lines(&self) -> Vec<Value> {
        self.said().lines.clone()
    }

    /// A point in the log, for [`Daemon::wait_for_event_after`].
    pub fn mark(&self) -> usize {
        self.said().lines.len()
    }

    /// The events of this name so far.
    pub fn events(&self, name: &str) -> Vec<Value> {
        self.events_after(0, name)
    }

    /// The events of this name after a point.
    pub fn events_after(&self, mark: usize, name: &str) -> Vec<Value> {
        let said = self.said();
        let after = said.lines.iter().skip(mark);
        after.filter(|line| line.get("event").is_some_and(|event| event == name)).cloned().collect()
    }

    /// The lines that are no JSON: what a panic prints, for one.
    pub fn stray_lines(&self) -> Vec<String> {
        self.said().lines.iter().filter_map(|line| line.as_str().map(str::to_owned)).collect()
    }

    fn is_closed(&self) -> bool {
        self.said().closed
    }

    fn read_from(pipe: PipeReader) -> Self {
        let log = Self::default();
        let written = log.clone();
        // It ends with the last process that holds the pipe.
        thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                let object = serde_json::from_str(&line).ok().filter(Value::is_object);
                written.said().lines.push(object.unwrap_or(Value::String(line)));
            }
            written.said().closed = true;
        });
        log
    }

    fn said(&self) -> std::sync::MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was waited for, with the log as it is when the message is written.
struct Explained<'a> {
    what: String,
    host: &'a str,
    log: &'a Log,
}

impl std::fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} of daemon {}, which said:", self.what, self.host)?;
        self.log.said().lines.iter().try_for_each(|line| match line {
            Value::String(stray) => writeln!(f, "{stray}"),
            object => writeln!(f, "{object}"),
        })
    }
}

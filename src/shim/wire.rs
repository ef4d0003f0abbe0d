//! What daemon, fork server and shims say to one another. Every message carries the version of its
//! meaning: after an upgrade the two ends may be of different versions.

use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::passwd::User;
use super::socket::LONGEST;
use crate::clock::BootInstant;
use crate::job::{OutputKeep, ProcessSetup};

/// The version of all messages below.
const VERSION: u8 = 1;

/// What to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpawnRequest {
    /// What is executed.
    pub program: Program,
    /// Variables that everything else overrides.
    pub base_env: Vec<(String, String)>,
    /// Variables that override the user's (`HOME`, `USER`, `LOGNAME`, `SHELL`) and those of `env_file`.
    pub env: Vec<(String, String)>,
    /// Where it starts; `None` for the home directory of its user.
    pub directory: Option<PathBuf>,
    /// User, group, limits and the like.
    pub setup: ProcessSetup,
    /// When its tree is dead unless the deadline is moved: it gets TERM `kill_grace` earlier. A request
    /// whose deadline has passed starts nothing.
    pub deadline: BootInstant,
    /// The time from TERM to KILL.
    pub kill_grace: Duration,
    /// How long the preparation may take, before the program is executed: the name service and the
    /// file systems of its user's files may hang.
    pub start_within: Duration,
}

/// What a shim is handed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Handed {
    pub(super) request: SpawnRequest,
    /// Who the daemon runs as.
    pub(super) daemon: User,
}

/// What a process is made for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Program {
    /// To execute a program, searched for in `PATH` if its name has no `/`. Not empty.
    Execute(Vec<String>),
    /// To write its standard input to files.
    WriteFiles(PathBuf, OutputKeep),
}

/// What the daemon tells a shim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ToShim {
    /// Start this; or, if it is not here, what the first descriptor holds. The next ones are its standard output, error
    /// and, if there is one more, input.
    Spawn(Option<Box<Handed>>),
    /// About what was started.
    Order(Order),
}

/// What the daemon tells a shim about its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// The lease was renewed.
    Deadline(BootInstant),
    /// TERM now, KILL then, or at the deadline.
    Terminate(BootInstant),
    /// KILL now.
    Kill,
}

/// What a shim tells the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The shim is there; a descriptor of its process comes along. Said once; a channel that closes without it had
    /// none.
    Ready,
    /// The program is executed.
    Started {
        /// The job's own process.
        pid: i32,
    },
    /// Nothing was executed. The last report.
    NotStarted(NotStarted),
    /// The job's own process has ended, and others of its tree have not. They are told to end.
    LeftBehind(Survivors),
    /// Killed processes don't die; they are waited for.
    Unkillable(Survivors),
    /// No process of the tree is left. The last report.
    Ended(Ended),
}

/// How a job's processes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How its own process ended.
    pub exit: Exit,
    /// Why its shim, on its own, told it to end: the daemon was gone or stopped.
    pub by_itself: Option<OwnStop>,
    /// The processor time of all processes of its tree, in user and system mode.
    pub cpu: Duration,
    /// The most memory that one of them had resident, in KiB.
    pub memory_peak_kib: u64,
}

/// Why a shim stopped a job without being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnStop {
    /// The deadline was not moved in time.
    Deadline,
    /// The daemon is gone.
    DaemonGone,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// Processes that are there when they should not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivors {
    /// How many.
    pub count: usize,
    /// What the first of them are called.
    pub names: Vec<String>,
}

/// Why nothing was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStarted {
    /// What kind of cause it is.
    pub cause: Cause,
    /// What could not be done and why, with the path or the name.
    pub message: String,
}

/// Kinds of causes, by what may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Something of the job is missing or not allowed: trying again won't help.
    Job,
    /// The machine has no process, descriptor or memory left: another host, or later, may do.
    Exhausted,
    /// The deadline has passed, or it was told to end, before it could be started.
    TooLate,
    /// Its preparation hangs.
    Hung,
}

impl NotStarted {
    /// A message that is fit to be sent, however long the path or the name is that it holds.
    pub(super) fn new(cause: Cause, mut message: String) -> Self {
        if message.len() > LONGEST / 4 {
            message.truncate(message.floor_char_boundary(LONGEST / 4));
            message.push_str("...");
        }
        Self { cause, message }
    }

    /// The deadline has passed.
    pub(super) fn too_late() -> Self {
        Self { cause: Cause::TooLate, message: "the lease ended before the process could be started".to_owned() }
    }

    /// The machine has nothing left for it.
    pub(super) fn exhausted(what: &str, error: &io::Error) -> Self {
        Self { cause: Cause::Exhausted, message: format!("can't {what}: {error}") }
    }
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u8,
    message: T,
}

/// A message as bytes.
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    let versioned = Versioned { version: VERSION, message };
    serde_json::to_vec(&versioned).expect("all keys are strings and no value fails to be written")
}

/// The way back.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    let versioned: Versioned<T> = serde_json::from_slice(bytes)?;
    if versioned.version != VERSION {
        let text = format!("a message of version {}, not {VERSION}", versioned.version);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(versioned.message)
}

/// A spawn as one message, or as a message and a descriptor that comes before all others: environments may be longer
/// than any socket takes at once.
pub(super) fn spawn(request: &SpawnRequest, daemon: &User) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let handed = Handed { request: request.clone(), daemon: daemon.clone() };
    let message = encode(&ToShim::Spawn(Some(Box::new(handed.clone()))));
    if message.len() <= LONGEST {
        return Ok((message, None));
    }
    let memory = rustix::fs::memfd_create("spawn-request", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(&encode(&handed))?;
    Ok((encode(&ToShim::Spawn(None)), Some(file.into())))
}

/// What such a descriptor holds.
pub(super) fn read(memory: OwnedFd) -> io::Result<Handed> {
    let mut file = std::fs::File::from(memory);
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    decode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_another_version_is_refused() {
        let order = Order::Kill;
        assert_eq!(decode::<Order>(&encode(&order)).unwrap(), order);
        assert!(decode::<Order>(br#"{"version":2,"message":"Kill"}"#).is_err());
    }

    #[test]
    fn a_request_of_any_length_comes_through() {
        let long = "x".repeat(1 << 20);
        let request = SpawnRequest {
            program: Program::Execute(vec!["/bin/true".to_owned(), long.clone()]),
            base_env: Vec::new(),
            env: vec![("LONG".to_owned(), long)],
            directory: None,
            setup: ProcessSetup::default(),
            deadline: BootInstant::now(),
            kill_grace: Duration::from_secs(1),
            start_within: Duration::from_secs(1),
        };
        let daemon = User { name: "root".to_owned(), home: "/root".into() };
        let (message, memory) = spawn(&request, &daemon).unwrap();
        assert!(matches!(decode(&message).unwrap(), ToShim::Spawn(None)));
        let back = read(memory.unwrap()).unwrap().request;
        assert_eq!(back.env, request.env);
        assert_eq!(back.deadline, request.deadline);
    }
}

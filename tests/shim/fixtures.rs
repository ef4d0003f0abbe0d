//! A spawner of the real binary, requests, and what became of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cronlatch::clock::BootInstant;
use cronlatch::job::ProcessSetup;
use cronlatch::shim::{Child, ChildEvent, Ended, Executable, Program, SpawnError, SpawnRequest, Spawner, Survivors};
use tokio::io::AsyncReadExt;

use crate::support::daemon::BINARY;
use crate::support::scratch::{Farewell, Scratch};
use crate::support::wait::PATIENCE;

/// A spawner and a folder whose processes end with the test.
pub struct Stage {
    pub spawner: Spawner,
    scratch: Scratch,
}

/// What was heard of a child until its end.
#[derive(Debug, Default)]
pub struct Heard {
    pub ended: Option<Ended>,
    pub left_behind: Option<Survivors>,
}

impl Stage {
    pub fn new() -> Self {
        let executable = Executable::at(Path::new(BINARY)).expect("the binary is there");
        let spawner = Spawner::start(executable).expect("there is a process for it");
        Self { spawner, scratch: Scratch::new("shim", Farewell::Kill) }
    }

    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// A request for a line of the shell that may live for long.
    pub fn request(&self, shell: &str) -> SpawnRequest {
        SpawnRequest {
            program: Program::Execute(["/bin/sh", "-c", shell].map(str::to_owned).to_vec()),
            base_env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            env: Vec::new(),
            directory: Some(self.folder().to_owned()),
            setup: ProcessSetup::default(),
            deadline: BootInstant::now() + 10 * PATIENCE,
            kill_grace: Duration::from_millis(300),
            start_within: PATIENCE,
        }
    }

    pub async fn spawn(&self, request: &SpawnRequest) -> Result<Child, SpawnError> {
        let spawned = self.spawner.spawn(request, std::future::pending());
        tokio::time::timeout(PATIENCE, spawned).await.expect("a start has an answer")
    }

    pub async fn start(&self, shell: &str) -> Child {
        self.spawn(&self.request(shell)).await.expect("it starts")
    }

    /// Runs a request to its end; its exit and its output.
    pub async fn run(&self, request: &SpawnRequest) -> (Ended, String) {
        let mut child = self.spawn(request).await.unwrap_or_else(|error| panic!("{request:?}: {error}"));
        let mut output = child.take_output().expect("it was not taken");
        let heard = to_the_end(&mut child).await;
        let mut text = String::new();
        output.stdout.read_to_string(&mut text).await.expect("it is text");
        output.stderr.read_to_string(&mut text).await.expect("it is text");
        (heard.ended.expect("its shim lives"), text)
    }

    /// How many processes live in the folder or below it.
    pub fn population(&self) -> usize {
        let of = |link: PathBuf| fs::read_link(link).is_ok_and(|cwd| cwd.starts_with(self.folder()));
        let entries = fs::read_dir("/proc").expect("/proc is there").filter_map(Result::ok);
        entries.filter(|entry| of(entry.path().join("cwd"))).count()
    }
}

/// Listens to a child until its tree is gone, or its shim.
pub async fn to_the_end(child: &mut Child) -> Heard {
    let mut heard = Heard::default();
    loop {
        match tokio::time::timeout(PATIENCE, child.next()).await.expect("it ends") {
            ChildEvent::LeftBehind(survivors) => heard.left_behind = Some(survivors),
            ChildEvent::Unkillable(survivors) => panic!("{survivors:?} don't die"),
            ChildEvent::Ended(ended) => {
                heard.ended = Some(ended);
                return heard;
            }
            ChildEvent::Vanished => return heard,
        }
    }
}

/// The parent of a process.
pub fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, tail) = stat.rsplit_once(')').expect("its name stands in parentheses");
    tail.split_whitespace().nth(1).and_then(|parent| parent.parse().ok()).expect("it has a parent")
}

use std::time::Duration;

use super::assignment::Assignment;
use super::output::FileOutput;
use super::pump::Pump;
use super::supervise::Runner;
use crate::clock::BootInstant;
use crate::events;
use crate::job::{OutputTo, ProcessSetup};
use crate::lock::FencingToken;
use crate::shim::{Child, ChildEvent, Program, SpawnRequest};

/// How long the end of a job's files may take to be written, once the lock is free.
const LAST_BYTES: Duration = Duration::from_secs(10);

/// How long it may take to prepare itself.
const START_WITHIN: Duration = Duration::from_secs(10);

/// The process that writes a run's output to files, as the job's own user.
#[derive(Debug)]
pub(super) struct FileWriter {
    child: Child,
    /// What it complains of.
    complaints: Option<Pump>,
}

impl Runner {
    /// Starts the writer of a run, if its job writes to files. Without one its output is lost, which is said.
    pub(super) async fn start_writer(&self, assignment: &Assignment) -> Option<(FileOutput, FileWriter)> {
        let OutputTo::File(file) = &assignment.job.output else { return None };
        let path = assignment.output_path(&self.host)?;
        let process = &assignment.job.process;
        let request = SpawnRequest {
            program: Program::WriteFiles(path.clone(), file.keep),
            base_env: Vec::new(),
            env: Vec::new(),
            directory: Some("/".into()),
            setup: ProcessSetup {
                user: process.user.clone(),
                group: process.group.clone(),
                umask: process.umask,
                ..ProcessSetup::default()
            },
            // It ends with its input, or with the daemon.
            deadline: BootInstant::NEVER,
            kill_grace: LAST_BYTES,
            start_within: START_WITHIN,
        };
        let within = BootInstant::now() + START_WITHIN;
        match self.spawner.spawn(&request, within.reached()).await {
            Ok(mut child) => {
                let stdin = child.take_input()?;
                let complaints = child.take_output().map(Pump::for_tail_alone);
                Some((FileOutput { path, stdin }, FileWriter { child, complaints }))
            }
            Err(error) => {
                events::run_output_unwritten(assignment.label(None), &error.to_string());
                None
            }
        }
    }
}

impl FileWriter {
    /// Waits until all is written; call it when its input is closed. Says what it complained of.
    ///
    /// # Cancel safety
    /// Dropped, what is not written by then is lost.
    pub(super) async fn finish(mut self, assignment: &Assignment, token: FencingToken) {
        let ended = async { while !matches!(self.child.next().await, ChildEvent::Ended(_) | ChildEvent::Vanished) {} };
        let in_time = tokio::time::timeout(LAST_BYTES, ended).await.is_ok();
        let label = assignment.label(Some(token));
        if !in_time {
            events::run_output_unwritten(label, "its files take too long");
            return;
        }
        let complaints = match self.complaints.take() {
            Some(complaints) => complaints.finish().await,
            None => None,
        };
        complaints.iter().flat_map(|text| text.lines()).for_each(|line| events::run_output_unwritten(label, line));
    }
}

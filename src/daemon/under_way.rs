use std::collections::HashMap;

use tokio::sync::watch;

use crate::job::JobName;

/// How many runs of each job are under way here: those whose triggers replace their runs have to know it on
/// a host that has no room for them.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// Written by each run; read by triggers that find no room.
    jobs: watch::Sender<HashMap<JobName, usize>>,
}

/// One run under way, until it is dropped.
pub(super) struct Counted<'a> {
    home: &'a UnderWay,
    job: &'a JobName,
}

impl UnderWay {
    /// Counts a run.
    pub(super) fn count<'a>(&'a self, job: &'a JobName) -> Counted<'a> {
        self.jobs.send_modify(|jobs| *jobs.entry(job.clone()).or_default() += 1);
        Counted { home: self, job }
    }

    /// Waits until a run of this job is under way.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn any(&self, job: &JobName) {
        // The sender is our own, so the wait can't fail.
        self.jobs.subscribe().wait_for(|jobs| jobs.contains_key(job)).await.map(drop).unwrap_or_default();
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.home.jobs.send_modify(|jobs| {
            if let Some(count) = jobs.get_mut(self.job) {
                *count -= 1;
                if *count == 0 {
                    jobs.remove(self.job);
                }
            }
        });
    }
}

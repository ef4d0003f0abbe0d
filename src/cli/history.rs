use uuid::Uuid;

use crate::job::JobName;
use crate::store::{RunFilter, RunRow, SharedStore, StoreError};
use crate::trigger::RunId;

/// No restriction but a number of rows, newest first.
pub(super) fn newest(limit: u32) -> RunFilter {
    RunFilter { job: None, state: None, since: None, before: None, limit }
}

/// One run by its id: the newest of those before the id that follows it.
pub(super) async fn run_of(store: &SharedStore, run: RunId) -> Result<Option<RunRow>, StoreError> {
    let next = run.as_uuid().as_u128().checked_add(1);
    let before = next.map(|next| RunId::from_uuid(Uuid::from_u128(next)));
    let rows = store.history(&RunFilter { before, ..newest(1) }).await?;
    Ok(rows.into_iter().find(|row| row.run == run))
}

/// The newest run of a job.
pub(super) async fn newest_of(store: &SharedStore, job: &JobName) -> Result<Option<RunRow>, StoreError> {
    Ok(store.history(&RunFilter { job: Some(job.clone()), ..newest(1) }).await?.pop())
}

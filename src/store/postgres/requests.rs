use async_trait::async_trait;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::decode::{column, malformed, optional_run_id, run_id, word};
use super::{PostgresStore, sql};
use crate::fleet::InstanceId;
use crate::store::requests::asked;
use crate::store::{Cancel, CancelAsked, OpenCancel, Requests, StoreError};
use crate::trigger::{RequestOutcome, RunId, RunState};

#[async_trait]
impl Requests for PostgresStore {
    async fn request_cancel(&self, run: RunId, cancel: &Cancel) -> Result<CancelAsked, StoreError> {
        let call = self.work.call("ask for a run to be stopped").await?;
        let query = self
            .query(sql::REQUEST_CANCEL)
            .bind(*run.as_uuid())
            .bind(Uuid::now_v7())
            .bind(&cancel.by)
            .bind(&cancel.reason)
            .bind(cancel.in_words());
        let row = self.one(call, query).await?;
        let outcome: String = column(&row, "outcome")?;
        Ok(match outcome.as_str() {
            "asked" => CancelAsked::Asked,
            "cancelled" => CancelAsked::Cancelled,
            "over" => CancelAsked::Over(word(&row, "state", RunState::from_column)?),
            "unknown" => CancelAsked::Unknown,
            other => return Err(malformed(format!("column outcome holds {other:?}"))),
        })
    }

    async fn open_cancels(&self, instance: InstanceId) -> Result<Vec<OpenCancel>, StoreError> {
        let call = self.work.call("look for requests").await?;
        let query = self.query(sql::OPEN_CANCELS).bind(*instance.as_uuid());
        self.all(call, query).await?.iter().map(open_cancel).collect()
    }

    async fn answer_request(&self, request: Uuid, by: InstanceId, outcome: RequestOutcome) -> Result<bool, StoreError> {
        let call = self.work.call("answer a request").await?;
        let query = self.query(sql::ANSWER_REQUEST).bind(request).bind(*by.as_uuid()).bind(outcome.as_str());
        Ok(!self.all(call, query).await?.is_empty())
    }
}

fn open_cancel(row: &PgRow) -> Result<OpenCancel, StoreError> {
    Ok(OpenCancel {
        request: column(row, "id")?,
        run: run_id(row, "run")?,
        asked: asked(column(row, "made_by")?, column(row, "reason")?, optional_run_id(row, "replaced_by")?),
    })
}

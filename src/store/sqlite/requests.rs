use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::decode::{column, instant, optional_run_id, run_id, text, uuid, word};
use super::{SqliteStore, all, sql};
use crate::fleet::InstanceId;
use crate::store::requests::asked;
use crate::store::{Cancel, CancelAsked, OpenCancel, Requests, StoreError};
use crate::trigger::{RequestOutcome, RunId, RunState};

#[async_trait]
impl Requests for SqliteStore {
    async fn request_cancel(&self, run: RunId, cancel: &Cancel) -> Result<CancelAsked, StoreError> {
        let mut transaction = self.begin("ask for a run to be stopped").await?;
        let Some(row) = transaction.optional(sqlx::query(sql::CANCEL_LOOK).bind(run.to_string())).await? else {
            transaction.commit().await?;
            return Ok(CancelAsked::Unknown);
        };
        let now = text(instant(&row, "now")?);
        let state = word(&row, "state", RunState::from_column)?;
        let answer = match state {
            RunState::Waiting => {
                let query = sqlx::query(sql::CANCEL_WAITING).bind(run.to_string()).bind(cancel.in_words()).bind(now);
                transaction.all(query).await?;
                CancelAsked::Cancelled
            }
            RunState::Claimed | RunState::Running => {
                let query = sqlx::query(sql::REQUEST_CANCEL)
                    .bind(Uuid::now_v7().to_string())
                    .bind(column::<String>(&row, "job")?)
                    .bind(run.to_string())
                    .bind(cancel.by.clone())
                    .bind(now)
                    .bind(cancel.reason.clone());
                transaction.all(query).await?;
                CancelAsked::Asked
            }
            over => CancelAsked::Over(over),
        };
        transaction.commit().await?;
        Ok(answer)
    }

    async fn open_cancels(&self, instance: InstanceId) -> Result<Vec<OpenCancel>, StoreError> {
        let call = self.work.call("look for requests").await?;
        let query = sqlx::query(sql::OPEN_CANCELS).bind(instance.to_string());
        all(call, query).await?.iter().map(open_cancel).collect()
    }

    async fn answer_request(&self, request: Uuid, by: InstanceId, outcome: RequestOutcome) -> Result<bool, StoreError> {
        let mut transaction = self.begin("answer a request").await?;
        let query =
            sqlx::query(sql::ANSWER_REQUEST).bind(request.to_string()).bind(by.to_string()).bind(outcome.as_str());
        let answered = transaction.optional(query).await?.is_some();
        transaction.commit().await?;
        Ok(answered)
    }
}

fn open_cancel(row: &SqliteRow) -> Result<OpenCancel, StoreError> {
    Ok(OpenCancel {
        request: uuid(column(row, "id")?)?,
        run: run_id(row, "run")?,
        asked: asked(column(row, "made_by")?, column(row, "reason")?, optional_run_id(row, "replaced_by")?),
    })
}

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::decode::{column, malformed, word};
use super::rows::{claimed, followed, missed_row, retried, run_row, taken, trigger_outcome, waiting_run};
use super::{PostgresStore, Statement, Timeliness, sql};
use crate::clock::Expected;
use crate::fleet::HostName;
use crate::job::JobName;
use crate::store::endings::followers_json;
use crate::store::{
    Claim, Claimant, Claimed, Ending, Finished, Follower, LockAtEnd, MissedRow, OutcomeQuery, Pruned, Recovered,
    Retention, Retried, RunFilter, RunKey, RunRow, Runs, StoreError, Taken, TriggerOutcome, WaitingRun, WhenHeld,
};
use crate::trigger::{MissedReason, RunId, RunState, Trigger};

#[async_trait]
impl Runs for PostgresStore {
    async fn claim(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        let mut call = self.work.call("claim a trigger").await?;
        let timely = Timeliness::of(claim.claimant.expected_now, &call);
        let rows = match self.run(&mut call, self.claim_query(claim, timely)).await {
            Ok(rows) => rows,
            Err(error) => return Err(if self.pooler { error } else { call.failed(error) }),
        };
        let row = rows.first().ok_or_else(|| malformed("an answer without a row"))?;
        match claimed(row, timely.sent)? {
            // It came in time, so it is this host that expects another time than the database has.
            Claimed::TooLate => {
                let timely = timely.corrected(column(row, "read_at")?, &call);
                let row = self.one(call, self.claim_query(claim, timely)).await?;
                claimed(&row, timely.sent)
            }
            answer => {
                call.done();
                Ok(answer)
            }
        }
    }

    async fn unclaimed(&self, triggers: &[Trigger]) -> Result<Vec<Trigger>, StoreError> {
        let jobs: Vec<_> = triggers.iter().map(|trigger| trigger.job.as_str()).collect();
        let instants: Vec<_> = triggers.iter().map(|trigger| trigger.scheduled_at).collect();
        let targets: Vec<_> = triggers.iter().map(|trigger| trigger.target.as_str()).collect();
        let origins: Vec<_> = triggers.iter().map(|trigger| trigger.origin.as_str()).collect();
        let call = self.work.call("look for claims").await?;
        let query = self.query(sql::UNCLAIMED).bind(jobs).bind(instants).bind(targets).bind(origins);
        let mut unclaimed = Vec::new();
        for row in self.all(call, query).await? {
            let place = usize::try_from(column::<i64>(&row, "place")?).unwrap_or_default();
            unclaimed.extend(triggers.get(place.wrapping_sub(1)).cloned());
        }
        Ok(unclaimed)
    }

    async fn start(&self, key: &RunKey, started_at: DateTime<Utc>) -> Result<bool, StoreError> {
        let call = self.work.call("mark a run as started").await?;
        let query = self
            .query(sql::START)
            .bind(key.run.as_uuid())
            .bind(key.owner.public().as_str().to_owned())
            .bind(key.token.get())
            .bind(started_at);
        column(&self.one(call, query).await?, "started")
    }

    async fn finish(&self, key: &RunKey, ending: &Ending, followers: &[Follower]) -> Result<Finished, StoreError> {
        let call = self.work.call("finish a run").await?;
        let query = self
            .ending_query(sql::FINISH, key, ending)
            .bind(*RunId::generate().as_uuid())
            .bind(followers_json(ending, followers));
        let row = self.one(call, query).await?;
        let lock = word(&row, "lock", |word| match word {
            "released" => Some(LockAtEnd::Released),
            "expired" => Some(LockAtEnd::Expired),
            "gone" => Some(LockAtEnd::Gone),
            _ => None,
        })?;
        Ok(Finished { recorded: column(&row, "recorded")?, lock, followed: followed(&row)? })
    }

    async fn retry(&self, key: &RunKey, ending: &Ending, next: RunId) -> Result<Retried, StoreError> {
        let call = self.work.call("try a run again").await?;
        let query = self.ending_query(sql::RETRY, key, ending).bind(*next.as_uuid());
        retried(&self.one(call, query).await?)
    }

    async fn give_back(&self, key: &RunKey, reason: &str) -> Result<bool, StoreError> {
        let call = self.work.call("give a claim back").await?;
        let query = self
            .query(sql::GIVE_BACK)
            .bind(key.run.as_uuid())
            .bind(key.owner.reveal())
            .bind(key.owner.public().as_str().to_owned())
            .bind(key.resource.as_str())
            .bind(key.token.get())
            .bind(reason);
        column(&self.one(call, query).await?, "given")
    }

    async fn waiting(&self, host: &HostName) -> Result<Vec<WaitingRun>, StoreError> {
        let call = self.work.call("list waiting runs").await?;
        self.all(call, self.query(sql::WAITING).bind(host.as_str())).await?.iter().map(waiting_run).collect()
    }

    async fn take(&self, run: RunId, by: &Claimant) -> Result<Taken, StoreError> {
        let call = self.work.call("take a waiting run").await?;
        let timely = Timeliness::of(by.expected_now, &call);
        let query = self
            .query(sql::TAKE)
            .bind(run.as_uuid())
            .bind(by.host.as_str())
            .bind(by.instance.as_uuid())
            .bind(by.owner.reveal())
            .bind(by.owner.public().as_str().to_owned())
            .bind(by.resource.as_str())
            .bind(by.ttl.as_millis())
            .bind(timely.expected_now)
            .bind(timely.give_up_at);
        let sent = timely.sent;
        let row = self.one(call, query).await?;
        taken(&row, sent)
    }

    async fn recover(&self, expected_now: Option<Expected>) -> Result<Recovered, StoreError> {
        self.recover_what_is_lost(expected_now).await
    }

    async fn missed(&self, filter: &RunFilter) -> Result<Vec<MissedRow>, StoreError> {
        let call = self.work.call("list missed triggers").await?;
        let query = self
            .query(sql::MISSED)
            .bind(filter.job.as_ref().map(JobName::as_str))
            .bind(filter.since)
            .bind(filter.state.map(RunState::as_str))
            .bind(i64::from(filter.limit));
        self.all(call, query).await?.iter().map(missed_row).collect()
    }

    async fn prune(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        self.prune_one_step(retention).await
    }

    async fn history(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let call = self.work.call("list runs").await?;
        let query = self
            .query(sql::HISTORY)
            .bind(filter.job.as_ref().map(JobName::as_str))
            .bind(filter.state.map(RunState::as_str))
            .bind(filter.since)
            .bind(filter.before.as_ref().map(RunId::as_uuid))
            .bind(i64::from(filter.limit));
        self.all(call, query).await?.iter().map(run_row).collect()
    }

    async fn outcomes(&self, query: &OutcomeQuery) -> Result<Vec<TriggerOutcome>, StoreError> {
        let call = self.work.call("look how triggers ended").await?;
        let statement = self
            .query(sql::OUTCOMES)
            .bind(query.job.as_str())
            .bind(query.target.as_str())
            .bind(query.through)
            .bind(i64::from(query.limit))
            .bind(MissedReason::failures());
        self.all(call, statement).await?.iter().map(trigger_outcome).collect()
    }
}

impl PostgresStore {
    /// A statement that begins with a run's key and how it ended.
    fn ending_query<'q>(&'q self, sql: &'static str, key: &'q RunKey, ending: &'q Ending) -> Statement<'q> {
        self.query(sql)
            .bind(key.run.as_uuid())
            .bind(key.owner.reveal())
            .bind(key.owner.public().as_str().to_owned())
            .bind(key.resource.as_str())
            .bind(key.token.get())
            .bind(ending.state.as_str())
            .bind(ending.exit_code)
            .bind(ending.signal)
            .bind(ending.reason.as_deref())
            .bind(ending.started_at)
            .bind(ending.finished_at)
            .bind(ending.output_tail.as_deref())
            .bind(ending.cpu.map(millis))
            .bind(ending.memory_peak_kib.map(|kib| i64::try_from(kib).unwrap_or(i64::MAX)))
    }

    fn claim_query<'q>(&'q self, claim: &'q Claim, timely: Timeliness) -> Statement<'q> {
        let by = &claim.claimant;
        let (when_held, wait) = match claim.when_held {
            WhenHeld::Skip => ("skip", None),
            WhenHeld::Wait(wait) => ("wait", Some(wait)),
            WhenHeld::Replace(wait) => ("replace", Some(wait)),
        };
        self.query(sql::CLAIM)
            .bind(claim.run.as_uuid())
            .bind(claim.trigger.job.as_str())
            .bind(claim.trigger.scheduled_at)
            .bind(claim.trigger.target.as_str())
            .bind(claim.trigger.origin.as_str())
            .bind(i32::try_from(claim.attempt).unwrap_or(i32::MAX))
            .bind(claim.kind.as_str())
            .bind(by.host.as_str())
            .bind(by.instance.as_uuid())
            .bind(by.owner.reveal())
            .bind(by.owner.public().as_str().to_owned())
            .bind(by.resource.as_str())
            .bind(by.ttl.as_millis())
            .bind(timely.expected_now)
            .bind(timely.give_up_at)
            .bind(when_held)
            .bind(wait.map(millis))
            .bind(millis(claim.start_deadline))
            .bind(i32::try_from(claim.reruns_left).unwrap_or(i32::MAX))
    }
}

/// Milliseconds as the tables have them.
pub(super) fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

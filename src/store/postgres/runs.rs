use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::decode::{acquired, attempt, column, grant, malformed, optional_run_id, run_id, token, trigger, word};
use super::{PostgresStore, Statement, Timeliness, sql};
use crate::clock::{BootInstant, Expected};
use crate::fleet::HostName;
use crate::job::JobName;
use crate::lock::FencingToken;
use crate::store::endings::followers_json;
use crate::store::{
    Acquired, Became, Claim, Claimant, Claimed, Ending, Finished, Follower, LockAtEnd, MissedRow, Pruned, Recovered,
    Retention, RunFilter, RunKey, RunRow, Runs, StoreError, Taken, WaitingRun,
};
use crate::trigger::{Origin, RangeKind, RunId, RunState, SkipReason, Target, Trigger, TriggerKind};

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
            .query(sql::FINISH)
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
        let outcome: String = column(&row, "outcome")?;
        Ok(match outcome.as_str() {
            "granted" => Taken::Granted(grant(&row, sent)?),
            "held" => match acquired(&row, sent)? {
                Acquired::Held(holder) => Taken::Held(holder),
                _ => Taken::NotNow,
            },
            "not_now" | "too_late" => Taken::NotNow,
            _ => Taken::Gone,
        })
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
}

impl PostgresStore {
    fn claim_query<'q>(&'q self, claim: &'q Claim, timely: Timeliness) -> Statement<'q> {
        let by = &claim.claimant;
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
            .bind(claim.wait.map(millis))
            .bind(millis(claim.start_deadline))
            .bind(i32::try_from(claim.reruns_left).unwrap_or(i32::MAX))
    }
}

/// Milliseconds as the tables have them.
pub(super) fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The way back.
fn of_millis(millis: i64) -> std::time::Duration {
    std::time::Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

fn claimed(row: &PgRow, sent: BootInstant) -> Result<Claimed, StoreError> {
    let outcome: String = column(row, "outcome")?;
    Ok(match outcome.as_str() {
        "granted" => Claimed::Granted(grant(row, sent)?),
        "already_claimed" => Claimed::AlreadyClaimed {
            run: run_id(row, "run")?,
            host: column(row, "host")?,
            state: word(row, "state", RunState::from_column)?,
        },
        "held" => {
            let holder = match column::<Option<String>>(row, "lock_outcome")? {
                None => None,
                Some(_) => match acquired(row, sent)? {
                    Acquired::Held(holder) => Some(holder),
                    Acquired::Granted(_) | Acquired::ClockStepped { .. } => None,
                },
            };
            Claimed::Held { holder, became: became(row)? }
        }
        "too_early" => {
            let by = u64::try_from(column::<i64>(row, "early_ms")?).unwrap_or_default();
            Claimed::TooEarly { by: std::time::Duration::from_millis(by) }
        }
        "paused" => Claimed::Paused,
        "forgotten" => Claimed::Forgotten,
        "settled" => Claimed::Settled,
        "too_late" => Claimed::TooLate,
        other => return Err(malformed(format!("column outcome holds {other:?}"))),
    })
}

fn became(row: &PgRow) -> Result<Became, StoreError> {
    Ok(match word(row, "state", RunState::from_column)? {
        RunState::Waiting => Became::Waiting { until: column(row, "wait_until")? },
        _ => Became::Skipped(word(row, "reason", SkipReason::from_column)?),
    })
}

/// The followers of a run that waits since its success.
fn followed(row: &PgRow) -> Result<Vec<(JobName, RunId)>, StoreError> {
    let jobs = column::<Option<Vec<String>>>(row, "followers")?.unwrap_or_default();
    let runs = column::<Option<Vec<Uuid>>>(row, "followed")?.unwrap_or_default();
    let pair = |(job, run)| {
        let job = JobName::new(job).map_err(|error| malformed(error.to_string()))?;
        Ok((job, RunId::from_uuid(run)))
    };
    jobs.into_iter().zip(runs).map(pair).collect()
}

fn waiting_run(row: &PgRow) -> Result<WaitingRun, StoreError> {
    Ok(WaitingRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        kind: word(row, "trigger", TriggerKind::from_column)?,
        since: column(row, "created_at")?,
        wait_until: column(row, "wait_until")?,
    })
}

fn run_row(row: &PgRow) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        run: run_id(row, "id")?,
        job: column(row, "job")?,
        scheduled_at: column(row, "scheduled_at")?,
        target: Target::from_column(column::<String>(row, "target")?),
        origin: Origin::from_column(column::<String>(row, "origin")?),
        attempt: attempt(row)?,
        kind: word(row, "trigger", TriggerKind::from_column)?,
        state: word(row, "state", RunState::from_column)?,
        host: column(row, "host")?,
        resource: column(row, "resource")?,
        token: column::<Option<i64>>(row, "token")?.map(FencingToken::new),
        claimed_at: column(row, "claimed_at")?,
        started_at: column(row, "started_at")?,
        finished_at: column(row, "finished_at")?,
        wait_until: column(row, "wait_until")?,
        not_before: column(row, "not_before")?,
        exit_code: column(row, "exit_code")?,
        signal: column(row, "signal")?,
        reason: column(row, "reason")?,
        blocked_by: optional_run_id(row, "blocked_by")?,
        output_tail: column(row, "output_tail")?,
        cpu: column::<Option<i64>>(row, "cpu_ms")?.map(of_millis),
        memory_peak_kib: column::<Option<i64>>(row, "memory_peak_kib")?.and_then(|kib| u64::try_from(kib).ok()),
    })
}

fn missed_row(row: &PgRow) -> Result<MissedRow, StoreError> {
    Ok(MissedRow {
        job: column(row, "job")?,
        target: Target::from_column(column::<String>(row, "target")?),
        kind: word(row, "kind", RangeKind::from_column)?,
        from: column(row, "range_from")?,
        to: column(row, "range_to")?,
        count: u64::try_from(column::<i64>(row, "count")?).unwrap_or_default(),
        reason: column(row, "reason")?,
        recorded_at: column(row, "recorded_at")?,
    })
}

/// A row of `LOSE`.
pub(super) fn lost_run(row: &PgRow) -> Result<crate::store::LostRun, StoreError> {
    Ok(crate::store::LostRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        host: column::<Option<String>>(row, "host")?.unwrap_or_default(),
        resource: super::decode::resource(row, "resource")?,
        token: token(row, "token")?,
        rerun: None,
    })
}

/// A row of `OVERDUE`.
pub(super) fn overdue_run(row: &PgRow) -> Result<crate::store::OverdueRun, StoreError> {
    Ok(crate::store::OverdueRun {
        run: run_id(row, "id")?,
        trigger: trigger(row)?,
        attempt: attempt(row)?,
        resource: super::decode::resource(row, "resource")?,
        state: word(row, "state", RunState::from_column)?,
        reason: column(row, "reason")?,
    })
}

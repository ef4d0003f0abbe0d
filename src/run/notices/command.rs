use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::decision::Verdict;
use crate::clock::BootInstant;
use crate::events;
use crate::fleet::HostName;
use crate::job::{Command, Job, Stdin};
use crate::run::environment::base_environment;
use crate::run::pump::Pump;
use crate::shim::{Child, ChildEvent, Exit, Program, SpawnRequest, Spawner};
use crate::store::RunRow;

/// How long a command may take; it is told to end a little earlier.
const WITHIN: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);

/// How long its preparation may take.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Runs the command that the verdict asks for, if the job has one.
pub(super) async fn tell(spawner: &Spawner, host: &HostName, job: &Job, verdict: &Verdict) {
    let Some(notices) = &job.notices else { return };
    let (what, command) = match verdict {
        Verdict::Failure { .. } | Verdict::Missed { .. } => ("on_failure", &notices.on_failure),
        Verdict::Recovery { .. } => ("on_recovery", &notices.on_recovery),
    };
    let Some(command) = command else { return };
    let request = request(host, job, verdict, command);
    let given_up = request.deadline;
    let done = match spawner.spawn(&request, given_up.reached()).await {
        Ok(child) => to_the_end(child).await,
        Err(error) => Err(error.to_string()),
    };
    match done {
        Ok(()) => events::notice_sent(&job.name, what),
        Err(why) => events::notice_failed(&job.name, &format!("{what}: {why}")),
    }
}

fn request(host: &HostName, job: &Job, verdict: &Verdict, command: &Command) -> SpawnRequest {
    let told = object(host, job, verdict);
    let mut setup = job.process.clone();
    setup.stdin = Stdin::Text(format!("{told}\n"));
    SpawnRequest {
        program: Program::Execute(command.argv()),
        base_env: base_environment(),
        env: environment(job, &told),
        directory: job.directory.clone(),
        setup,
        deadline: BootInstant::now() + WITHIN,
        kill_grace: GRACE,
        start_within: START_WITHIN,
    }
}

/// The job's own variables, and those values of the object that are no objects themselves.
fn environment(job: &Job, told: &Value) -> Vec<(String, String)> {
    const IN_ENVIRONMENT: &[&str] = &[
        "event",
        "job",
        "run_id",
        "state",
        "reason",
        "exit_code",
        "signal",
        "host",
        "scheduled_at",
        "attempt",
        "failures_in_a_row",
    ];
    let mut env: Vec<(String, String)> = job.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    for name in IN_ENVIRONMENT {
        let value = match &told[*name] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // A NUL can't be in a variable; it comes from an output or a message at most.
        env.push((format!("CRONLATCH_{}", name.to_uppercase()), value.replace('\0', " ")));
    }
    env
}

/// What is told, with the names that `cronlatch runs --json` has.
fn object(host: &HostName, job: &Job, verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Failure { run, in_a_row } => of_run("failure", host, run, *in_a_row),
        Verdict::Recovery { run, after } => of_run("recovery", host, run, *after),
        Verdict::Missed { from, to, count, reason } => json!({
            "event": "failure",
            "job": job.name.as_str(),
            "state": "missed",
            "reason": reason.as_str(),
            "scheduled_at": instant(*from),
            "scheduled_until": instant(*to),
            "count": count,
            "host": host.as_str(),
        }),
    }
}

fn of_run(event: &str, teller: &HostName, row: &RunRow, in_a_row: usize) -> Value {
    json!({
        "event": event,
        "job": row.job,
        "run_id": row.run.to_string(),
        "scheduled_at": instant(row.scheduled_at),
        "attempt": row.attempt,
        "trigger": row.kind.as_str(),
        "state": row.state.as_str(),
        "reason": row.reason,
        "exit_code": row.exit_code,
        "signal": row.signal,
        "host": row.host.as_deref().unwrap_or(teller.as_str()),
        "lock": row.resource,
        "token": row.token.map(crate::lock::FencingToken::get),
        "started_at": row.started_at.map(instant),
        "finished_at": row.finished_at.map(instant),
        "failures_in_a_row": in_a_row,
        "output_tail": row.output_tail,
    })
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

async fn to_the_end(mut child: Child) -> Result<(), String> {
    let tail = child.take_output().map(Pump::for_tail_alone);
    let ended = loop {
        match child.next().await {
            ChildEvent::Ended(ended) => break ended,
            ChildEvent::Vanished => return Err("its shim is gone".to_owned()),
            ChildEvent::LeftBehind(_) | ChildEvent::Unkillable(_) => {}
        }
    };
    let tail = match tail {
        Some(tail) => tail.finish().await,
        None => None,
    };
    let how = match ended.exit {
        Exit::Code(0) if ended.by_itself.is_none() => return Ok(()),
        _ if ended.by_itself.is_some() => {
            format!("it took longer than {} and was stopped", crate::clock::human(WITHIN))
        }
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
    };
    let last = tail.as_deref().and_then(|tail| tail.lines().next_back()).unwrap_or_default();
    Err(if last.is_empty() { how } else { format!("{how}: {last}") })
}

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::decision::Verdict;
use super::{EndedRun, Occasion};
use crate::clock::BootInstant;
use crate::events;
use crate::fleet::HostName;
use crate::job::{Command, Job, Stdin};
use crate::run::environment::base_environment;
use crate::run::pump::Pump;
use crate::shim::{Child, ChildEvent, Exit, Program, SpawnRequest, Spawner};

/// How long a command may take; it is told to end a little earlier.
const WITHIN: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);

/// How long its preparation may take.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Runs the command that the verdict asks for, if the job has one.
pub(super) async fn tell(spawner: &Spawner, host: &HostName, job: &Job, verdict: &Verdict) {
    let Some(notices) = &job.notices else { return };
    let (what, command) = match verdict {
        Verdict::Failure { .. } => ("on_failure", &notices.on_failure),
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

/// The job's own variables, and the values of the object, for commands that don't read JSON.
fn environment(job: &Job, told: &Value) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = job.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in told.as_object().into_iter().flatten() {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let name = if name == "id" { "RUN_ID".to_owned() } else { name.to_uppercase() };
        // A NUL can't be in a variable; it comes from an output or a message at most.
        env.push((format!("CRONLATCH_{name}"), value.replace('\0', " ")));
    }
    env
}

/// What is told, with the names that `cronlatch runs --json` has.
fn object(host: &HostName, job: &Job, verdict: &Verdict) -> Value {
    let (event, what, in_a_row) = match verdict {
        Verdict::Failure { what, in_a_row } => ("failure", what, in_a_row),
        Verdict::Recovery { what, after } => ("recovery", what, after),
    };
    let mut object = match what {
        Occasion::Ended(ended) => of_run(ended),
        Occasion::Missed { from, to, count, reason } => json!({
            "job": job.name.as_str(),
            "scheduled_at": instant(*from),
            "scheduled_until": instant(*to),
            "count": count,
            "state": "missed",
            "reason": reason.as_str(),
        }),
    };
    object["event"] = json!(event);
    object["failures_in_a_row"] = json!(in_a_row);
    object["told_by"] = json!(host.as_str());
    object
}

fn of_run(ended: &EndedRun) -> Value {
    json!({
        "id": ended.run.to_string(),
        "job": ended.trigger.job.as_str(),
        "scheduled_at": instant(ended.trigger.scheduled_at),
        "target": ended.trigger.target.as_str(),
        "attempt": ended.attempt,
        "trigger": ended.kind.map(crate::trigger::TriggerKind::as_str),
        "state": ended.state.as_str(),
        "host": ended.host,
        "lock": ended.resource.as_str(),
        "token": ended.token.map(crate::lock::FencingToken::get),
        "started_at": ended.started_at.map(instant),
        "finished_at": ended.finished_at.map(instant),
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "reason": ended.reason,
        "output_tail": ended.output_tail,
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

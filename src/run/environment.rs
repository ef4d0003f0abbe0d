use chrono::SecondsFormat;

use super::assignment::Assignment;
use crate::fleet::HostName;
use crate::lock::FencingToken;

/// What a job finds if it sets nothing itself, beside who it runs as: not the daemon's own environment, which
/// differs by host and may hold secrets.
const BASE: &[(&str, &str)] = &[
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("SHELL", "/bin/sh"),
    ("LANG", "C.UTF-8"),
];

/// Variables that everything else overrides.
pub(super) fn base_environment() -> Vec<(String, String)> {
    BASE.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The job's own variables, and what tells the job which run it is, which nothing overrides.
pub(super) fn environment(assignment: &Assignment, host: &HostName, token: FencingToken) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> =
        assignment.job.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
    let trigger = &assignment.trigger;
    set("CRONLATCH_JOB", trigger.job.as_str().to_owned());
    set("CRONLATCH_RUN_ID", assignment.run.to_string());
    set("CRONLATCH_SCHEDULED_AT", trigger.scheduled_at.to_rfc3339_opts(SecondsFormat::AutoSi, true));
    set("CRONLATCH_ATTEMPT", assignment.attempt.to_string());
    set("CRONLATCH_HOST", host.as_str().to_owned());
    set("CRONLATCH_LOCK", assignment.resource.as_str().to_owned());
    set("CRONLATCH_FENCING_TOKEN", token.to_string());
    env
}

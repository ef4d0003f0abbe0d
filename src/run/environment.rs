use std::ffi::OsString;
use std::path::PathBuf;

use chrono::SecondsFormat;

use super::supervise::Assignment;
use crate::fleet::HostName;
use crate::lock::FencingToken;
use crate::shim::User;

/// What a job finds if it sets nothing itself: not the daemon's own environment, which differs by
/// host and may hold secrets.
const BASE: &[(&str, &str)] = &[
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("SHELL", "/bin/sh"),
    ("LANG", "C.UTF-8"),
];

/// The whole environment of a run: the base, the job's own variables over it, and what tells the
/// job which run it is, which nothing overrides.
pub(super) fn environment(
    assignment: &Assignment,
    user: &User,
    host: &HostName,
    token: FencingToken,
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: OsString| {
        env.retain(|(known, _)| known != name);
        env.push((name.into(), value));
    };
    for (name, value) in BASE {
        set(name, value.into());
    }
    set("HOME", user.home.clone().into_os_string());
    set("USER", user.name.clone().into());
    set("LOGNAME", user.name.clone().into());
    for (name, value) in &assignment.job.env {
        set(name, value.into());
    }
    let trigger = &assignment.trigger;
    set("CRONLATCH_JOB", trigger.job.as_str().into());
    set("CRONLATCH_RUN_ID", assignment.run.to_string().into());
    set("CRONLATCH_SCHEDULED_AT", trigger.scheduled_at.to_rfc3339_opts(SecondsFormat::AutoSi, true).into());
    set("CRONLATCH_ATTEMPT", assignment.attempt.to_string().into());
    set("CRONLATCH_HOST", host.as_str().into());
    set("CRONLATCH_LOCK", assignment.resource.as_str().into());
    set("CRONLATCH_FENCING_TOKEN", token.to_string().into());
    env
}

/// Where a run starts.
pub(super) fn directory(assignment: &Assignment, user: &User) -> PathBuf {
    assignment.job.directory.clone().unwrap_or_else(|| user.home.clone())
}

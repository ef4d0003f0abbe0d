//! Niceness and limits (`setpriority(2)`, `setrlimit(2)`).

use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};

use super::{Failed, OrFailed};
use crate::job::Limits;

/// Sets the niceness; 0 leaves the daemon's.
pub(super) fn nice(nice: i8) -> Result<(), Failed> {
    if nice == 0 {
        return Ok(());
    }
    setpriority_process(None, nice.into()).or_failed_with(|| format!("set nice = {nice}"))
}

/// Sets all limits but that of memory, which what follows still needs.
pub(super) fn set(limits: &Limits) -> Result<(), Failed> {
    // Nobody is killed for what the rest of a second is worth.
    let cpu_seconds = limits.cpu_time.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0));
    one(Resource::Cpu, "cpu_time", cpu_seconds)?;
    one(Resource::Nofile, "open_files", limits.open_files)?;
    one(Resource::Nproc, "processes", limits.processes)
}

/// Sets the limit of memory.
pub(super) fn set_memory(limits: &Limits) -> Result<(), Failed> {
    one(Resource::As, "memory", limits.memory)
}

fn one(resource: Resource, name: &str, most: Option<u64>) -> Result<(), Failed> {
    let Some(most) = most else { return Ok(()) };
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).or_failed_with(|| {
        let now = getrlimit(resource).maximum.map_or_else(|| "none".to_owned(), |now| now.to_string());
        format!("set limits.{name} = {most} (the daemon's own limit is {now})")
    })
}

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use clap::Args;
use serde_json::json;

use super::table::{Column, Fit, table, width};
use super::{Failure, print, print_json, when};
use crate::config;
use crate::job::schedule::{FieldProblem, InvalidSchedule, Reading, Schedule, parse_zone};
use crate::job::{Job, JobName, Moment};

#[derive(Args, Debug)]
pub(super) struct Next {
    /// Only this job
    #[arg(conflicts_with = "expr")]
    job: Option<String>,
    /// A crontab expression instead of the schedule file; may be repeated
    #[arg(long)]
    expr: Vec<String>,
    /// The job's name, which H in an expression is derived from
    #[arg(long, requires = "expr", value_parser = |name: &str| JobName::new(name))]
    name: Option<JobName>,
    /// The time zone of the expressions, of --from and of what is shown [default: UTC; for jobs their own]
    #[arg(long, value_parser = parse_zone)]
    timezone: Option<Tz>,
    /// How many
    #[arg(short = 'n', default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Instants later than this one: 2026-12-02T08:00:00Z; or in the time zone: 2026-12-02T08:00, or 2026-12-02 for its midnight [default: now]
    #[arg(long, value_parser = when::moment)]
    from: Option<Moment>,
    /// Show instants in UTC
    #[arg(long)]
    utc: bool,
    /// One JSON array instead of a table
    #[arg(long)]
    json: bool,
}

/// What ticks: a job, or what was typed.
struct Ticking {
    name: Option<String>,
    schedule: Schedule,
    start_delay: Duration,
}

struct Tick {
    name: Option<String>,
    at: DateTime<Utc>,
    /// Later than `at`, if the job has a splay.
    starts_at: DateTime<Utc>,
    zone: Tz,
}

/// What was asked for.
enum Asked {
    Ticking(Vec<Ticking>),
    /// A job that has no instants of its own, and why.
    Never(String),
}

impl Next {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let asked = if self.expr.is_empty() { self.of_file(path)? } else { Asked::Ticking(vec![self.typed()?]) };
        let now = Utc::now();
        let ticks = match asked {
            Asked::Ticking(ticking) => self.ticks(&ticking, now)?,
            Asked::Never(why) if !self.json => return print(&why),
            Asked::Never(_) => Vec::new(),
        };
        if self.json {
            return print_json(&ticks.iter().map(|tick| self.object(tick)).collect::<Vec<_>>());
        }
        if ticks.is_empty() { print("nothing is scheduled\n") } else { print(&self.table(ticks, now)) }
    }

    fn typed(&self) -> Result<Ticking, Failure> {
        let zone = self.timezone.unwrap_or(Tz::UTC);
        let reading = Reading { job: self.name.as_ref(), ..Reading::in_zone(zone) };
        let schedule = Schedule::read(&self.expr, &reading).map_err(|error| match &error {
            InvalidSchedule::Field { problem: FieldProblem::HashedWithoutJob, .. } => {
                Failure::usage(format!("{error}, or name the job with --name NAME"))
            }
            _ => Failure::usage(error.to_string()),
        })?;
        let name = self.name.as_ref().map(ToString::to_string);
        Ok(Ticking { name, schedule, start_delay: Duration::ZERO })
    }

    fn of_file(&self, path: &Path) -> Result<Asked, Failure> {
        let loaded = config::load(path);
        let wanted = |name: &str| self.job.as_deref().is_none_or(|job| job == name);
        let found: Vec<&Job> = loaded.jobs.iter().filter(|job| job.enabled && wanted(job.name.as_str())).collect();
        match (&self.job, found.as_slice()) {
            (Some(name), [job]) if job.schedule.is_by_hand() => {
                let words = job.ticks_in_words();
                Ok(Asked::Never(format!("{name} has no instants of its own: it runs {words}\n")))
            }
            (_, [_, ..]) => {
                let ticking = found.into_iter().filter(|job| !job.schedule.is_by_hand());
                Ok(Asked::Ticking(ticking.map(Ticking::of).collect()))
            }
            _ if !loaded.problems.is_empty() => {
                let problems: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
                Err(Failure::config(problems.join("\n")))
            }
            (Some(job), []) => Err(Failure::usage(format!("no enabled job {job:?} in {}", path.display()))),
            (None, []) => Ok(Asked::Ticking(Vec::new())),
        }
    }

    /// The next instants of all, in order.
    fn ticks(&self, ticking: &[Ticking], now: DateTime<Utc>) -> Result<Vec<Tick>, Failure> {
        let mut next = BinaryHeap::new();
        for (place, one) in ticking.iter().enumerate() {
            let from = self.later_than(self.timezone.unwrap_or(one.schedule.zone()), now)?;
            next.extend(one.schedule.next_after(from).map(|at| Reverse((at, place))));
        }
        let mut ticks = Vec::new();
        for _ in 0..self.count {
            let Some(Reverse((at, place))) = next.pop() else { break };
            let one = &ticking[place];
            next.extend(one.schedule.next_after(at).map(|at| Reverse((at, place))));
            let zone = if self.utc { Tz::UTC } else { self.timezone.unwrap_or(one.schedule.zone()) };
            ticks.push(Tick { name: one.name.clone(), at, starts_at: at + one.start_delay, zone });
        }
        Ok(ticks)
    }

    /// `--from`, by the clocks of a zone where it has no offset.
    fn later_than(&self, zone: Tz, now: DateTime<Utc>) -> Result<DateTime<Utc>, Failure> {
        let Some(from) = self.from else { return Ok(now) };
        from.start_in(zone).map_err(|error| Failure::usage(format!("--from: {error}")))
    }

    fn table(&self, ticks: Vec<Tick>, now: DateTime<Utc>) -> String {
        let at = zone_of_all(&ticks).map_or_else(|| "AT".to_owned(), |zone| format!("AT ({zone})"));
        let is_splayed = ticks.iter().any(|tick| tick.starts_at > tick.at);
        let job: Option<Column<'_>> = self.expr.is_empty().then_some(("JOB", Fit::Wraps));
        let starts: Option<Column<'_>> = is_splayed.then_some(("STARTS", Fit::Whole));
        let rest = [(at.as_str(), Fit::Whole)].into_iter().chain(starts).chain([("THAT IS", Fit::Whole)]);
        let columns: Vec<_> = job.into_iter().chain(rest).collect();
        let cells = |tick: Tick| {
            let name = tick.name.clone().filter(|_| self.expr.is_empty());
            let starts = is_splayed.then(|| self.shown(tick.starts_at, tick.zone));
            let shown = [self.shown(tick.at, tick.zone)].into_iter().chain(starts);
            name.into_iter().chain(shown).chain([when::relative(tick.at, now)]).collect()
        };
        table(&columns, &ticks.into_iter().map(cells).collect::<Vec<_>>(), width())
    }

    /// `starts_at` is there if the job has a splay that moves its start.
    fn object(&self, tick: &Tick) -> serde_json::Value {
        let local = self.shown(tick.at, tick.zone);
        let mut object = json!({ "job": tick.name, "at": when::json(tick.at), "local": local });
        if tick.starts_at > tick.at {
            object["starts_at"] = when::json(tick.starts_at).into();
        }
        object
    }

    fn shown(&self, at: DateTime<Utc>, zone: Tz) -> String {
        if self.utc { when::people(at) } else { when::local(at, zone) }
    }
}

impl Ticking {
    fn of(job: &Job) -> Self {
        Self { name: Some(job.name.to_string()), schedule: job.schedule.clone(), start_delay: job.start_delay }
    }
}

/// The zone of all instants, if they have one.
fn zone_of_all(ticks: &[Tick]) -> Option<Tz> {
    let zone = ticks.first()?.zone;
    ticks.iter().all(|tick| tick.zone == zone).then_some(zone)
}

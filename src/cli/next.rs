use std::path::Path;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use clap::Args;
use serde_json::json;

use super::table::{Column, Fit, table, width};
use super::{Failure, print, print_json, when};
use crate::config;
use crate::job::schedule::{Schedule, parse_zone};

#[derive(Args, Debug)]
pub(super) struct Next {
    /// Only this job
    #[arg(conflicts_with = "expr")]
    job: Option<String>,
    /// A crontab expression instead of the schedule file
    #[arg(long)]
    expr: Option<String>,
    /// The time zone of the expression
    #[arg(long, requires = "expr", default_value = "UTC")]
    timezone: String,
    /// How many
    #[arg(short = 'n', default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Instants later than this one: 2026-12-02T08:00:00Z, or 2026-12-02 for its midnight in UTC [default: now]
    #[arg(long, value_parser = when::instant)]
    from: Option<DateTime<Utc>>,
    /// In UTC instead of the job's zone
    #[arg(long)]
    utc: bool,
    /// One JSON array instead of a table
    #[arg(long)]
    json: bool,
}

/// A named schedule, and the instants that were shown of it so far.
struct Ticking {
    name: Option<String>,
    schedule: Schedule,
    next: Option<DateTime<Utc>>,
}

struct Tick {
    name: Option<String>,
    at: DateTime<Utc>,
    local: String,
    zone: Tz,
}

impl Next {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let now = Utc::now();
        let from = self.from.unwrap_or(now);
        let schedules = match &self.expr {
            Some(expression) => vec![(None, self.typed(expression)?)],
            None => self.of_file(path)?,
        };
        let ticking = schedules
            .into_iter()
            .map(|(name, schedule)| Ticking { name, next: schedule.next_after(from), schedule })
            .collect();
        let ticks = self.ticks(ticking);
        if self.json {
            let object = |tick: &Tick| json!({ "job": tick.name, "at": when::json(tick.at), "local": tick.local });
            return print_json(&ticks.iter().map(object).collect::<Vec<_>>());
        }
        if ticks.is_empty() {
            return print("nothing is scheduled\n");
        }
        let at = zone_of_all(&ticks).map_or_else(|| "AT".to_owned(), |zone| format!("AT ({zone})"));
        let job: Option<Column<'_>> = self.expr.is_none().then_some(("JOB", Fit::Wraps));
        let columns: Vec<_> = job.into_iter().chain([(at.as_str(), Fit::Whole), ("THAT IS", Fit::Whole)]).collect();
        let cells = |tick: Tick| {
            let shown = vec![tick.local, when::relative(tick.at, now)];
            tick.name.into_iter().chain(shown).collect()
        };
        print(&table(&columns, &ticks.into_iter().map(cells).collect::<Vec<_>>(), width()))
    }

    fn typed(&self, expression: &str) -> Result<Schedule, Failure> {
        let zone = parse_zone(&self.timezone).map_err(|error| Failure::usage(error.to_string()))?;
        Schedule::parse(expression, zone).map_err(|error| Failure::usage(error.to_string()))
    }

    fn of_file(&self, path: &Path) -> Result<Vec<(Option<String>, Schedule)>, Failure> {
        let loaded = config::load(path);
        let wanted = |name: &str| self.job.as_deref().is_none_or(|job| job == name);
        let found: Vec<_> = loaded
            .jobs
            .iter()
            .filter(|job| job.enabled && wanted(job.name.as_str()))
            .map(|job| (Some(job.name.to_string()), job.schedule.clone()))
            .collect();
        match (&self.job, found.is_empty()) {
            (_, false) => Ok(found),
            _ if !loaded.problems.is_empty() => {
                let problems: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
                Err(Failure::config(problems.join("\n")))
            }
            (Some(job), true) => Err(Failure::usage(format!("no enabled job {job:?} in {}", path.display()))),
            (None, true) => Ok(found),
        }
    }

    /// The next instants of all, in order.
    fn ticks(&self, mut ticking: Vec<Ticking>) -> Vec<Tick> {
        let mut ticks = Vec::new();
        for _ in 0..self.count {
            let first = ticking.iter_mut().filter(|ticking| ticking.next.is_some()).min_by_key(|ticking| ticking.next);
            let Some(first) = first else { break };
            let Some(at) = first.next else { break };
            first.next = first.schedule.next_after(at);
            let zone = if self.utc { Tz::UTC } else { first.schedule.zone() };
            let local = if self.utc {
                when::people(at)
            } else {
                at.with_timezone(&zone).format("%a %Y-%m-%d %H:%M:%S %:z").to_string()
            };
            ticks.push(Tick { name: first.name.clone(), at, local, zone });
        }
        ticks
    }
}

/// The zone of all instants, if they have one.
fn zone_of_all(ticks: &[Tick]) -> Option<Tz> {
    let zone = ticks.first()?.zone;
    ticks.iter().all(|tick| tick.zone == zone).then_some(zone)
}

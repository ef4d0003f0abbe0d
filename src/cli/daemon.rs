//! `cronlatch daemon`: the composition root.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook_tokio::Signals;
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt;

use super::Failure;
use super::failure::say;
use super::store::{Missing, open_options};
use crate::config::{self, DaemonSettings, DatabaseUrl, Drain, Loaded, Migrate, Settings};
use crate::daemon::{Daemon, DaemonError, Options, Order, Plan};
use crate::job::Job;
use crate::shim::Executable;
use crate::{events, store, telemetry};

/// How long a claim or another call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn run(path: &Path) -> Result<(), Failure> {
    // Before anything else: a package may be upgraded at any time.
    let executable =
        Executable::own().map_err(|error| Failure::bug(format!("can't open the own executable: {error}")))?;
    let loaded = config::load_to_run(path);
    let (true, Some(settings)) = (loaded.is_usable(), loaded.settings.clone()) else {
        return Err(refusal(&loaded));
    };
    let log = telemetry::start(log_format(&settings)?, settings.log.level.as_str());
    let log = log.map_err(|error| Failure::config(error.to_string()))?;
    log_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(2, 8))
        .enable_all()
        .build()
        .map_err(|error| Failure::bug(format!("can't start the runtime: {error}")))?;
    let done = runtime.block_on(serve(path, &settings, &loaded, executable));
    // What is left would be waited for: a name look-up, a file of SQLite.
    runtime.shutdown_timeout(Duration::from_millis(200));
    let dropped = log.dropped_lines();
    log.finish();
    if dropped > 0 {
        say(&format!("{dropped} lines of the log were dropped, for nobody took them"));
    }
    done
}

/// All problems, as `check` prints them.
fn refusal(loaded: &Loaded) -> Failure {
    let mut lines: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
    lines.push("not started: mend the schedule and see `cronlatch check`".to_owned());
    Failure::config(lines.join("\n"))
}

/// The format of the settings, unless `CRONLATCH_LOG_FORMAT` says otherwise.
fn log_format(settings: &Settings) -> Result<telemetry::LogFormat, Failure> {
    match std::env::var("CRONLATCH_LOG_FORMAT").as_deref() {
        Ok("text") => Ok(telemetry::LogFormat::Text),
        Ok("json") => Ok(telemetry::LogFormat::Json),
        Ok("auto") => Ok(telemetry::LogFormat::Auto),
        Ok(other) => Err(Failure::config(format!("CRONLATCH_LOG_FORMAT={other:?}: write auto, text or json"))),
        Err(_) => Ok(match settings.log.format {
            config::LogFormat::Auto => telemetry::LogFormat::Auto,
            config::LogFormat::Text => telemetry::LogFormat::Text,
            config::LogFormat::Json => telemetry::LogFormat::Json,
        }),
    }
}

/// A panic of a task is a bug that somebody should see where the other lines are.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| events::daemon_panicked(&panic.to_string())));
}

async fn serve(path: &Path, settings: &Settings, loaded: &Loaded, executable: Executable) -> Result<(), Failure> {
    let store =
        store::open(&open_options(settings, CALL_TIMEOUT, heartbeat_timeout(loaded, settings), Missing::IsMade)?)?;
    for problem in &loaded.problems {
        events::schedule_problem(&problem.to_string());
    }
    let daemon = Daemon::new(options(settings), store, Arc::new(plan(loaded)), executable)?;
    let (order, orders) = mpsc::channel(8);
    let (new_plan, plans) = mpsc::channel(8);
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])
        .map_err(|error| Failure::bug(format!("can't listen for signals: {error}")))?;
    let reload = Notify::new();
    tokio::select! {
        done = daemon.run(orders, plans) => done.map_err(Failure::from),
        () = heed(signals, &reload, order) => Ok(()),
        () = reread(path, settings, &reload, new_plan) => Ok(()),
    }
}

/// Turns signals into orders, until it is dropped. A reload is only asked for here: reading files
/// takes its time, and no TERM waits for it.
async fn heed(mut signals: Signals, reload: &Notify, orders: mpsc::Sender<Order>) {
    while let Some(signal) = signals.next().await {
        // The daemon takes orders until it ends; a full or closed queue means that it is ending.
        match signal {
            SIGHUP => reload.notify_one(),
            // Nor does TERM wait behind a question.
            SIGUSR1 => orders.try_send(Order::State).ok().unwrap_or_default(),
            SIGINT => orders.send(Order::Stop("SIGINT")).await.ok().unwrap_or_default(),
            _ => orders.send(Order::Stop("SIGTERM")).await.ok().unwrap_or_default(),
        }
    }
    std::future::pending().await
}

/// Reads the schedule again each time it is asked for, until it is dropped. What is asked for during a
/// reading is one more, however often.
async fn reread(path: &Path, in_use: &Settings, asked: &Notify, plans: mpsc::Sender<Arc<Plan>>) {
    loop {
        asked.notified().await;
        let path = path.to_owned();
        // A panic in there was told by the hook.
        let Ok(loaded) = tokio::task::spawn_blocking(move || config::load_to_run(&path)).await else { continue };
        if let Some(plan) = judge_reload(&loaded, in_use) {
            // A closed queue means that the daemon is ending.
            plans.send(Arc::new(plan)).await.ok();
        }
    }
}

/// The plan of a schedule without a fault; any other changes nothing. At the start a bad file of
/// `jobs.d` takes its own jobs away, for the others have to run; here there is an old schedule that is whole.
fn judge_reload(loaded: &Loaded, in_use: &Settings) -> Option<Plan> {
    for problem in &loaded.problems {
        events::schedule_problem(&problem.to_string());
    }
    let settings = loaded.settings.as_ref().filter(|_| loaded.is_usable() && loaded.problems.is_empty());
    let Some(settings) = settings else {
        events::daemon_reload_refused(loaded.problems.len());
        return None;
    };
    let changed = changed_sections(settings, in_use);
    if !changed.is_empty() {
        events::daemon_reload_ignored(&changed.join(", "));
    }
    Some(plan(loaded))
}

/// The sections that a reload doesn't take. `timezone` of `[daemon]` is a default of jobs, which it takes.
fn changed_sections(new: &Settings, in_use: &Settings) -> Vec<&'static str> {
    let daemon = DaemonSettings { timezone: in_use.daemon.timezone, ..new.daemon.clone() };
    let changed = [
        ("[database]", new.database != in_use.database),
        ("[daemon]", daemon != in_use.daemon),
        ("[history]", new.history != in_use.history),
        ("[log]", new.log != in_use.log),
    ];
    changed.into_iter().filter(|(_, changed)| *changed).map(|(section, _)| section).collect()
}

fn plan(loaded: &Loaded) -> Plan {
    let digest = |job: &Job| loaded.digest_of(&job.name).map(|digest| digest.to_string()).unwrap_or_default();
    let jobs = loaded.jobs.iter().map(|job| (job.clone(), digest(job)));
    Plan::new(jobs, loaded.schedule_digest().to_string())
}

/// Renewals have a bound of their own: what the shortest heartbeat of all jobs allows.
fn heartbeat_timeout(loaded: &Loaded, settings: &Settings) -> Duration {
    loaded.jobs.iter().map(|job| job.timing.call_timeout()).fold(settings.lock.call_timeout(), Duration::min)
}

fn options(settings: &Settings) -> Options {
    Options {
        host: settings.daemon.host.clone(),
        labels: settings.daemon.labels.clone(),
        max_running_jobs: settings.daemon.max_running_jobs,
        drain: match settings.daemon.drain {
            Drain::Within(drain) => Some(drain),
            Drain::Infinite => None,
        },
        heartbeat: settings.lock.heartbeat(),
        keep: settings.history.keep,
        keep_runs: settings.history.keep_runs,
        migrate: settings.database.migrate == Migrate::Auto,
        database: match &settings.database.url {
            DatabaseUrl::Sqlite(path) => format!("SQLite {}", path.display()),
            DatabaseUrl::Postgres(url) => url.to_string(),
        },
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Store(error) => error.into(),
            DaemonError::Spawner(_) => Self::bug(error.to_string()),
        }
    }
}

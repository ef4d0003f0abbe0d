use std::path::PathBuf;
use std::time::Duration;

use chrono_tz::Tz;
use rustix::system::uname;

use super::database_url::redact;
use super::document::{DAEMON, DATABASE, Field, HISTORY, JOB, LOCK, LOG, Refused, Section, Taken, Value};
use super::meaning::Base;
use super::settings::{
    DaemonSettings, DatabaseSettings, Drain, HistorySettings, LogFormat, LogLevel, LogSettings, Migrate, Settings,
};
use super::ticking::read_zone;
use super::timing::TypedTiming;
use super::typed_job::{NamedJob, TypedJob};
use super::{DatabaseUrl, duration};
use crate::fleet::{HostName, Label};
use crate::lock::LeaseTiming;

/// Claims, heartbeats and the rest each need a connection that no other can starve.
const LEAST_CONNECTIONS: u32 = 3;
const MOST_CONNECTIONS: u32 = 1000;
const MAX_RUNNING_JOBS: u32 = 64;
const DRAIN: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const KEEP_DAYS: u32 = 90;
const KEEP_RUNS: u32 = 10_000;

/// What the main file says, its jobs apart.
#[derive(Debug)]
pub struct MainFile {
    /// `None` if something in the tables of the settings is wrong; the problems say what.
    pub settings: Option<Settings>,
    /// What jobs are laid over.
    pub base: Base,
    /// Where `password_file` stands, for a look at it.
    pub password_file: Field<PathBuf>,
}

impl MainFile {
    /// Reads all tables but those of the jobs.
    pub fn read(top: &mut Section<'_>) -> Self {
        let (database, password_file) = top.section("database", &DATABASE, read_database).unzip();
        let (daemon, zone) = top.section("daemon", &DAEMON, read_daemon).unzip();
        let (lock, lock_keys) = top.section("lock", &LOCK, read_lock).unzip();
        let history = top.section("history", &HISTORY, read_history);
        let log = top.section("log", &LOG, read_log);
        let settings = top.is_clean().then(|| {
            let (database, daemon, lock) = (database.flatten()?, daemon.flatten()?, lock.flatten()?);
            Some(Settings { database, daemon, lock, history: history?, log: log? })
        });
        let lock_keys = lock_keys.unwrap_or_default();
        let defaults = top.section("defaults", &JOB, |section| read_defaults(section, &lock_keys)).unwrap_or_default();
        let timing = defaults.timing.over(&lock_keys);
        let base = Base { timing, defaults, zone: zone.unwrap_or_default() };
        let password_file = password_file.unwrap_or_default();
        Self { settings: settings.flatten(), base, password_file }
    }
}

/// Reads the jobs of any file, one by one: as it was typed, a job takes more room than as it is meant.
/// They were taken out of the top of the file.
pub fn read_jobs(top: &mut Section<'_>, jobs: Option<Taken<'_>>, mut take: impl FnMut(&NamedJob)) {
    let Some(jobs) = jobs else { return };
    top.each_section(jobs, &JOB, |name, section| {
        if let Some(job) = NamedJob::read(name, section) {
            take(&job);
        }
    });
}

fn read_database(section: &mut Section<'_>) -> (Option<DatabaseSettings>, Field<PathBuf>) {
    let url = section.field("url", read_url);
    let password_file = section.field("password_file", Value::absolute_path);
    let pooler = section.field("pooler", Value::boolean);
    let direct_url = section.field("direct_url", read_direct_url);
    let migrate =
        section.field("migrate", |value| value.word(&[("auto", Migrate::Auto), ("manual", Migrate::Manual)], &[]));
    let max_connections =
        section.field("max_connections", |value| value.whole_number(LEAST_CONNECTIONS..=MOST_CONNECTIONS));
    if url.is_absent() {
        let remedy = "write url = \"postgres://USER@HOST/DATABASE\" in [database]; all hosts share it";
        section.push(section.place().absent("url").problem("missing", remedy).resting_on_others());
    }
    if matches!(url.value(), Some(DatabaseUrl::Sqlite(_))) {
        let places = [
            password_file.typed().map(|typed| &typed.place),
            pooler.typed().filter(|typed| typed.value).map(|typed| &typed.place),
            direct_url.typed().map(|typed| &typed.place),
        ];
        for place in places.into_iter().flatten() {
            section.push(place.problem("means nothing with SQLite", "remove it").resting_on_others());
        }
    }
    let settings = url.value().map(|url| DatabaseSettings {
        url,
        password_file: password_file.value(),
        pooler: pooler.value_or(false),
        direct_url: direct_url.value(),
        migrate: migrate.value_or(Migrate::Auto),
        max_connections: max_connections.value_or(LEAST_CONNECTIONS),
    });
    (settings, password_file)
}

fn read_url(value: &Value<'_>) -> Result<DatabaseUrl, Refused> {
    // Secret first: whatever stands here can hold a password, also where a list is written.
    let value = value.secret();
    let url = value.string()?;
    DatabaseUrl::parse(&url).map_err(|error| {
        let shown = format!("{:?}", redact(&url));
        value.place.problem(error.to_string(), error.remedy()).showing(shown).into()
    })
}

fn read_direct_url(value: &Value<'_>) -> Result<DatabaseUrl, Refused> {
    let url = read_url(value)?;
    if url.sqlite_path().is_some() {
        let remedy = "write the URL that leads around the pooler to PostgreSQL";
        return Err(value.secret().refuse("SQLite has no pooler", remedy));
    }
    Ok(url)
}

fn read_daemon(section: &mut Section<'_>) -> (Option<DaemonSettings>, Field<Tz>) {
    let host = section.field("host", |value| value.checked(HostName::new));
    let labels = section.field("labels", |value| value.list_of(|label| label.checked(Label::new)));
    let zone = section.field("timezone", read_zone);
    let max_running_jobs = section.field("max_running_jobs", |value| value.whole_number(1..=100_000));
    let drain = section.field("drain", read_drain);
    let host = if host.is_absent() { machine_name(section) } else { host.value() };
    let settings = host.map(|host| DaemonSettings {
        host,
        labels: labels.value_or(Vec::new()).into_iter().map(|label| label.value).collect(),
        timezone: zone.value_or(Tz::UTC),
        max_running_jobs: max_running_jobs.value_or(MAX_RUNNING_JOBS),
        drain: drain.value_or(Drain::Within(DRAIN)),
    });
    (settings, zone)
}

/// The machine's name, unless it is one that the tables can't hold.
fn machine_name(section: &mut Section<'_>) -> Option<HostName> {
    let name = uname().nodename().to_string_lossy().into_owned();
    let checked = HostName::new(&name);
    checked
        .map_err(|error| {
            let wrong = format!("missing, and the machine's name {name:?} can't be taken: {error}");
            section.push(section.place().absent("host").problem(wrong, "write host = \"NAME\" in [daemon]"));
        })
        .ok()
}

fn read_drain(value: &Value<'_>) -> Result<Drain, Refused> {
    if value.string().is_ok_and(|text| text == "infinite") {
        return Ok(Drain::Infinite);
    }
    let refused = |Refused(mut problems): Refused| {
        let remedies = problems.iter_mut().filter_map(|problem| problem.remedy.as_mut());
        remedies.for_each(|remedy| remedy.push_str(", or drain = \"infinite\""));
        Refused(problems)
    };
    value.duration(Duration::ZERO).map(Drain::Within).map_err(refused)
}

fn read_lock(section: &mut Section<'_>) -> (Option<LeaseTiming>, TypedTiming) {
    let keys = TypedTiming::read(section);
    let timing = judge(&keys, &TypedTiming::default(), section);
    (timing, keys)
}

fn read_defaults(section: &mut Section<'_>, lock: &TypedTiming) -> TypedJob {
    let defaults = TypedJob::read(section);
    if !defaults.timing.is_absent() && !lock.is_refused() {
        judge(&defaults.timing, lock, section);
    }
    defaults
}

fn judge(keys: &TypedTiming, over: &TypedTiming, section: &mut Section<'_>) -> Option<LeaseTiming> {
    if keys.is_refused() {
        return None;
    }
    keys.judge_over(over).map_err(|problem| section.push(*problem)).ok()
}

fn read_history(section: &mut Section<'_>) -> HistorySettings {
    HistorySettings {
        keep: section.field("keep", |value| value.duration(duration::MINUTE)).value_or(DAY * KEEP_DAYS),
        keep_runs: section.field("keep_runs", |value| value.whole_number(1..=u32::MAX)).value_or(KEEP_RUNS),
    }
}

fn read_log(section: &mut Section<'_>) -> LogSettings {
    const FORMATS: [(&str, LogFormat); 3] =
        [("auto", LogFormat::Auto), ("text", LogFormat::Text), ("json", LogFormat::Json)];
    let levels = LogLevel::ALL.map(|level| (level.as_str(), level));
    LogSettings {
        format: section.field("format", |value| value.word(&FORMATS, &[])).value_or(LogFormat::Auto),
        level: section.field("level", |value| value.word(&levels, &[])).value_or(LogLevel::Info),
    }
}

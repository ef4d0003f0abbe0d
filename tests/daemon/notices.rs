//! Who is told how a job fares: commands and monitoring services.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually, eventually_some};

/// Fails as long as there is no file `well`.
const FAILS: &str = "echo at work; test -e well";

/// What was told so far: one JSON object a line.
fn told(fleet: &Fleet) -> Vec<Value> {
    let text = fs::read_to_string(fleet.folder().join("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_streak_of_failures_is_told_once_over_the_fleet_and_then_the_recovery() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let keys = [
        "failures_before_notice = 3",
        "on_failure = [\"/bin/sh\", \"-c\", \"cat >> told; echo $CRONLATCH_STATE $CRONLATCH_JOB $CRONLATCH_FAILURES_IN_A_ROW > last\"]",
        "on_recovery = \"cat >> told\"",
    ];
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, FAILS, &keys);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let failed = || database.runs_of("job").into_iter().filter(|run| run.state == "failed").count();
    eventually("it has failed often", PATIENCE, || failed() >= 6 && !told(&fleet).is_empty());
    let failures = told(&fleet);
    assert_eq!(failures.len(), 1, "{failures:#?}");
    let failure = &failures[0];
    assert_eq!((&failure["event"], &failure["state"]), (&"failure".into(), &"failed".into()));
    assert_eq!((&failure["failures_in_a_row"], &failure["exit_code"]), (&3.into(), &1.into()));
    assert_eq!(failure["output_tail"], "at work\n");
    eventually("the variables are there", PATIENCE, || {
        fs::read_to_string(fleet.folder().join("last")).is_ok_and(|last| last == "failed job 3\n")
    });
    let third = database.runs_of("job").into_iter().filter(|run| run.is_final()).nth(2).unwrap();
    assert_eq!(failure["id"], third.id.as_str());

    fs::write(fleet.folder().join("well"), "").unwrap();
    eventually("the recovery is told", PATIENCE, || told(&fleet).len() >= 2);
    database.wait_for_run("job", "goes well", |run| run.state == "succeeded");
    let recovery = told(&fleet).remove(1);
    assert_eq!((&recovery["event"], &recovery["state"]), (&"recovery".into(), &"succeeded".into()));
    assert!(recovery["failures_in_a_row"].as_u64().unwrap() >= 6, "{recovery}");
    fleet.drain(PATIENCE);
    assert_eq!(told(&fleet).len(), 2, "{:#?}", told(&fleet));
}

#[test]
fn a_notice_that_hangs_or_fails_holds_no_lock_and_delays_no_run() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database)
        .job("hangs", EVERY_SECOND, FAILS, &["on_failure = \"touch hung; sleep 600\""])
        .job("fails", EVERY_SECOND, FAILS, &["on_failure = \"echo no mail today >&2; exit 4\""]);
    fleet.start(&["a"], |host| schedule.on(host));
    eventually("it hangs", PATIENCE, || fleet.folder().join("hung").exists());
    let failed = || database.runs_of("hangs").into_iter().filter(|run| run.state == "failed").count();
    let before = failed();
    eventually("the job goes on", PATIENCE, || failed() >= before + 3);
    let said = fleet["a"].wait_for_event("notice.failed", |event| event["job"] == "fails");
    assert!(said["reason"].as_str().unwrap().contains("exit code 4: no mail today"), "{said}");
    fleet.drain(PATIENCE);
}

#[test]
fn the_host_that_finds_a_lost_run_tells_about_it() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let line = crate::jobs::first_run_holds(&fleet, "job");
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &line, &["on_failure = \"cat >> told\""]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let held = crate::jobs::wait_for_beat(&fleet, "job");
    fleet[&*held.host].kill9();
    let lost = || told(&fleet).into_iter().find(|notice| notice["state"] == "lost");
    let lost = eventually_some("the loss is told", PATIENCE, lost);
    assert_eq!((&lost["id"], &lost["host"]), (&held.run.as_str().into(), &held.host.as_str().into()));
}

/// A service that answers 500 to the first request and then 200, and remembers all of them.
struct Service {
    url: String,
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/ping/secret", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let seen = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let is_first = seen.lock().unwrap().is_empty();
                if let Some(request) = answer(stream, if is_first { "500 Oops" } else { "200 OK" }) {
                    seen.lock().unwrap().push(request);
                }
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap().clone()
    }
}

/// The path and the body of one request.
fn answer(stream: TcpStream, status: &str) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut stream = reader.into_inner();
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok()?;
    Some((path, String::from_utf8(body).ok()?))
}

#[test]
fn a_monitoring_service_hears_of_starts_successes_and_failures_in_order_though_it_stumbles() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let service = Service::start();
    let url = format!("ping_url = {:?}", service.url);
    let line = "echo at work; mkdir failed 2>/dev/null && exit 3; true";
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, line, &[&url]);
    fleet.start(&["a"], |host| schedule.on(host));
    let has = |wanted: &str| service.requests().iter().any(|(path, _)| path == wanted);
    eventually("it was told of both", PATIENCE, || has("/ping/secret") && has("/ping/secret/fail"));
    let requests = service.requests();
    let paths: Vec<&str> = requests.iter().map(|(path, _)| path.as_str()).collect();
    // The first one was answered with 500 and comes again; other runs may come in between.
    let position = |path: &str| paths.iter().position(|known| *known == path);
    assert_eq!(position("/ping/secret/start"), Some(0), "{paths:?}");
    assert!(position("/ping/secret/fail").is_some_and(|fail| fail > 0), "{paths:?}");
    let (_, body) = requests.iter().find(|(path, _)| path == "/ping/secret/fail").unwrap();
    assert_eq!(body, "at work\n");
    let log = fleet["a"].log().clone();
    fleet.drain(PATIENCE);
    assert!(log.lines().iter().all(|line| !line.to_string().contains("secret")), "the address is said");
}

#[test]
fn a_service_that_is_away_is_said_without_its_address_and_delays_no_run() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let keys = ["ping_url = \"http://127.0.0.1:9/ping/secret\""];
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, "true", &keys);
    fleet.start(&["a"], |host| schedule.on(host));
    let said = fleet["a"].wait_for_event("ping.failed", |_| true);
    assert_eq!(said["service"], "127.0.0.1:9", "{said}");
    assert!(!said.to_string().contains("secret"), "{said}");
    let runs = database.runs_of("job");
    assert!(runs.iter().filter(|run| run.is_final()).all(|run| run.state == "succeeded"), "{runs:#?}");
    fleet.drain(PATIENCE);
}

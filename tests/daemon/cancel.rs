//! Somebody wants a run stopped.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::commands::cronlatch;
use crate::jobs::{first_run_endures, first_run_holds, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::ledger::Mark;
use crate::support::machine::is_alive;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::{Database, Run};
use crate::support::wait::{PATIENCE, eventually};

/// The bound within which its host sees a request, and a moment for a loaded machine.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// The run of a job that is under way, told by its first beat.
fn under_way(fleet: &Fleet, database: &Database, job: &str) -> Run {
    let beat = wait_for_beat(fleet, job);
    database.wait_for_run(job, "is under way", |run| run.id == beat.run)
}

#[test]
fn a_cancel_from_another_host_stops_the_run_by_term_within_two_seconds() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &first_run_holds(&fleet, "job"), &[]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let run = under_way(&fleet, &database, "job");
    let other = if run.host.as_deref() == Some("a") { "b" } else { "a" };
    let asked = Instant::now();
    let said = cronlatch(&fleet.config_path(other), &["cancel", &run.id, "--reason", "it hangs", "--wait"]);
    let took = asked.elapsed();
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    assert!(said.stdout.contains(&run.id) && said.stdout.contains("is over: cancelled (cancelled by "), "{said:?}");
    assert!(took < SEEN_WITHIN + PATIENCE / 10, "it took {took:?}");
    let ended = database.wait_for_run("job", "is cancelled", |other| other.id == run.id && other.is_final());
    assert_eq!((ended.state.as_str(), ended.signal), ("cancelled", Some(15)), "{ended:#?}");
    let reason = ended.reason.as_deref().unwrap();
    assert!(reason.starts_with("cancelled by ") && reason.ends_with(": it hangs"), "{reason}");
    let host = run.host.as_deref().unwrap();
    fleet[host].wait_for_event("run.stop_asked", |event| event["run"] == run.id.as_str());
    let cancelled = fleet[host].wait_for_event("run.cancelled", |event| event["run"] == run.id.as_str());
    assert_eq!(cancelled["reason"], reason);
    database.wait_for_run("job", "goes on ticking", |next| next.state == "succeeded");
    let answered = || database.rows("requests").iter().all(|request| request["outcome"] == "told");
    eventually("the request is answered", PATIENCE, answered);
    let again = cronlatch(&fleet.config_path(other), &["cancel", &run.id]);
    assert_eq!(again.code, 64, "{again:?}");
    assert!(again.stderr.contains("is over: cancelled"), "{again:?}");
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn a_run_that_ignores_term_is_killed_after_its_grace() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &first_run_endures(&fleet, "job"), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let beat = wait_for_beat(&fleet, "job");
    let said = cronlatch(&fleet.config_path("a"), &["cancel", &beat.run]);
    assert_eq!(said.code, 0, "{said:?}");
    let ended = database.wait_for_run("job", "is killed", |run| run.id == beat.run && run.is_final());
    assert_eq!((ended.state.as_str(), ended.signal), ("cancelled", Some(9)), "{ended:#?}");
    assert!(!is_alive(beat.pid));
    let entries = fleet.ledger().read();
    let term = entries.of_run(&beat.run).find(|entry| entry.mark == Mark::Term).unwrap().at;
    let grace = entries.of_run(&beat.run).last().unwrap().at.saturating_sub(term);
    assert!(grace >= schedule.kill_grace() / 2, "KILL came after {grace:?}");
}

#[test]
fn a_run_is_cancelled_while_its_daemon_drains() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).drain(10 * PATIENCE).job(
        "job",
        EVERY_SECOND,
        &first_run_holds(&fleet, "job"),
        &[],
    );
    fleet.start(&["a"], |host| schedule.on(host));
    let run = under_way(&fleet, &database, "job");
    fleet["a"].signal(Signal::TERM);
    fleet["a"].wait_for_event("daemon.draining", |_| true);
    assert_eq!(cronlatch(&fleet.config_path("a"), &["cancel", &run.id]).code, 0);
    assert!(fleet["a"].wait_exit(PATIENCE).success());
    let ended = database.wait_for_run("job", "is cancelled", |other| other.id == run.id);
    assert_eq!(ended.state, "cancelled", "{ended:#?}");
}

#[test]
fn a_run_that_waits_is_cancelled_without_any_host() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let shared = "lock = \"shared\"";
    let schedule = Schedule::new(&fleet, &database)
        .job("holder", EVERY_SECOND, &first_run_holds(&fleet, "holder"), &[shared])
        .job("patient", EVERY_SECOND, "true", &[shared, "overlap = \"wait\"", "wait_for = \"60s\""]);
    fleet.start(&["a"], |host| schedule.on(host));
    wait_for_beat(&fleet, "holder");
    let waiting = database.wait_for_run("patient", "waits", |run| run.state == "waiting");
    fleet["a"].kill9();
    let said = cronlatch(&fleet.config_path("a"), &["cancel", &waiting.id]);
    assert!(said.code == 0 && said.stdout.contains("waited, and is cancelled"), "{said:?}");
    let over = database.wait_for_run("patient", "is over", |run| run.id == waiting.id);
    assert_eq!(over.state, "cancelled");
    assert!(database.rows("requests").is_empty());
}

#[test]
fn the_beginning_of_an_id_is_enough_if_no_other_run_has_it() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let schedule = Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &first_run_holds(&fleet, "job"), &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let run = under_way(&fleet, &database, "job");
    database.wait_for_run("job", "is held off", |run| run.state == "skipped");
    let config = fleet.config_path("a");
    let cancel = |id: &str| cronlatch(&config, &["cancel", id, "--wait"]);
    let several = cancel("0");
    assert!(several.code == 64 && several.stderr.contains("several runs"), "{several:?}");
    for unknown in ["ffffffff", "job", "not-an-id"] {
        let said = cancel(unknown);
        assert!(said.code == 64 && said.stderr.contains("no run"), "{said:?}");
    }
    let whole: &str = &run.id;
    let said = cancel(&whole[..whole.len() - 4]);
    assert!(said.code == 0 && said.stdout.contains("is over: cancelled"), "{said:?}");
    let shown = cronlatch(&config, &["runs", "show", &whole[..whole.len() - 4], "--json"]).objects();
    assert_eq!(shown[0]["state"], "cancelled");
}

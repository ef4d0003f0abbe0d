//! No overlap when a daemon is killed or stopped: whatever tree its job has grown is gone before another
//! host can have the lock.

use rustix::process::Signal;

use crate::jobs::wait_for_beat;
use crate::support::fleet::Fleet;
use crate::support::ledger::{Entry, Mark};
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually, stays};

/// The first run endures, and so do a child in a session of its own, one that was forked twice, and one
/// that is immune to hang-ups. All of them note SIGTERM and go on; only KILL ends them: they write nothing to
/// the daemon, whose end would break the pipe.
fn stubborn_family(fleet: &Fleet) -> String {
    format!(
        "{prelude}; mark start; if mkdir first 2>/dev/null; then exec >/dev/null 2>&1; offspring; (offspring &); \
         nohup setsid /bin/sh -c '. ./ledger.sh; endure' & endure; fi; mark end",
        prelude = fleet.ledger().prelude()
    )
}

/// The processes of a run that have written to the ledger.
fn family_of(fleet: &Fleet, run: &str) -> Vec<i32> {
    let mut pids: Vec<i32> = fleet.ledger().read().of_run(run).map(|entry| entry.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

fn wait_for_family(fleet: &Fleet) -> Entry {
    let first = wait_for_beat(fleet, "job");
    eventually("the family is up", PATIENCE, || family_of(fleet, &first.run).len() >= 4);
    first
}

fn wait_for_successor(database: &Database, held: &Entry) -> chrono::DateTime<chrono::Utc> {
    let next = database.wait_for_run("job", "after the takeover", |run| run.token > Some(held.token));
    next.claimed_at.unwrap()
}

#[test]
fn a_killed_daemon_leaves_no_process_of_its_job_when_its_lock_can_be_taken() {
    let fleet = Fleet::new();
    killed(fleet, &Database::postgres());
}

#[test]
fn a_killed_daemon_on_sqlite_leaves_no_process_of_its_job_when_its_lock_can_be_taken() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    killed(fleet, &database);
}

fn killed(mut fleet: Fleet, database: &Database) {
    let schedule = Schedule::new(&fleet, database).job("job", EVERY_SECOND, &stubborn_family(&fleet), &[]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let held = wait_for_family(&fleet);
    fleet[&*held.host].kill9();
    wait_for_successor(database, &held);
    let entries = fleet.ledger().read();
    let told = entries.of_run(&held.run).filter(|entry| entry.mark == Mark::Term).count();
    assert!(told >= 4, "each of the family gets TERM, {told} did");
    let survivor = if held.host == "a" { "b" } else { "a" };
    fleet[survivor].signal(Signal::TERM);
    assert!(fleet[survivor].wait_exit(PATIENCE).success());
    fleet.ledger().read().assert_locks_held();
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn a_stopped_daemon_leaves_no_process_of_its_job_and_writes_nothing_over_its_successor() {
    let fleet = Fleet::new();
    stopped(fleet, &Database::postgres());
}

#[test]
fn a_stopped_daemon_on_sqlite_leaves_no_process_of_its_job_and_writes_nothing_over_its_successor() {
    let fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    stopped(fleet, &database);
}

fn stopped(mut fleet: Fleet, database: &Database) {
    let schedule = Schedule::new(&fleet, database).job("job", EVERY_SECOND, &stubborn_family(&fleet), &[]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let held = wait_for_family(&fleet);
    let row = database.lock("job:job").unwrap();
    fleet[&*held.host].signal(Signal::STOP);
    let taken_at = wait_for_successor(database, &held);
    assert!(taken_at >= row.expires_at, "taken at {taken_at}, but it was held until {}", row.expires_at);
    // Three TTLs in all.
    stays("the other host goes on", 2 * schedule.ttl(), || database.lock("job:job").unwrap().token > held.token);
    let before = database.runs_of("job").len();
    fleet[&*held.host].signal(Signal::CONT);
    let mark = fleet[&*held.host].log().mark();
    // It goes on serving: in its turn it runs triggers again, under later tokens.
    fleet[&*held.host].wait_for_event_after(mark, "run.started", |event| event["token"].as_i64() > Some(held.token));
    database.wait_for_run("job", "after it came back", |run| {
        run.token > Some(held.token) && run.state == "succeeded" && run.host.as_deref() == Some(&held.host)
    });
    assert!(database.runs_of("job").len() > before);
    let lost = database.runs_of("job").into_iter().find(|run| run.id == held.run).unwrap();
    assert_eq!(lost.state, "lost", "{lost:#?}");
    let odd: Vec<_> = database
        .runs_of("job")
        .into_iter()
        .filter(|run| {
            run.is_final() && run.id != held.run && !["succeeded", "skipped", "missed"].contains(&&*run.state)
        })
        .collect();
    assert!(odd.is_empty(), "{odd:#?}");
    fleet.drain(PATIENCE);
    fleet.ledger().read().assert_locks_held();
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn a_stopped_shim_is_killed_with_its_tree_before_its_lock_can_be_taken() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule =
        Schedule::new(&fleet, &database).job("job", EVERY_SECOND, &stubborn_family(&fleet), &["timeout = \"2s\""]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    let held = wait_for_family(&fleet);
    let shim = parent_of(held.pid);
    rustix::process::kill_process(rustix::process::Pid::from_raw(shim).unwrap(), Signal::STOP).unwrap();
    // Its time-out comes, and nothing follows: the daemon doesn't renew for ever what it can't end.
    let said = fleet[&*held.host].wait_for_event("run.abandoned", |event| event["run"] == held.run.as_str());
    assert_eq!(said["job"], "job");
    wait_for_successor(&database, &held);
    fleet.drain(PATIENCE);
    fleet.ledger().read().assert_locks_held();
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn a_killed_fork_server_costs_no_running_job_and_no_trigger() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let line = crate::jobs::first_run_holds(&fleet, "long");
    let short = crate::jobs::short(&fleet);
    let schedule =
        Schedule::new(&fleet, &database).job("long", EVERY_SECOND, &line, &[]).job("short", EVERY_SECOND, &short, &[]);
    fleet.start(&["a"], |host| schedule.on(host));
    let long = wait_for_beat(&fleet, "long");
    let server = parent_of(parent_of(long.pid));
    rustix::process::kill_process(rustix::process::Pid::from_raw(server).unwrap(), Signal::KILL).unwrap();
    fleet["a"].wait_for_event("fork_server.died", |_| true);
    let died_at = chrono::Utc::now();
    database.wait_for_run("short", "runs again", |run| run.scheduled_at > died_at && run.state == "succeeded");
    crate::jobs::let_go(&fleet);
    let ended = database.wait_for_run("long", "ends", |run| run.id == long.run && run.is_final());
    assert_eq!(ended.state, "succeeded", "{ended:#?}");
    fleet.drain(PATIENCE);
    fleet.ledger().read().assert_each_trigger_ran_once();
    let odd: Vec<_> = database.runs_of("short").into_iter().filter(|run| run.state != "succeeded").collect();
    assert!(odd.is_empty(), "{odd:#?}");
}

fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

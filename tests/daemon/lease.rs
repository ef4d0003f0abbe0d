//! A job that takes longer than its lock lives without renewals.

use crate::jobs::{run_of, wait_for_beat};
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::PATIENCE;

#[test]
fn a_job_of_five_ttls_runs_once_and_alone_under_a_lock_that_is_renewed() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).timing(3_000, 500, 300);
    let seconds = 5 * schedule.ttl().as_secs();
    let line = format!(
        "{}; mark start; if mkdir first 2>/dev/null; then beats {}; fi; mark end",
        fleet.ledger().prelude(),
        seconds * 1_000 / 20,
    );
    let schedule = schedule.job("job", EVERY_SECOND, &line, &[]);
    fleet.start(&["a", "b"], |host| schedule.on(host));

    let long = wait_for_beat(&fleet, "job");
    let ended = database.wait_for_run("job", "ends", |run| run.id == long.run && run.is_final());
    assert_eq!((ended.state.as_str(), ended.attempt, ended.exit_code), ("succeeded", 1, Some(0)));
    let lived = (ended.finished_at.unwrap() - ended.claimed_at.unwrap()).to_std().unwrap();
    assert!(lived >= 5 * schedule.ttl(), "it took {lived:?}");
    database.wait_for_run("job", "after the long one", |run| run.scheduled_at > ended.finished_at.unwrap());
    fleet.drain(PATIENCE);

    let held_off = database.runs_of("job").into_iter().filter(|run| run.blocked_by.as_ref() == Some(&long.run));
    assert!(held_off.count() as u64 >= seconds - 2, "one trigger a second was held off");
    fleet.ledger().read().assert_locks_held();
    fleet.ledger().read().assert_each_trigger_ran_once();
    assert_eq!(run_of(&database, &long).token, Some(long.token));
}

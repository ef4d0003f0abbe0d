//! `after`: jobs that run when others have succeeded.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::jobs::short;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually};

/// Fails for every third second.
const FAILS_SOMETIMES: &str = "s=${CRONLATCH_SCHEDULED_AT%Z}; s=${s##*:}; s=${s#0}; test $((s % 3)) -ne 0";

fn instants(database: &Database, job: &str, state: &str) -> BTreeSet<DateTime<Utc>> {
    let runs = database.runs_of(job).into_iter().filter(|run| run.state == state);
    runs.map(|run| run.scheduled_at).collect()
}

#[test]
fn a_follower_runs_once_after_each_success_and_never_after_a_failure() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let extract = format!("{}; mark start; {FAILS_SOMETIMES}", fleet.ledger().prelude());
    let schedule = Schedule::new(&fleet, &database).job("extract", EVERY_SECOND, &extract, &[]).bare(
        "load",
        &short(&fleet),
        &["after = [\"extract\"]"],
    );
    fleet.start(&["a", "b"], |host| schedule.on(host));
    fleet.wait_until_up();
    let enough =
        || instants(&database, "load", "succeeded").len() >= 6 && instants(&database, "extract", "failed").len() >= 2;
    eventually("there were successes and failures", PATIENCE, enough);
    // No new triggers; what follows is still taken while the last runs end.
    fleet.drain(PATIENCE);
    fleet.launch("a");
    fleet.wait_until_up();
    let all_followed =
        || instants(&database, "load", "succeeded").is_superset(&instants(&database, "extract", "succeeded"));
    eventually("each success was followed", PATIENCE, all_followed);
    fleet.drain(PATIENCE);
    let failed = instants(&database, "extract", "failed");
    let followers = database.runs_of("load");
    assert!(
        followers.iter().all(|run| run.trigger == "after" && !failed.contains(&run.scheduled_at)),
        "{followers:#?}"
    );
    let distinct: BTreeSet<_> = followers.iter().map(|run| run.scheduled_at).collect();
    assert_eq!(distinct.len(), followers.len(), "one follower a trigger");
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn a_job_after_two_runs_when_both_have_succeeded_for_the_same_instant() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    let often_fails = format!("{}; mark start; {FAILS_SOMETIMES}", fleet.ledger().prelude());
    let schedule = Schedule::new(&fleet, &database)
        .job("one", EVERY_SECOND, &short(&fleet), &[])
        .job("two", EVERY_SECOND, &often_fails, &[])
        .bare("both", &short(&fleet), &["after = [\"one\", \"two\"]"]);
    fleet.start(&["a"], |host| schedule.on(host));
    eventually("both have succeeded often", PATIENCE, || instants(&database, "both", "succeeded").len() >= 5);
    fleet.drain(PATIENCE);
    let one = instants(&database, "one", "succeeded");
    let two = instants(&database, "two", "succeeded");
    let runs = database.runs_of("both");
    assert!(runs.iter().all(|run| one.contains(&run.scheduled_at) && two.contains(&run.scheduled_at)), "{runs:#?}");
    let both: BTreeSet<_> = one.intersection(&two).copied().collect();
    let made: BTreeSet<_> = runs.iter().map(|run| run.scheduled_at).collect();
    assert_eq!(made, both);
}

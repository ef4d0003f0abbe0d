//! Hosts that have different versions of a job.

use std::collections::BTreeSet;

use crate::jobs::short;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually};

#[test]
fn each_trigger_runs_once_and_the_log_and_status_name_the_hosts_that_disagree() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let empty = Schedule::new(&fleet, &database).job("same", EVERY_SECOND, &short(&fleet), &[]);
    let new = empty.clone().job("edited", EVERY_SECOND, &short(&fleet), &["lock = \"other\"", "env = { V = \"2\" }"]);
    let old = empty.clone().job("edited", EVERY_SECOND, &short(&fleet), &[]);
    fleet.start(&["a", "b", "c"], |host| match host {
        "a" => new.on(host),
        "b" => old.on(host),
        _ => empty.on(host),
    });
    fleet.wait_until_up();
    let said = fleet["a"].wait_for_event("schedule.disagreement", |event| {
        // It may be said before all three are known.
        let names_all = |hosts: &str| ["a (", "b (", "not on c"].iter().all(|part| hosts.contains(part));
        event["job"] == "edited" && event["hosts"].as_str().is_some_and(names_all)
    });
    assert_eq!(said["level"], "WARN", "{said}");
    let by_both = || {
        let runs = database.runs_of("edited");
        let hosts: BTreeSet<_> = runs.iter().filter(|run| run.state == "succeeded").map(|run| &run.host).collect();
        hosts.len() == 2 && runs.len() >= 8
    };
    eventually("both have run it", PATIENCE, by_both);

    let status = std::process::Command::new(crate::support::daemon::BINARY)
        .args(["status", "--json", "--config"])
        .arg(fleet.config_path("a"))
        .output()
        .unwrap();
    let objects: Vec<serde_json::Value> = serde_json::from_slice(&status.stdout).unwrap();
    let found: Vec<_> = objects.iter().filter(|object| object["kind"] == "disagreement").collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&found[0]["job"], &found[0]["missing_on"][0]), (&"edited".into(), &"c".into()), "{found:#?}");
    assert_eq!(objects.iter().filter(|object| object["kind"] == "host").count(), 3);

    fleet.drain(PATIENCE);
    let entries = fleet.ledger().read();
    entries.assert_each_trigger_ran_once();
    let runs = database.runs_of("edited");
    let instants: BTreeSet<_> = runs.iter().map(|run| run.scheduled_at).collect();
    assert_eq!(instants.len(), runs.len(), "one run a trigger: {runs:#?}");
}

//! Where jobs run: `hosts`, `labels`, `run_on`.

use std::collections::BTreeSet;

use chrono::Utc;
use rustix::process::Signal;

use crate::jobs::short;
use crate::support::fleet::Fleet;
use crate::support::schedule::{EVERY_SECOND, Schedule};
use crate::support::tables::Database;
use crate::support::wait::{PATIENCE, eventually};

#[test]
fn a_job_runs_only_on_hosts_that_it_names_and_that_have_its_labels() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database)
        .job("named", EVERY_SECOND, &short(&fleet), &["hosts = [\"web-*\"]"])
        .job("labelled", EVERY_SECOND, &short(&fleet), &["labels = [\"gpu\"]"])
        .job("anywhere", EVERY_SECOND, &short(&fleet), &[]);
    let labels = |host: &str| if host == "web-2" { vec!["eu", "gpu"] } else { vec!["eu"] };
    fleet.start(&["web-1", "web-2", "db-1"], |host| schedule.on_labelled(host, &labels(host)));
    fleet.wait_until_up();
    let hosts = |job: &str| -> BTreeSet<String> {
        database.runs_of(job).into_iter().filter(|run| run.state == "succeeded").filter_map(|run| run.host).collect()
    };
    eventually("all hosts have had a share", PATIENCE, || hosts("anywhere").len() == 3 && hosts("named").len() == 2);
    eventually("the labelled host has had some", PATIENCE, || {
        database.runs_of("labelled").iter().filter(|run| run.state == "succeeded").count() >= 5
    });
    assert_eq!(hosts("named"), BTreeSet::from(["web-1", "web-2"].map(str::to_owned)));
    assert_eq!(hosts("labelled"), BTreeSet::from(["web-2".to_owned()]));
    fleet.drain(PATIENCE);
    fleet.ledger().read().assert_each_trigger_ran_once();
}

#[test]
fn a_job_of_every_host_runs_once_on_each_under_a_lock_of_its_own() {
    let mut fleet = Fleet::new();
    let database = Database::sqlite_in(fleet.folder());
    // Longer than the time between two starts of one trigger: the hosts' runs would exclude one another.
    let line = format!("{}; mark start; sleep 0.5; mark end", fleet.ledger().prelude());
    let schedule = Schedule::new(&fleet, &database).job("each", EVERY_SECOND, &line, &["run_on = \"every\""]);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    fleet.wait_until_up();
    let by_both = || {
        let runs = database.runs_of("each");
        let on = |host: &str| -> BTreeSet<_> {
            let ended = runs.iter().filter(|run| run.state == "succeeded" && run.target == host);
            ended.map(|run| run.scheduled_at).collect()
        };
        on("a").intersection(&on("b")).count() >= 4
    };
    eventually("both hosts have run the same triggers", PATIENCE, by_both);
    fleet.drain(PATIENCE);
    for run in database.runs_of("each") {
        assert_eq!(run.host.as_deref().unwrap_or(&run.target), run.target, "{run:?}");
        assert_eq!(run.row["resource"], format!("job:each@{}", run.target));
    }
    fleet.ledger().read().assert_locks_held();
}

#[test]
fn a_host_that_was_away_catches_up_on_its_own_triggers_of_a_job_of_every_host() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let keys = ["run_on = \"every\"", "catch_up = \"none\"", "overlap = \"wait\""];
    let schedule = Schedule::new(&fleet, &database).job("each", EVERY_SECOND, &short(&fleet), &keys);
    fleet.start(&["a", "b"], |host| schedule.on(host));
    fleet.wait_until_up();
    let ended_on = |host: &str| database.runs_of("each").into_iter().rfind(|run| run.target == host && run.is_final());
    eventually("both have run", PATIENCE, || ended_on("a").is_some() && ended_on("b").is_some());
    fleet["b"].signal(Signal::TERM);
    assert!(fleet["b"].wait_exit(PATIENCE).success());
    let last_of_b = ended_on("b").unwrap().scheduled_at;
    let later = Utc::now() + chrono::TimeDelta::seconds(3);
    database.wait_for_run("each", "on a alone", |run| run.target == "a" && run.scheduled_at > later && run.is_final());
    fleet.launch("b");
    let of_b = || database.missed_ranges("each").into_iter().any(|range| range.target == "b");
    eventually("b accounts for what it missed", PATIENCE, of_b);
    fleet.drain(PATIENCE);
    let runs_of_b: Vec<_> = database.runs_of("each").into_iter().filter(|run| run.target == "b").collect();
    let back = runs_of_b.iter().map(|run| run.scheduled_at).find(|at| *at > last_of_b).unwrap();
    for range in database.missed_ranges("each").into_iter().filter(|range| range.target == "b") {
        assert!(last_of_b < range.from && range.to < back, "{range:?} is not between {last_of_b} and {back}");
        assert_eq!(range.reason, "no_catch_up");
    }
}

#[test]
fn a_job_that_no_live_host_may_run_is_named_and_runs_when_one_comes() {
    let mut fleet = Fleet::new();
    let database = Database::postgres();
    let schedule = Schedule::new(&fleet, &database).job("bound", EVERY_SECOND, &short(&fleet), &["labels = [\"gpu\"]"]);
    fleet.start(&["a"], |host| schedule.on(host));
    let said = fleet["a"].wait_for_event("job.stranded", |_| true);
    assert_eq!((&said["job"], &said["asks"]), (&"bound".into(), &"labels gpu".into()), "{said}");
    assert!(database.runs_of("bound").is_empty());

    fleet.configure("b", &schedule.on_labelled("b", &["gpu"]));
    fleet.launch("b");
    let run = database.wait_for_run("bound", "on the host that came", |run| run.state == "succeeded");
    assert_eq!(run.host.as_deref(), Some("b"));
    fleet["a"].wait_for_event("job.placed", |event| event["job"] == "bound");
}

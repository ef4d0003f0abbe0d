//! The history: what it lists, in which order, page by page.

use chrono::TimeDelta;
use cronlatch::store::RunFilter;
use cronlatch::trigger::{RunId, RunState};

use super::database::TestDb;
use super::fixtures::*;

on_both_databases!(
    the_history_lists_the_newest_first,
    a_filter_narrows_by_job_state_and_instant,
    pages_follow_one_another_without_a_gap_or_a_repeat,
    a_page_goes_on_where_it_ended_though_new_runs_came,
);

/// Nine runs of three jobs, a minute apart; every third failed. Oldest first.
async fn nine_runs(host: &Host) -> Vec<RunId> {
    let mut runs = Vec::new();
    for number in 0..9 {
        let at = noon() + TimeDelta::minutes(number);
        let name = ["backup", "restore", "prune"][usize::try_from(number % 3).unwrap()];
        let run = host.run(&host.claim(name, at)).await;
        let state = if number < 3 { RunState::Failed } else { RunState::Succeeded };
        host.store.finish(&run, &ending(state), &[]).await.unwrap();
        runs.push(run.run);
    }
    runs
}

async fn listed(host: &Host, filter: RunFilter) -> Vec<RunId> {
    host.store.history(&filter).await.unwrap().into_iter().map(|row| row.run).collect()
}

/// These of the runs, newest first.
fn pick(runs: &[RunId], places: &[usize]) -> Vec<RunId> {
    places.iter().map(|place| runs[*place]).collect()
}

async fn host_at_one(db: &TestDb) -> Host {
    db.freeze_clock(noon() + TimeDelta::hours(1)).await;
    Host::new(db, "web-1")
}

async fn the_history_lists_the_newest_first(db: &TestDb) {
    let host = host_at_one(db).await;
    let runs = nine_runs(&host).await;
    assert_eq!(listed(&host, everything()).await, pick(&runs, &[8, 7, 6, 5, 4, 3, 2, 1, 0]));
}

async fn a_filter_narrows_by_job_state_and_instant(db: &TestDb) {
    let host = host_at_one(db).await;
    let runs = nine_runs(&host).await;
    let of_backup = RunFilter { job: Some(job("backup")), ..everything() };
    assert_eq!(listed(&host, of_backup.clone()).await, pick(&runs, &[6, 3, 0]));
    let failed = RunFilter { state: Some(RunState::Failed), ..everything() };
    assert_eq!(listed(&host, failed).await, pick(&runs, &[2, 1, 0]));
    let since = RunFilter { since: Some(noon() + TimeDelta::minutes(7)), ..everything() };
    assert_eq!(listed(&host, since).await, pick(&runs, &[8, 7]));
    let all_at_once =
        RunFilter { state: Some(RunState::Succeeded), since: Some(noon() + TimeDelta::minutes(4)), ..of_backup };
    assert_eq!(listed(&host, all_at_once).await, pick(&runs, &[6]));
    let of_nobody = RunFilter { job: Some(job("Backup")), ..everything() };
    assert_eq!(listed(&host, of_nobody).await, []);
}

async fn pages_follow_one_another_without_a_gap_or_a_repeat(db: &TestDb) {
    let host = host_at_one(db).await;
    let runs = nine_runs(&host).await;
    let mut pages = Vec::new();
    let mut before = None;
    loop {
        let page = listed(&host, RunFilter { before, limit: 4, ..everything() }).await;
        let Some(last) = page.last() else { break };
        before = Some(*last);
        pages.push(page);
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 1]);
    assert_eq!(pages.concat(), pick(&runs, &[8, 7, 6, 5, 4, 3, 2, 1, 0]));
}

async fn a_page_goes_on_where_it_ended_though_new_runs_came(db: &TestDb) {
    let host = host_at_one(db).await;
    let runs = nine_runs(&host).await;
    let first = listed(&host, RunFilter { limit: 4, ..everything() }).await;
    host.run(&host.claim("backup", noon() + TimeDelta::minutes(30))).await;
    let second = listed(&host, RunFilter { before: first.last().copied(), limit: 4, ..everything() }).await;
    assert_eq!(second, pick(&runs, &[4, 3, 2, 1]));
}

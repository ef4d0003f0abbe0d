//! Shims, fork servers and their callers that die or stand still.

use std::time::Duration;

use cronlatch::clock::BootInstant;
use cronlatch::shim::Exit;
use rustix::process::{Pid, Signal, kill_process};

use crate::fixtures::{Stage, parent_of, to_the_end};
use crate::support::wait::{PATIENCE, eventually_async};

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

const FAMILY: &str = "trap '' TERM; setsid sleep 600 & (sleep 600 &); touch up; while :; do sleep 1; done";

async fn start_family(stage: &Stage) -> cronlatch::shim::Child {
    let child = stage.start(FAMILY).await;
    eventually_async("it is up", PATIENCE, async || stage.file("up").exists() && stage.population() >= 3).await;
    child
}

#[tokio::test]
async fn a_shim_that_is_killed_leaves_no_process_and_says_no_end() {
    let stage = Stage::new();
    let mut child = start_family(&stage).await;
    send(parent_of(child.pid()), Signal::KILL);
    assert!(to_the_end(&mut child).await.ended.is_none());
    eventually_async("the fork server has killed the tree", PATIENCE, async || stage.population() == 0).await;
    let (ended, text) = stage.run(&stage.request("echo next")).await;
    assert_eq!((ended.exit, text.as_str()), (Exit::Code(0), "next\n"));
}

#[tokio::test]
async fn a_shim_that_is_killed_takes_no_other_run_with_it() {
    let stage = Stage::new();
    let mut other = stage.start("until test -e go; do sleep 0.02; done").await;
    let mut child = start_family(&stage).await;
    send(parent_of(child.pid()), Signal::KILL);
    assert!(to_the_end(&mut child).await.ended.is_none());
    eventually_async("the tree is gone", PATIENCE, async || stage.population() <= 2).await;
    std::fs::write(stage.file("go"), "").unwrap();
    assert_eq!(to_the_end(&mut other).await.ended.unwrap().exit, Exit::Code(0));
}

#[tokio::test]
async fn a_stopped_shim_can_be_killed_and_its_tree_with_it() {
    let stage = Stage::new();
    let mut child = start_family(&stage).await;
    send(parent_of(child.pid()), Signal::STOP);
    child.kill_shim();
    assert!(to_the_end(&mut child).await.ended.is_none());
    eventually_async("the fork server has killed the tree", PATIENCE, async || stage.population() == 0).await;
}

#[tokio::test]
async fn a_fork_server_that_dies_is_started_again_and_running_jobs_do_not_notice() {
    let stage = Stage::new();
    let mut child = stage.start("until test -e go; do sleep 0.02; done; echo fine").await;
    for _ in 0..2 {
        // Orphans of the killed server are init's; new starts go to the next one.
        let probe = stage.start("until test -e go; do sleep 0.02; done").await;
        send(parent_of(parent_of(probe.pid())), Signal::KILL);
        let (ended, text) = stage.run(&stage.request("echo again")).await;
        assert_eq!((ended.exit, text.as_str()), (Exit::Code(0), "again\n"));
        drop(probe);
    }
    std::fs::write(stage.file("go"), "").unwrap();
    assert_eq!(to_the_end(&mut child).await.ended.unwrap().exit, Exit::Code(0));
}

#[tokio::test]
async fn a_job_whose_channel_closes_gets_term_then_kill() {
    let stage = Stage::new();
    let mut request = stage.request("trap 'touch told' TERM; touch up; while :; do sleep 0.05; done");
    request.kill_grace = Duration::from_millis(500);
    let mut child = stage.spawn(&request).await.unwrap();
    // A shell that says what it was told would be ended by a broken pipe.
    let _output = child.take_output();
    eventually_async("it is up", PATIENCE, async || stage.file("up").exists()).await;
    child.close_channel();
    eventually_async("it is gone", PATIENCE, async || stage.population() == 0).await;
    assert!(stage.file("told").exists());
}

#[tokio::test]
async fn a_start_that_is_given_up_while_the_fork_server_stands_still_never_happens() {
    let stage = Stage::new();
    let mut probe = stage.start("exec sleep 600").await;
    let server = parent_of(parent_of(probe.pid()));
    send(server, Signal::STOP);
    let request = stage.request("touch happened");
    let given_up = stage.spawner.spawn(&request, async { tokio::time::sleep(Duration::from_millis(100)).await }).await;
    assert!(given_up.is_err(), "{given_up:?}");
    send(server, Signal::CONT);
    // A later start is served after it.
    stage.run(&stage.request("true")).await;
    assert!(!stage.file("happened").exists());
    probe.kill();
    to_the_end(&mut probe).await;
}

#[tokio::test]
async fn a_deadline_that_has_passed_starts_nothing() {
    let stage = Stage::new();
    let mut request = stage.request("touch happened");
    request.deadline = BootInstant::now();
    let error = stage.spawn(&request).await.unwrap_err();
    assert!(matches!(error, cronlatch::shim::SpawnError::TooLate), "{error}");
    assert!(!stage.file("happened").exists());
}

//! A run has ended when no process of its tree is left, and not before.

use std::time::{Duration, Instant};

use cronlatch::clock::BootInstant;
use cronlatch::shim::{Exit, OwnStop};

use crate::fixtures::{Stage, to_the_end};
use crate::support::wait::{PATIENCE, eventually_async};

/// A tree that only KILL ends: each process ignores TERM; one has forked twice, one has a session of its
/// own, one is immune to hang-ups, one is stopped.
const STUBBORN: &str = "trap '' TERM; \
    (sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; \
    setsid sh -c 'trap \"\" TERM; setsid sh -c \"trap : TERM; while :; do sleep 1; done\" & while :; do sleep 1; done' & \
    nohup sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 & \
    sh -c 'kill -STOP $$; sleep 600' & \
    touch up; while :; do sleep 1; done";

#[tokio::test]
async fn a_job_ends_with_its_own_process_and_nothing_of_it_is_left() {
    let stage = Stage::new();
    let began = Instant::now();
    let mut child = stage.start("sleep 600 & setsid sleep 600 & (sleep 600 &); exit 7").await;
    let heard = to_the_end(&mut child).await;
    assert_eq!(heard.ended.unwrap().exit, Exit::Code(7));
    assert_eq!(heard.ended.unwrap().by_itself, None);
    let left = heard.left_behind.expect("it is said");
    // Whatever they have become by then.
    let is_known = |name: &String| ["sleep", "sh", "setsid"].contains(&name.as_str());
    assert!((1..=3).contains(&left.count) && left.names.iter().all(is_known), "{left:?}");
    assert_eq!(stage.population(), 0);
    assert!(began.elapsed() < PATIENCE / 3, "it took {:?}", began.elapsed());
}

#[tokio::test]
async fn a_job_that_leaves_nothing_is_not_said_to() {
    let stage = Stage::new();
    let mut child = stage.start("echo one | cat; true").await;
    let heard = to_the_end(&mut child).await;
    assert_eq!(heard.left_behind, None);
    assert_eq!(heard.ended.unwrap().exit, Exit::Code(0));
}

#[tokio::test]
async fn a_tree_that_only_kill_ends_is_gone_when_its_end_is_said() {
    let stage = Stage::new();
    let mut child = stage.start(STUBBORN).await;
    eventually_async("the tree is up", PATIENCE, async || stage.file("up").exists() && stage.population() >= 6).await;
    child.terminate(BootInstant::now() + Duration::from_millis(200));
    let heard = to_the_end(&mut child).await;
    assert_eq!(stage.population(), 0);
    assert_eq!(heard.ended.unwrap().exit, Exit::Signal(9));
}

#[tokio::test]
async fn a_tree_is_dead_by_its_deadline_without_a_word_of_the_daemon() {
    let stage = Stage::new();
    let mut request = stage.request(STUBBORN);
    request.deadline = BootInstant::now() + Duration::from_secs(2);
    let mut child = stage.spawn(&request).await.unwrap();
    let heard = to_the_end(&mut child).await;
    assert_eq!(stage.population(), 0);
    assert_eq!(heard.ended.unwrap().by_itself, Some(OwnStop::Deadline));
    let late = BootInstant::now().since(request.deadline);
    assert!(late < Duration::from_secs(2), "it took {late:?} longer");
}

#[tokio::test]
async fn term_comes_its_grace_before_the_deadline() {
    let stage = Stage::new();
    let mut request = stage.request("trap 'touch told; exit 3' TERM; touch up; while :; do sleep 0.05; done");
    request.kill_grace = PATIENCE;
    request.deadline = BootInstant::now() + PATIENCE + Duration::from_millis(1_500);
    let mut child = stage.spawn(&request).await.unwrap();
    let heard = to_the_end(&mut child).await;
    assert!(stage.file("told").exists());
    assert_eq!(heard.ended.unwrap().exit, Exit::Code(3));
    assert!(!request.deadline.has_passed());
}

#[tokio::test]
async fn a_deadline_that_is_moved_lets_the_job_go_on() {
    let stage = Stage::new();
    let mut request = stage.request("touch up; until test -e go; do sleep 0.02; done");
    request.deadline = BootInstant::now() + Duration::from_millis(1_500);
    let mut child = stage.spawn(&request).await.unwrap();
    child.move_deadline(BootInstant::now() + 2 * PATIENCE);
    tokio::time::sleep(request.deadline.remaining()).await;
    std::fs::write(stage.file("go"), "").unwrap();
    let heard = to_the_end(&mut child).await;
    assert_eq!((heard.ended.unwrap().exit, heard.ended.unwrap().by_itself), (Exit::Code(0), None));
}

#[tokio::test]
async fn a_stopped_job_is_told_to_end_all_the_same() {
    let stage = Stage::new();
    let mut child = stage.start("trap 'exit 5' TERM; touch up; kill -STOP $$; while :; do sleep 0.05; done").await;
    eventually_async("it is up", PATIENCE, async || stage.file("up").exists()).await;
    child.terminate(BootInstant::now() + PATIENCE);
    assert_eq!(to_the_end(&mut child).await.ended.unwrap().exit, Exit::Code(5));
}

#[tokio::test]
async fn a_job_that_forks_as_fast_as_it_can_is_killed_whole() {
    let stage = Stage::new();
    let line = "touch up; while :; do (setsid sh -c 'sleep 600 & sleep 600 &' &); sleep 600 & done";
    let mut request = stage.request(line);
    request.kill_grace = Duration::ZERO;
    let mut child = stage.spawn(&request).await.unwrap();
    eventually_async("it has many", PATIENCE, async || stage.population() > 50).await;
    child.kill();
    to_the_end(&mut child).await.ended.expect("its shim lives");
    assert_eq!(stage.population(), 0);
}

#[tokio::test]
async fn what_a_job_used_is_measured_over_its_tree() {
    let stage = Stage::new();
    let line = "sh -c 'i=0; while test $i -lt 200000; do i=$((i+1)); done' | cat; x=$(head -c 20000000 /dev/zero | tr '\\0' x)";
    let (ended, _) = stage.run(&stage.request(line)).await;
    assert!(ended.cpu > Duration::from_millis(20), "{ended:?}");
    assert!(ended.memory_peak_kib > 15_000, "{ended:?}");
}

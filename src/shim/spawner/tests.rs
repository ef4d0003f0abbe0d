use std::time::Duration;

use super::*;
use crate::shim::Exit;

const LONG: Duration = Duration::from_secs(60);

fn request(shell: &str, lives: Duration) -> SpawnRequest {
    SpawnRequest {
        argv: ["/bin/sh", "-c", shell].map(str::to_owned).to_vec(),
        env: Vec::new(),
        directory: "/".into(),
        deadline: BootInstant::now() + lives,
    }
}

/// A spawner whose thread is held up: the test serves its inbox.
fn held_up() -> (Spawner, mpsc::Receiver<Request>) {
    let (requests, inbox) = mpsc::channel();
    let threads = [thread_end().1, thread_end().1];
    (Spawner { requests, threads }, inbox)
}

#[tokio::test]
async fn a_group_is_killed_at_its_deadline_by_itself() {
    let spawner = Spawner::start().expect("there are threads");
    let request = request("sleep 600", Duration::from_millis(300));
    let child = spawner.spawn(request, std::future::pending()).await.expect("it starts");
    tokio::time::timeout(LONG, child.exited()).await.expect("it is killed");
    assert_eq!(child.reap(), Exit::Signal(9));
}

#[tokio::test]
async fn a_deadline_that_has_passed_starts_nothing() {
    let spawner = Spawner::start().expect("there are threads");
    let late = spawner.spawn(request("true", Duration::ZERO), std::future::pending()).await;
    assert!(matches!(late, Err(SpawnError::TooLate)), "{late:?}");
}

#[tokio::test]
async fn a_deadline_that_passes_before_exec_executes_nothing() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let trace = folder.path().join("trace");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("touch {}", trace.display())]);
    right_before_exec(&mut command, BootInstant::now());
    let error = command.status().expect_err("it is not executed");
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::TIMEDOUT.raw_os_error()));
    assert!(!trace.exists());
}

#[tokio::test]
async fn a_start_that_is_given_up_in_the_queue_never_begins() {
    let (spawner, inbox) = held_up();
    let given_up = spawner.spawn(request("true", LONG), std::future::ready(())).await;
    assert!(matches!(given_up, Err(SpawnError::Exhausted(_))), "{given_up:?}");
    let waiting = inbox.try_recv().expect("it is in the queue");
    assert!(!waiting.progress.begin());
}

#[tokio::test]
async fn a_start_that_hangs_is_given_up_as_hung_and_killed_when_it_comes_late() {
    let (spawner, inbox) = held_up();
    let (groups, enforced) = mpsc::channel();
    let (hangs, waits) = tokio::sync::oneshot::channel::<()>();
    let late = std::thread::spawn(move || {
        let Request { spawn, answer, progress } = inbox.recv().expect("it is asked for");
        assert!(progress.begin());
        hangs.send(()).expect("the test waits");
        while !answer.is_closed() {
            std::thread::yield_now();
        }
        // The start comes late: as the thread does it, from where it hung.
        let (requests, inbox) = mpsc::channel();
        let progress = Arc::<Progress>::default();
        requests.send(Request { spawn, answer, progress }).expect("the inbox is there");
        drop(requests);
        serve(&inbox, &groups);
    });
    let given_up = spawner.spawn(request("sleep 600", LONG), async { waits.await.expect("it begins") }).await;
    assert!(matches!(given_up, Err(SpawnError::Hung { .. })), "{given_up:?}");
    late.join().expect("the thread doesn't panic");
    let group = enforced.try_recv().expect("it was started");
    assert_eq!(group.enforce(), None, "it is dead and reaped");
}

#[tokio::test]
async fn a_thread_that_is_gone_is_noticed() {
    let spawner = Spawner::start().expect("there are threads");
    assert!(tokio::time::timeout(Duration::from_millis(50), spawner.gone()).await.is_err());
    let (held_up, _inbox) = held_up();
    tokio::time::timeout(LONG, held_up.gone()).await.expect("its threads are gone");
}

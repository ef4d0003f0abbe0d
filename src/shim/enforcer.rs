use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::group::Group;
use super::thread_end::ThreadEnd;

/// How often deadlines are looked at when none is near: they move, and machines sleep.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The thread that kills what is overdue. It does nothing else, so that nothing can hold it up: a
/// start that hangs, in a folder of a server that is away for one, hangs the spawner alone.
pub(super) fn start(end: ThreadEnd) -> io::Result<mpsc::Sender<Group>> {
    let (groups, inbox) = mpsc::channel();
    thread::Builder::new().name("enforcer".to_owned()).spawn(move || {
        let _end = end;
        enforce(&inbox);
    })?;
    Ok(groups)
}

fn enforce(inbox: &mpsc::Receiver<Group>) {
    let mut groups: Vec<Group> = Vec::new();
    loop {
        let mut wait = LOOK_AGAIN;
        groups.retain(|group| match group.enforce() {
            Some(deadline) => {
                wait = wait.min(deadline.remaining());
                true
            }
            None => false,
        });
        match inbox.recv_timeout(wait) {
            Ok(group) => groups.push(group),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

//! As whom jobs run: what a daemon may do, and what this host knows.

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::unistd::{Gid, Group, Uid, User};

use super::document::Field;
use super::problem::Problem;
use super::process;
use super::typed_job::{NamedJob, TypedJob};

/// A name service that takes longer hangs, for all that anybody here knows.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the name service of this host says, each name asked for once.
#[derive(Debug, Default)]
pub struct Accounts {
    users: HashMap<String, Answer>,
    groups: HashMap<String, Answer>,
    /// Whether it once gave no answer in time: then it is left alone.
    is_silent: bool,
}

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Its number.
    Is(u32),
    Nobody,
    /// The name service failed, or took too long.
    Unanswered,
}

impl Accounts {
    /// What keeps a daemon that runs as this process does from starting a job as its keys say; `keys` are
    /// laid over the defaults.
    pub fn refusals(&mut self, job: &NamedJob, keys: &TypedJob) -> Vec<Problem> {
        self.refusals_of(job, keys, Uid::effective(), Gid::effective())
    }

    fn refusals_of(&mut self, job: &NamedJob, keys: &TypedJob, uid: Uid, gid: Gid) -> Vec<Problem> {
        let (user, group) = (&keys.process.user, &keys.process.group);
        if uid.is_root() {
            let wrong = "missing, and the daemon runs as root";
            let remedy = "write user = \"NAME\", or user = \"root\" if the job needs that";
            return missing(job, user, wrong, remedy).into_iter().collect();
        }
        let own = |answer, own: u32| matches!(answer, Answer::Is(_) | Answer::Nobody) && answer != Answer::Is(own);
        let user = named(user).filter(|(name, _)| own(self.user(name), uid.as_raw())).map(|(_, place)| {
            let wrong = format!("the daemon runs as user {uid}, and only root starts jobs as somebody else");
            place.problem(wrong, "remove it, or run the daemon as root").resting_on_others()
        });
        let group = group.typed().filter(|group| own(self.group(&group.value), gid.as_raw())).map(|group| {
            let wrong = format!("the daemon runs as group {gid}, and only root starts jobs as another");
            group.place.problem(wrong, "remove it, or run the daemon as root").resting_on_others()
        });
        user.into_iter().chain(group).collect()
    }

    /// What a daemon on another host, or as another user, would stumble over.
    pub fn doubts(&mut self, job: &NamedJob, keys: &TypedJob) -> Vec<Problem> {
        let (user, group) = (&keys.process.user, &keys.process.group);
        let wrong = "missing, so a daemon that runs as root refuses the job";
        let remedy = "write user = \"NAME\", or user = \"@daemon\" for the daemon's own, whoever that is";
        let missing = missing(job, user, wrong, remedy);
        let unknown = |what| format!("no {what} of this name on this host");
        const REMEDY: &str = "make it before the job is due, or mend the name";
        let user = named(user).filter(|(name, _)| self.user(name) == Answer::Nobody);
        let user = user.map(|(_, place)| place.problem(unknown("user"), REMEDY));
        let group = group.typed().filter(|group| self.group(&group.value) == Answer::Nobody);
        let group = group.map(|group| group.place.problem(unknown("group"), REMEDY));
        missing.into_iter().chain(user).chain(group).collect()
    }

    fn user(&mut self, name: &str) -> Answer {
        let ask = |name: &str| User::from_name(name).map(|user| user.map(|user| user.uid.as_raw()));
        answer(&mut self.users, &mut self.is_silent, name, ask)
    }

    fn group(&mut self, name: &str) -> Answer {
        let ask = |name: &str| Group::from_name(name).map(|group| group.map(|group| group.gid.as_raw()));
        answer(&mut self.groups, &mut self.is_silent, name, ask)
    }
}

fn missing(job: &NamedJob, user: &Field<process::User>, wrong: &str, remedy: &str) -> Option<Problem> {
    user.is_absent().then(|| job.place.absent("user").problem(wrong, remedy).resting_on_others())
}

fn named(user: &Field<process::User>) -> Option<(&str, &super::document::Place)> {
    let user = user.typed()?;
    match &user.value {
        process::User::Daemons => None,
        process::User::Named(name) => Some((name, &user.place)),
    }
}

/// Asks in a thread of its own, which is left behind if it hangs.
fn answer(
    known: &mut HashMap<String, Answer>,
    is_silent: &mut bool,
    name: &str,
    ask: impl FnOnce(&str) -> nix::Result<Option<u32>> + Send + 'static,
) -> Answer {
    if let Some(answer) = known.get(name) {
        return *answer;
    }
    if *is_silent {
        return Answer::Unanswered;
    }
    let (said, hears) = mpsc::channel();
    let asked = name.to_owned();
    // Nobody hears an answer that comes too late.
    thread::spawn(move || said.send(ask(&asked)).ok());
    let answer = match hears.recv_timeout(PATIENCE) {
        Ok(Ok(Some(number))) => Answer::Is(number),
        Ok(Ok(None)) => Answer::Nobody,
        Ok(Err(_)) => Answer::Unanswered,
        Err(_) => {
            *is_silent = true;
            Answer::Unanswered
        }
    };
    known.insert(name.to_owned(), answer);
    answer
}

use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use nix::unistd::{Gid, Group, Uid, User as Entry, getgid, getuid, initgroups, setgid, setuid};

use super::{Failed, OrFailed, refused};
use crate::shim::passwd::User;

/// Who a job runs as.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) home: PathBuf,
    /// Whom it has to become; `None` for who it is already.
    other: Option<(Uid, Gid)>,
}

impl Account {
    /// Looks the names up, by whatever `nsswitch.conf(5)` says: this may take long. Who is the daemon's own user
    /// anyway is not looked up.
    pub(super) fn of(user: Option<&str>, group: Option<&str>, daemon: &User) -> Result<Self, Failed> {
        if group.is_none() && user.is_none_or(|user| user == daemon.name) {
            return Ok(Self { name: daemon.name.clone(), home: daemon.home.clone(), other: None });
        }
        let mut account = match user {
            Some(name) => Self::named(name)?,
            None => Self { name: daemon.name.clone(), home: daemon.home.clone(), other: Some((getuid(), getgid())) },
        };
        if let (Some(name), Some((_, gid))) = (group, &mut account.other) {
            *gid = find_group(name)?;
        }
        if account.other == Some((getuid(), getgid())) {
            account.other = None;
        }
        if account.other.is_some() && !getuid().is_root() {
            let what = format!("run as {}", account.words(group));
            return Err(refused(what, "only a daemon of root can run jobs as other users or groups"));
        }
        Ok(account)
    }

    /// Becomes the account, with all of its groups, for good.
    pub(super) fn assume(&self) -> Result<(), Failed> {
        let Some((uid, gid)) = self.other else { return Ok(()) };
        let name = CString::new(self.name.as_str()).expect("a login name that was found holds no NUL");
        initgroups(&name, gid).or_failed_with(|| format!("take the groups of {}", self.name))?;
        setgid(gid).or_failed_with(|| format!("take group {gid}"))?;
        setuid(uid).or_failed_with(|| format!("become {}", self.name))
    }

    fn named(name: &str) -> Result<Self, Failed> {
        let found = Entry::from_name(name).or_failed_with(|| format!("look up user {name:?}"))?;
        let entry = found.ok_or_else(|| no_such("user", name))?;
        Ok(Self { name: entry.name, home: entry.dir, other: Some((entry.uid, entry.gid)) })
    }

    fn words(&self, group: Option<&str>) -> String {
        match group {
            Some(group) => format!("user {}, group {group}", self.name),
            None => format!("user {}", self.name),
        }
    }
}

fn find_group(name: &str) -> Result<Gid, Failed> {
    let found = Group::from_name(name).or_failed_with(|| format!("look up group {name:?}"))?;
    found.map(|group| group.gid).ok_or_else(|| no_such("group", name))
}

fn no_such(kind: &str, name: &str) -> Failed {
    let error = io::Error::new(io::ErrorKind::NotFound, format!("there is no such {kind} on this host"));
    Failed { what: format!("run as {kind} {name:?}"), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon() -> User {
        User { name: "of this process".to_owned(), home: "/home".into() }
    }

    #[test]
    fn an_unknown_name_is_refused_with_it() {
        let failed = Account::of(Some("nobody-of-this-name"), None, &daemon()).unwrap_err();
        assert_eq!(failed.what, "run as user \"nobody-of-this-name\"");
        let failed = Account::of(None, Some("no-group-of-this-name"), &daemon()).unwrap_err();
        assert_eq!(failed.what, "run as group \"no-group-of-this-name\"");
    }

    #[test]
    fn without_a_name_or_with_ones_own_nothing_is_looked_up_or_changed() {
        for user in [None, Some("of this process")] {
            let account = Account::of(user, None, &daemon()).unwrap();
            assert_eq!((account.name.as_str(), account.other), ("of this process", None));
        }
    }
}

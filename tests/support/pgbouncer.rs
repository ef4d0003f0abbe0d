use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::postgres::{Cluster, Port};
use super::scratch::{Farewell, Scratch, open_to_readers};
use super::wait::eventually;

/// A transaction-mode pgbouncer with stock settings before a cluster, gone with the test.
#[derive(Debug)]
pub struct Pgbouncer {
    port: Port,
    child: Child,
    _folder: Scratch,
}

impl Pgbouncer {
    /// Starts it with so many server connections.
    pub fn before(cluster: &Cluster, pool_size: u32) -> Self {
        let folder = Scratch::new("pgbouncer", Farewell::Kill);
        let port = Port::reserve();
        let path = folder.path();
        open_to_readers(path);
        if let Some(user) = cluster.user() {
            chown(path, Some(user.uid), Some(user.gid)).expect("root may give a folder away");
        }
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = {pool_size}\nmax_client_conn = 200\n",
            cluster.port(),
            port.number(),
        );
        let ini = path.join("pgbouncer.ini");
        fs::write(&ini, settings).expect("the folder is our own");
        let log = fs::File::create(path.join("log")).expect("the folder is our own");
        let mut command = cluster.command_of("/usr/sbin/pgbouncer");
        command.arg("-q").arg(&ini).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.current_dir(path).spawn().expect("pgbouncer can be started: tests/run installs it");
        let pooler = Self { port, child, _folder: folder };
        eventually("pgbouncer listens", Duration::from_secs(10), || {
            TcpStream::connect(("127.0.0.1", pooler.port.number())).is_ok()
        });
        pooler
    }

    /// The same database through the pooler.
    pub fn url(&self, direct: &str, cluster: &Cluster) -> String {
        direct.replace(&format!(":{}/", cluster.port()), &format!(":{}/", self.port.number()))
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        // Errors mean that it has ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

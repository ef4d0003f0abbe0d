//! A TCP proxy with faults, between a client and a real server.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// What the proxy does with what it is given, on old connections and new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Forwards everything.
    Ok,
    /// Forwards each piece this much later, both ways.
    Delay(Duration),
    /// Accepts, forwards nothing, closes nothing: a firewall that drops.
    Stall,
    /// Forwards requests and keeps the answers back: done, but nobody learns of it.
    StallDown,
    /// Resets every connection at once, new ones too.
    Reset,
    /// Forwards this many more bytes towards the server, all connections together, then resets:
    /// a commit in doubt.
    CutAfter(usize),
}

/// A running proxy; connections are reset when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    mode: Arc<watch::Sender<Mode>>,
    open: Arc<AtomicUsize>,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One direction of one connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Proxy {
    /// Listens on a port of its own on 127.0.0.1 and forwards to `server`.
    ///
    /// It runs on a thread with a runtime of its own, so that a test that blocks does not stop it.
    pub fn to(server: SocketAddr) -> Self {
        let listener = StdListener::bind(("127.0.0.1", 0)).expect("a free port is there");
        let address = listener.local_addr().expect("it is bound");
        let mode = Arc::new(watch::Sender::new(Mode::Ok));
        let open = Arc::new(AtomicUsize::new(0));
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let served = Link { server, mode: Arc::clone(&mode), open: Arc::clone(&open) };
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
            runtime.block_on(async {
                listener.set_nonblocking(true).expect("a socket can be made non-blocking");
                let listener = TcpListener::from_std(listener).expect("the runtime takes a listener");
                ready.send(()).expect("the maker waits");
                tokio::select! {
                    () = serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv().expect("the thread says that it is ready");
        Self { address, mode, open, stop: Some(stop), thread: Some(thread) }
    }

    /// A proxy to a port of 127.0.0.1.
    pub fn to_port(port: u16) -> Self {
        Self::to(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// Changes what it does, from now on.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// What it does now; the rest of [`Mode::CutAfter`] can be seen here.
    pub fn mode(&self) -> Mode {
        *self.mode.borrow()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it holds open.
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// The URL of a server on 127.0.0.1, changed to lead through the proxy.
    pub fn url(&self, url: &str) -> String {
        let (before, after) = url.split_once("127.0.0.1:").expect("the URL names 127.0.0.1 and a port");
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{before}{}{rest}", self.address)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the proxy panicked");
    }
}

/// What the tasks of a proxy share.
#[derive(Clone)]
struct Link {
    server: SocketAddr,
    /// Written by the test, and by the direction that counts the bytes of `CutAfter`.
    mode: Arc<watch::Sender<Mode>>,
    /// Written by each connection at its start and end; read by the test.
    open: Arc<AtomicUsize>,
}

async fn serve(listener: TcpListener, link: Link) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    connections.spawn(connection(client, link.clone()));
                }
                Err(e) => panic!("the proxy can't accept: {e}"),
            },
            Some(ended) = connections.join_next() => ended.expect("a connection does not panic"),
        }
    }
}

/// One connection until it ends; however it ends, by a reset unless both sides closed it.
async fn connection(mut client: TcpStream, link: Link) {
    // With this, dropping the socket sends RST and throws away what is on its way.
    client.set_zero_linger().ok();
    if link.is_cut() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(link.server).await else {
        return;
    };
    for socket in [&client, &server] {
        socket.set_nodelay(true).ok();
    }
    server.set_zero_linger().ok();
    link.open.fetch_add(1, Ordering::SeqCst);
    let _counted = Counted(&link.open);
    // Borrowed halves: owned ones send FIN when they are dropped, before the reset.
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let both = async {
        tokio::join!(pump(Way::Up, from_client, to_server, &link), pump(Way::Down, from_server, to_client, &link))
    };
    tokio::select! {
        _ = both => {}
        () = link.cut() => {}
    }
}

/// Forwards one direction until its end, which it passes on.
async fn pump(way: Way, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, link: &Link) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        link.may_pass(way).await;
        let passed = if way == Way::Up { link.count(read) } else { read };
        if to.write_all(&buffer[..passed]).await.is_err() {
            return;
        }
        if read == 0 {
            to.shutdown().await.ok();
            return;
        }
        if passed < read {
            link.mode.send_replace(Mode::Reset);
        }
    }
}

impl Link {
    fn is_cut(&self) -> bool {
        *self.mode.borrow() == Mode::Reset
    }

    async fn cut(&self) {
        let mut mode = self.mode.subscribe();
        mode.wait_for(|mode| *mode == Mode::Reset).await.expect("we hold a sender ourselves");
    }

    /// Waits for as long as the mode holds this direction back.
    async fn may_pass(&self, way: Way) {
        let mut mode = self.mode.subscribe();
        let is_open = |mode: &Mode| *mode != Mode::Stall && !(*mode == Mode::StallDown && way == Way::Down);
        let mode = *mode.wait_for(is_open).await.expect("we hold a sender ourselves");
        if let Mode::Delay(by) = mode {
            tokio::time::sleep(by).await;
        }
    }

    /// How many of `offered` bytes may go up; what goes is taken off the count.
    fn count(&self, offered: usize) -> usize {
        let mut passed = offered;
        self.mode.send_if_modified(|mode| {
            let Mode::CutAfter(left) = mode else {
                return false;
            };
            passed = offered.min(*left);
            *left -= passed;
            true
        });
        passed
    }
}

/// Takes a connection off the count when it ends, cancelled or not.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

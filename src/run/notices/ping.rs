use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use crate::events;
use crate::job::{JobName, PingUrl};

/// How long one try may take, how many there are, and the pause after the first; it doubles, jittered.
const TRY: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// How many pings are under way at once.
const AT_ONCE: usize = 8;

/// How many pings may be on their way or wait; what comes beyond is dropped.
const MOST: usize = 256;

/// How much of a job's output goes along: what the services take.
const BODY: usize = 10_000;

/// Where a run is, for a monitoring service: `URL/start`, `URL`, `URL/fail`, as healthchecks.io and those like it
/// expect them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Signal {
    Start,
    Success,
    Failure,
}

/// Pings on their way. They never delay a run.
#[derive(Debug)]
pub(in crate::run) struct Pings {
    room: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// The pings of one run: the second waits for the first.
#[derive(Debug)]
pub(in crate::run) struct RunPings {
    started: watch::Receiver<()>,
}

impl Pings {
    pub(super) fn new() -> Self {
        Self { room: Arc::new(Semaphore::new(AT_ONCE)), tasks: TaskTracker::new() }
    }

    /// Says that a run has started.
    pub(in crate::run) fn start(&self, job: &JobName, url: &PingUrl) -> RunPings {
        let (sent, started) = watch::channel(());
        if self.has_room(job, url) {
            let ping = ping(self.room.clone(), job.clone(), url.clone(), Signal::Start, String::new());
            self.tasks.spawn(async move {
                ping.await;
                drop(sent);
            });
        }
        RunPings { started }
    }

    /// Says how it ended, after its start was said or given up, if there was one.
    pub(in crate::run) fn end(
        &self,
        run: Option<RunPings>,
        job: &JobName,
        url: &PingUrl,
        signal: Signal,
        output: &str,
    ) {
        if !self.has_room(job, url) {
            return;
        }
        let ping = ping(self.room.clone(), job.clone(), url.clone(), signal, tail(output));
        self.tasks.spawn(async move {
            if let Some(mut run) = run {
                // Nothing is ever sent: it ends with the first ping.
                while run.started.changed().await.is_ok() {}
            }
            ping.await;
        });
    }

    /// A service that hangs must not fill the memory.
    fn has_room(&self, job: &JobName, url: &PingUrl) -> bool {
        let has_room = self.tasks.len() < MOST;
        if !has_room {
            events::ping_failed(job, &host_of(url), "too many pings are on their way");
        }
        has_room
    }

    /// Waits for all that are on their way.
    pub(super) async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn tail(output: &str) -> String {
    let start = output.len().saturating_sub(BODY);
    output[output.ceil_char_boundary(start)..].to_owned()
}

async fn ping(room: Arc<Semaphore>, job: JobName, url: PingUrl, signal: Signal, body: String) {
    let address = match signal {
        Signal::Start => format!("{}/start", url.as_secret()),
        Signal::Success => url.as_secret().to_owned(),
        Signal::Failure => format!("{}/fail", url.as_secret()),
    };
    let mut pause = PAUSE;
    let mut last = String::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
            pause *= 2;
        }
        // The semaphore is never closed.
        let Ok(_permit) = room.acquire().await else { return };
        let (address, body) = (address.clone(), body.clone());
        // It has a bound of its own; a panic was told by the hook.
        match tokio::task::spawn_blocking(move || post(&address, &body)).await {
            Ok(Ok(())) => return,
            Ok(Err(Refused { why, is_final })) => {
                last = why;
                if is_final {
                    break;
                }
            }
            Err(_) => return,
        }
    }
    events::ping_failed(&job, &host_of(&url), &last);
}

/// Why a try failed, and whether another one is of no use.
struct Refused {
    why: String,
    is_final: bool,
}

/// One POST. Errors don't hold the address, which is as good as a password.
fn post(address: &str, body: &str) -> Result<(), Refused> {
    // Too many requests, and a request that took too long to be sent, may do better later.
    const LATER: [u16; 2] = [408, 429];
    let again = |why: &str| Refused { why: why.to_owned(), is_final: false };
    let sent = AGENT.post(address).header("content-type", "text/plain; charset=utf-8").send(body);
    match sent {
        Ok(_) => Ok(()),
        Err(ureq::Error::StatusCode(code)) => Err(Refused {
            why: format!("the service answered {code}"),
            is_final: (400..500).contains(&code) && !LATER.contains(&code),
        }),
        Err(ureq::Error::Io(error)) => Err(again(&error.to_string())),
        Err(ureq::Error::Timeout(_)) => Err(again("no answer in time")),
        Err(ureq::Error::HostNotFound) => Err(again("its name is not known")),
        Err(ureq::Error::ConnectionFailed) => Err(again("no connection")),
        Err(_) => Err(again("the request failed")),
    }
}

/// One for all, made when it is needed first: it reads the certificates that this machine trusts.
static AGENT: LazyLock<ureq::Agent> = LazyLock::new(|| {
    let native = rustls_native_certs::load_native_certs();
    let roots = native.certs.into_iter().map(|certificate| ureq::tls::Certificate::from_der(&certificate).to_owned());
    let tls = ureq::tls::TlsConfig::builder()
        .provider(ureq::tls::TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(ureq::tls::RootCerts::new_with_certs(&roots.collect::<Vec<_>>()))
        .build();
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(TRY))
        .max_redirects(3)
        .user_agent(concat!("cronlatch/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .build();
    config.into()
});

/// What may be shown of an address.
fn host_of(url: &PingUrl) -> String {
    let after_scheme = url.as_secret().split("://").nth(1).unwrap_or_default();
    after_scheme.split('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_of_an_address_is_shown() {
        let url = PingUrl::from_checked("https://hc.example.org:8443/ping/secret-key".to_owned());
        assert_eq!(host_of(&url), "hc.example.org:8443");
    }

    #[test]
    fn the_end_of_the_output_goes_along() {
        let output = "ä".repeat(BODY);
        let tail = tail(&output);
        assert!(tail.len() <= BODY && tail.chars().all(|c| c == 'ä'));
    }
}

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Signal, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::socket::{self, Received};
use super::wire::{Order, Report, ToShim, decode, encode};

/// The daemon's end of the channel to one shim.
#[derive(Debug)]
pub(super) struct Link {
    channel: AsyncFd<OwnedFd>,
    /// The shim itself, once it has said that it is there.
    shim: Option<OwnedFd>,
}

impl Link {
    pub(super) fn new(channel: OwnedFd) -> io::Result<Self> {
        Ok(Self { channel: register(channel)?, shim: None })
    }

    /// The next report; `None` once the channel is closed, which is all that will ever come.
    ///
    /// # Cancel safety
    /// Safe: a report is taken or it is not.
    pub(super) async fn next(&mut self) -> Option<Report> {
        loop {
            let mut ready = self.channel.readable().await.ok()?;
            match socket::receive(ready.get_inner()) {
                Ok(Received::Nothing) => ready.clear_ready(),
                Ok(Received::Message(message, descriptors)) => {
                    if let Some(shim) = descriptors.into_iter().next() {
                        self.shim = Some(shim);
                    }
                    // Of another version, or garbled: as good as none.
                    if let Ok(report) = decode(&message) {
                        return Some(report);
                    }
                }
                Ok(Received::Closed) | Err(_) => return None,
            }
        }
    }

    /// Whether the shim has said that it is there.
    pub(super) fn has_shim(&self) -> bool {
        self.shim.is_some()
    }

    /// Hands a run over, with its descriptors; false if the shim is gone.
    pub(super) fn hand_over(&self, message: &[u8], descriptors: &[OwnedFd]) -> io::Result<bool> {
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        match socket::send(self.channel.get_ref(), message, &borrowed) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends an order. A shim that is gone needs none, and one that doesn't read acts by its last known
    /// deadline.
    pub(super) fn order(&self, order: Order) {
        socket::send(self.channel.get_ref(), &encode(&ToShim::Order(order)), &[]).ok();
    }

    /// Kills the shim itself, which leaves its tree to the fork server: for one that was stopped, and so
    /// can't act.
    pub(super) fn kill_shim(&self) {
        if let Some(shim) = &self.shim {
            // An error means that it is gone.
            pidfd_send_signal(shim, Signal::KILL).ok();
        }
    }
}

/// Registers a descriptor with the runtime.
pub(super) fn register(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the value owns its descriptor, and always answers with the same one until it is dropped,
    // which is after its registration.
    #[expect(unsafe_code, reason = "the caller has to promise that the descriptor stays open")]
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE | Interest::WRITABLE) };
    registered.map_err(io::Error::from)
}

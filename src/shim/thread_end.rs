use tokio::sync::watch;

/// Held by a thread; dropped when it ends, however it ends.
pub(super) struct ThreadEnd {
    _held: watch::Sender<()>,
}

/// What is seen of it from outside.
#[derive(Debug)]
pub(super) struct ThreadWatch(watch::Receiver<()>);

/// Two ends of a watch over a thread.
pub(super) fn thread_end() -> (ThreadEnd, ThreadWatch) {
    let (held, seen) = watch::channel(());
    (ThreadEnd { _held: held }, ThreadWatch(seen))
}

impl ThreadWatch {
    /// Waits until the thread has ended.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn ended(&self) {
        // Nothing is ever sent: the only change is the end.
        while self.0.clone().changed().await.is_ok() {}
    }
}

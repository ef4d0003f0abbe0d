//! How a daemon ends: by the first signal it drains, by the second it is gone.

use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use super::{Order, Shared};
use crate::events;
use crate::run::Stop;

/// How long the daemon waits, after the last signal, for what can't be stopped any faster, its
/// goodbye included.
const LAST_WAIT: Duration = Duration::from_millis(1_500);

/// How long notices and pings may take that are on their way when all runs have ended.
const NOTICES: Duration = Duration::from_secs(5);

/// How long a run may take to end and to be written, once its `kill_grace` is over.
const AFTER_GRACE: Duration = Duration::from_secs(10);

impl Shared {
    /// What the runs are told.
    pub(super) fn stop_asked(&self) -> Stop {
        *self.stop.borrow()
    }

    /// Whether nothing new is to be started.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop_asked() != Stop::No
    }

    /// Obeys until the first order to stop.
    pub(super) async fn obey_until_stop(&self, orders: &mut Receiver<Order>) {
        while let Some(order) = orders.recv().await {
            match order {
                Order::State => self.say_state(),
                Order::Stop(signal) => {
                    events::daemon_draining(signal, self.running(), self.options.drain);
                    self.stop.send_replace(Stop::Draining);
                    return;
                }
            }
        }
        // Nobody is left who could order anything.
        std::future::pending().await
    }

    /// Waits for all runs: as long as they may, then as long as their kill takes, then no longer.
    /// Gives the instant by which the daemon is to be gone.
    pub(super) async fn drain(&self, orders: &mut Receiver<Order>) -> Instant {
        self.tasks.close();
        let patience = async {
            match self.options.drain {
                Some(drain) => tokio::time::sleep(drain).await,
                None => std::future::pending().await,
            }
            self.terminate().await;
        };
        tokio::select! {
            biased;
            () = self.tasks.wait() => return Instant::now() + LAST_WAIT,
            signal = self.obey_until_second_stop(orders) => events::daemon_hurried(signal, self.running()),
            () = patience => {}
        }
        self.kill().await
    }

    /// Ends all runs of a daemon that can't go on, as a drain that is over does.
    pub(super) async fn give_up(&self) -> Instant {
        self.tasks.close();
        tokio::select! {
            biased;
            () = self.tasks.wait() => return Instant::now() + LAST_WAIT,
            () = self.terminate() => {}
        }
        self.kill().await
    }

    /// Tells all runs to end, and waits as long as that may take.
    async fn terminate(&self) {
        self.stop.send_replace(Stop::Terminate);
        let bound = *self.longest_grace.borrow() + AFTER_GRACE;
        tokio::time::sleep(bound).await;
        events::daemon_overstayed(self.running(), bound);
    }

    async fn kill(&self) -> Instant {
        self.stop.send_replace(Stop::Kill);
        let gone_by = Instant::now() + LAST_WAIT;
        tokio::time::timeout_at(gone_by, self.tasks.wait()).await.ok();
        gone_by
    }

    /// Obeys until the next order to stop.
    async fn obey_until_second_stop(&self, orders: &mut Receiver<Order>) -> &'static str {
        while let Some(order) = orders.recv().await {
            match order {
                Order::State => self.say_state(),
                Order::Stop(signal) => return signal,
            }
        }
        std::future::pending().await
    }

    /// Lets those be told who are told how jobs fared; a little longer than the goodbye, but not past another order.
    pub(super) async fn tell_the_last(&self, orders: &mut Receiver<Order>, gone_by: Instant) {
        let is_hurried = self.stop_asked() == Stop::Kill;
        let until = if is_hurried { gone_by } else { gone_by + NOTICES };
        tokio::select! {
            told = tokio::time::timeout_at(until, self.runner.notices.finish()) => {
                if told.is_err() {
                    tracing::debug!("not everybody was told how jobs fared");
                }
            }
            signal = self.obey_until_second_stop(orders), if !is_hurried => events::daemon_hurried(signal, 0),
        }
    }

    fn say_state(&self) {
        let database = if self.health.is_reachable() { "reachable" } else { "away" };
        let offset = self.clock.offset().map(|offset| offset.num_milliseconds());
        events::daemon_state(self.running(), *self.queued.borrow(), self.live().len(), database, offset);
    }
}

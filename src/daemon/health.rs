use std::time::Duration;

use tokio::sync::watch;

use crate::clock::BootInstant;
use crate::events;
use crate::store::StoreError;

/// Whether the database answers, as all calls of this daemon found it. Each change is said once.
#[derive(Debug)]
pub(super) struct Health {
    /// Since when it has been away; `None` while it answers.
    away_since: watch::Sender<Option<BootInstant>>,
}

impl Health {
    pub(super) fn new() -> Self {
        Self { away_since: watch::Sender::new(None) }
    }

    /// A call brought an answer.
    pub(super) fn answered(&self) {
        let mut away: Option<Duration> = None;
        self.away_since.send_if_modified(|since| {
            away = since.take().map(|since| BootInstant::now().since(since));
            away.is_some()
        });
        if let Some(away) = away {
            events::database_recovered(away);
        }
    }

    /// A call brought none. A row that is locked says nothing about the database.
    pub(super) fn failed(&self, error: &StoreError) {
        if matches!(error, StoreError::Busy { .. }) {
            return;
        }
        let newly = self.away_since.send_if_modified(|since| {
            let newly = since.is_none();
            since.get_or_insert_with(BootInstant::now);
            newly
        });
        if newly {
            events::database_lost(&error.to_string());
        }
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.away_since.borrow().is_none()
    }

    /// Waits until some call has brought an answer again.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn wait_until_reachable(&self) {
        // The sender is ours, so the wait can't fail.
        self.away_since.subscribe().wait_for(Option::is_none).await.map(drop).ok();
    }
}

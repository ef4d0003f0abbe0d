use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::BootInstant;
use crate::events;
use crate::store::StoreError;

/// How often a database that is away is said to be.
const REMINDER: Duration = Duration::from_secs(60);

/// How long after a failure no answer counts: it may have been on its way before.
const STRAY: Duration = Duration::from_millis(500);

/// Whether the database answers, as all calls of this daemon found it. Each change is said once,
/// and while it is away each minute.
#[derive(Debug)]
pub(super) struct Health {
    /// Written by all calls; read by whoever waits for a change.
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` while it answers.
    away: Option<Away>,
    /// Whether it has ever answered.
    was_reached: bool,
}

#[derive(Debug)]
struct Away {
    since: BootInstant,
    /// When a call failed last.
    failed_at: BootInstant,
    /// What it found.
    error: String,
}

impl Health {
    pub(super) fn new() -> Self {
        Self { state: watch::Sender::default() }
    }

    /// A call brought an answer.
    pub(super) fn answered(&self) {
        let now = BootInstant::now();
        let mut back: Option<(Duration, bool)> = None;
        self.state.send_if_modified(|state| {
            if state.away.as_ref().is_some_and(|away| now.since(away.failed_at) < STRAY) {
                return false;
            }
            let was_reached = std::mem::replace(&mut state.was_reached, true);
            back = state.away.take().map(|away| (now.since(away.since), was_reached));
            back.is_some()
        });
        match back {
            Some((away, true)) => events::database_recovered(away),
            Some((waited, false)) => events::database_reached(waited),
            None => {}
        }
    }

    /// A call brought none. A row that is locked says nothing about the database.
    pub(super) fn failed(&self, error: &StoreError) {
        if matches!(error, StoreError::Busy { .. }) {
            return;
        }
        let error = error.to_string();
        let mut was_reached = false;
        let newly = self.state.send_if_modified(|state| {
            was_reached = state.was_reached;
            let newly = state.away.is_none();
            let failed_at = BootInstant::now();
            let since = state.away.as_ref().map_or(failed_at, |away| away.since);
            state.away = Some(Away { since, failed_at, error: error.clone() });
            newly
        });
        match (newly, was_reached) {
            (true, true) => events::database_lost(&error),
            (true, false) => events::database_not_reached(&error),
            (false, _) => {}
        }
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.state.borrow().away.is_none()
    }

    /// Reminds of a database that is away, until it is dropped.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn remind_on(&self) -> Infallible {
        loop {
            self.wait_until_away().await;
            tokio::select! {
                () = tokio::time::sleep(REMINDER) => self.remind(),
                () = self.wait_until_reachable() => {}
            }
        }
    }

    fn remind(&self) {
        let state = self.state.borrow();
        if let Some(away) = &state.away {
            events::database_missed(&away.error, BootInstant::now().since(away.since), state.was_reached);
        }
    }

    /// Waits until some call brings no answer.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn wait_until_away(&self) {
        // The sender is ours, so the wait can't fail.
        self.state.subscribe().wait_for(|state| state.away.is_some()).await.map(drop).ok();
    }

    /// Waits until some call has brought an answer again.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn wait_until_reachable(&self) {
        // The sender is ours, so the wait can't fail.
        self.state.subscribe().wait_for(|state| state.away.is_none()).await.map(drop).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> StoreError {
        StoreError::TimedOut { operation: "beat", after: Duration::from_secs(5) }
    }

    /// Lets the last failure lie back.
    fn age(health: &Health, by: Duration) {
        health.state.send_modify(|state| {
            if let Some(away) = &mut state.away {
                away.failed_at = away.failed_at - by;
            }
        });
    }

    #[test]
    fn an_answer_that_was_on_its_way_when_another_call_failed_brings_nothing_back() {
        let health = Health::new();
        health.answered();
        health.failed(&failure());
        health.answered();
        assert!(!health.is_reachable());
        age(&health, STRAY);
        health.answered();
        assert!(health.is_reachable());
    }
}

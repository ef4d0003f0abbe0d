use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::store::Asked;
use crate::trigger::RunId;

/// The runs under way here, each of which can be asked to stop.
///
/// Clones are the same registry.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    /// Written by runs that begin and end; read by whoever asks.
    runs: Arc<Mutex<HashMap<RunId, watch::Sender<Option<Asked>>>>>,
    /// How many they are. Written with `runs`; read by whoever only looks for requests while there are any.
    count: Arc<watch::Sender<usize>>,
}

/// A run's place in [`Stops`], until it is dropped.
#[derive(Debug)]
pub struct StopTicket {
    run: RunId,
    asked: watch::Receiver<Option<Asked>>,
    home: Stops,
}

impl Stops {
    /// Makes a run known, from its grant to its end. Each attempt at a trigger is a run of its own.
    pub fn register(&self, run: RunId) -> StopTicket {
        let (sender, asked) = watch::channel(None);
        self.change(|runs| drop(runs.insert(run, sender)));
        StopTicket { run, asked, home: self.clone() }
    }

    /// Asks a run to stop; false if it is not under way here. The first to ask stands.
    pub fn ask(&self, run: RunId, asked: Asked) -> bool {
        let runs = self.runs();
        let Some(sender) = runs.get(&run) else { return false };
        sender.send_if_modified(|before| {
            let is_first = before.is_none();
            if is_first {
                *before = Some(asked);
            }
            is_first
        });
        true
    }

    /// Waits until any run is under way.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn any(&self) {
        // The sender is our own, so the wait can't fail.
        self.count.subscribe().wait_for(|count| *count > 0).await.map(drop).unwrap_or_default();
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<RunId, watch::Sender<Option<Asked>>>)) {
        let mut runs = self.runs();
        change(&mut runs);
        self.count.send_replace(runs.len());
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<Option<Asked>>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StopTicket {
    /// Waits until somebody asks for this run to stop; from then on it answers at once.
    ///
    /// # Cancel safety
    /// Safe: what was asked stays.
    pub async fn asked(&mut self) -> Asked {
        loop {
            if let Some(asked) = self.asked.borrow_and_update().clone() {
                return asked;
            }
            if self.asked.changed().await.is_err() {
                // Another run of this name has its place, and nobody can ask this one.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for StopTicket {
    fn drop(&mut self) {
        self.home.change(|runs| {
            // A run that was given back and taken again has another ticket.
            if runs.get(&self.run).is_some_and(|sender| sender.subscribe().same_channel(&self.asked)) {
                runs.remove(&self.run);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Cancel;

    fn cancelled(by: &str) -> Asked {
        Asked::Cancelled(Cancel { by: by.to_owned(), reason: None })
    }

    #[tokio::test]
    async fn a_run_is_asked_once_and_the_first_to_ask_stands() {
        let (stops, run) = (Stops::default(), RunId::generate());
        assert!(!stops.ask(run, cancelled("anna")));
        let mut ticket = stops.register(run);
        assert!(!stops.ask(RunId::generate(), cancelled("anna")));
        assert!(stops.ask(run, cancelled("anna")));
        assert!(stops.ask(run, Asked::Replaced { by: RunId::generate() }));
        assert_eq!(ticket.asked().await, cancelled("anna"));
        assert_eq!(ticket.asked().await, cancelled("anna"), "it stays asked");
        drop(ticket);
        assert!(!stops.ask(run, cancelled("anna")));
    }

    #[tokio::test]
    async fn a_wait_that_is_dropped_loses_nothing() {
        let (stops, run) = (Stops::default(), RunId::generate());
        let mut ticket = stops.register(run);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, ticket.asked()).await.is_err());
        stops.ask(run, cancelled("anna"));
        assert_eq!(ticket.asked().await, cancelled("anna"));
    }

    #[tokio::test]
    async fn the_end_of_an_old_ticket_leaves_the_new_one_of_the_same_run_alone() {
        let (stops, run) = (Stops::default(), RunId::generate());
        let old = stops.register(run);
        let mut new = stops.register(run);
        drop(old);
        stops.any().await;
        assert!(stops.ask(run, cancelled("anna")));
        assert_eq!(new.asked().await, cancelled("anna"));
        drop(new);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, stops.any()).await.is_err());
    }
}

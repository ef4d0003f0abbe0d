//! Waiting for a state, with a bound and a name for what did not come.
//!
//! Tests never sleep to let something happen; they name the state that they wait for. The pauses
//! between two looks are the only sleeps of the suite.

use std::fmt::Display;
use std::future::Future;
use std::panic::Location;
use std::time::{Duration, Instant};

/// Long enough for a loaded two-core machine; a wait that takes this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `holds` says true.
///
/// Panics with `what` when `within` is over.
#[track_caller]
pub fn eventually(what: impl Display, within: Duration, mut holds: impl FnMut() -> bool) {
    eventually_some(what, within, || holds().then_some(()));
}

/// Waits until `probe` has a value, and returns it.
///
/// Panics with `what` when `within` is over.
#[track_caller]
pub fn eventually_some<T>(what: impl Display, within: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + within;
    loop {
        // Looked at before the clock: a state that is there counts, however late we come.
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < until, "waited {within:?} in vain: {what}");
        pause();
    }
}

/// Waits until the async `holds` says true. One look must end by itself.
///
/// Panics with `what` when `within` is over.
#[track_caller]
pub fn eventually_async(
    what: impl Display,
    within: Duration,
    mut holds: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    eventually_some_async(what, within, async move || holds().await.then_some(()))
}

/// Waits until the async `probe` has a value, and returns it. One look must end by itself.
///
/// Panics with `what` when `within` is over.
#[track_caller]
pub fn eventually_some_async<T>(
    what: impl Display,
    within: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let until = Instant::now() + within;
        loop {
            if let Some(value) = probe().await {
                return value;
            }
            assert!(Instant::now() < until, "waited {within:?} in vain at {caller}: {what}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Watches for all of `span` that `holds` stays true: for what must *not* happen.
#[track_caller]
pub fn stays(what: impl Display, span: Duration, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + span;
    while Instant::now() < until {
        assert!(holds(), "did not stay so for {span:?}: {what}");
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause between two looks at a state that is waited for")]
fn pause() {
    std::thread::sleep(PAUSE);
}

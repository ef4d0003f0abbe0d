use std::panic::catch_unwind;
use std::time::Duration;

use crate::support::wait::{eventually, eventually_async, eventually_some, stays};

const SHORT: Duration = Duration::from_millis(30);

#[test]
fn a_state_that_is_there_counts_without_any_time_left() {
    eventually("it is there", Duration::ZERO, || true);
    assert_eq!(eventually_some("it has a value", Duration::ZERO, || Some(7)), 7);
}

#[test]
fn a_state_that_does_not_come_is_named_in_the_panic() {
    let said = catch_unwind(|| eventually("the moon is blue", SHORT, || false)).unwrap_err();
    let said = said.downcast::<String>().unwrap();
    assert!(said.contains("the moon is blue"), "{said}");
}

#[test]
fn what_changes_does_not_stay() {
    let mut looks = 0;
    let look = || {
        looks += 1;
        looks < 2
    };
    let watched = catch_unwind(std::panic::AssertUnwindSafe(|| stays("few looks", Duration::from_secs(9), look)));
    assert!(watched.is_err());
}

#[tokio::test]
async fn an_async_state_is_waited_for_too() {
    let mut looks = 0;
    let third = async || {
        looks += 1;
        looks == 3
    };
    eventually_async("the third look", Duration::from_secs(9), third).await;
    assert_eq!(looks, 3);
}

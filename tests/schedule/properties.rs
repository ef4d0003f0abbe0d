//! What holds for every expression.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use cronlatch::job::schedule::{GapRule, Reading, Schedule, parse_zone};
use proptest::prelude::*;

use super::firings;
use super::grammar::{expression, rules, start_anywhere, start_near_a_change};
use super::naive::Naive;

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn near_clock_changes_it_fires_exactly_when_a_virtual_clock_shows_its_time(
        expression in expression(),
        (gap, fold) in rules(),
        (zone, start) in start_near_a_change(),
    ) {
        let end = start + TimeDelta::hours(50);
        let Ok(schedule) = Schedule::read([&expression], &Reading { gap, fold, ..Reading::in_zone(zone) }) else {
            return Ok(()); // 30 February and the like.
        };
        let got: Vec<_> = firings(&schedule, start - TimeDelta::seconds(1)).take_while(|at| *at < end).collect();
        prop_assert_eq!(got, Naive::read(&expression, gap, fold).firings(zone, start, end));
    }

    #[test]
    fn every_start_inside_a_period_finds_the_same_end(
        expression in expression(),
        (gap, fold) in rules(),
        (zone, start) in start_near_a_change(),
        shares in prop::collection::vec(0.0..1.0, 8),
    ) {
        let Ok(schedule) = Schedule::read([&expression], &Reading { gap, fold, ..Reading::in_zone(zone) }) else {
            return Ok(());
        };
        let Some(end) = schedule.next_after(start) else {
            return Ok(());
        };
        // Shares of the near end too: in a period of a year all the rest would lie far from the change.
        let period = (end - start).num_milliseconds();
        for longest in [period, period.min(90 * 60 * 1000)] {
            for share in &shares {
                let later = start + TimeDelta::milliseconds((longest as f64 * share) as i64);
                prop_assert_eq!(schedule.next_after(later), Some(end), "from {}", later);
            }
        }
        prop_assert_eq!(schedule.next_after(end - TimeDelta::nanoseconds(1)), Some(end));
    }

    #[test]
    fn the_next_instant_is_always_later_and_shows_a_time_that_is_named_or_ends_a_gap(
        expression in expression(),
        (gap, fold) in rules(),
        (zone, start) in start_anywhere(),
    ) {
        let Ok(schedule) = Schedule::read([&expression], &Reading { gap, fold, ..Reading::in_zone(zone) }) else {
            return Ok(());
        };
        prop_assert!(schedule.words().ends_with(zone.name()));
        prop_assert!(schedule.cautions(start).iter().all(|caution| caution.expression == 0));
        let naive = Naive::read(&expression, gap, fold);
        let local = |at: DateTime<Utc>| at.with_timezone(&zone).naive_local().and_utc().timestamp();
        let mut last = start;
        for next in firings(&schedule, start).take(20) {
            prop_assert!(next > last, "{} is not later than {}", next, last);
            let jumped = local(next) - local(next - TimeDelta::seconds(1)) > 1;
            prop_assert!(naive.names(local(next)) || jumped && naive.gap == GapRule::Run, "{}", next);
            last = next;
        }
    }

    #[test]
    fn whatever_is_typed_gets_an_answer(text in "\\PC{0,40}", fields in "[-0-9*,/?#~@LWHA-Za-z() \t]{0,40}") {
        for text in [text, fields] {
            match Schedule::parse(&text, Tz::Europe__Berlin) {
                Err(refusal) => prop_assert!(!refusal.to_string().is_empty()),
                Ok(schedule) => {
                    prop_assert!(schedule.words().ends_with(", Europe/Berlin"));
                    schedule.cautions(DateTime::UNIX_EPOCH);
                    schedule.passed(DateTime::UNIX_EPOCH, DateTime::<Utc>::MAX_UTC);
                }
            }
            prop_assert!(parse_zone(&text).is_err() || text.trim() == text);
        }
    }
}

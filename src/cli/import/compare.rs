//! Old and new times side by side.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::clock::CronClock;
use super::made::Job;
use crate::job::schedule::Schedule;

/// The span of time that is compared; its start is left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

/// The starts of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Starts {
    pub count: usize,
    /// At most [`SHOWN`] of them.
    pub first: Vec<DateTime<Utc>>,
}

/// The instants at which one of the two starts the job more often, for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub cause: String,
    pub who: Who,
    pub count: usize,
    /// At most [`NAMED`] of them, with how many starts more.
    pub first: Vec<(DateTime<Utc>, usize)>,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Cron,
    Cronlatch,
}

/// What a comparison brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub old: Starts,
    pub new: Starts,
    pub differences: Vec<Difference>,
}

/// How many instants are shown of each side.
const SHOWN: usize = 3;
/// How many instants are named of those that differ, for each cause.
const NAMED: usize = 5;

/// The old cron's clocks, one a zone.
#[derive(Debug)]
pub(super) struct Clocks {
    span: Span,
    by_zone: BTreeMap<&'static str, CronClock>,
    /// The zone of Debian's cron: that of its host.
    host: Tz,
    /// What came out for fields in a zone: many jobs run each minute, and that takes longest.
    known: BTreeMap<(String, &'static str), Comparison>,
}

impl Clocks {
    /// None is made yet.
    pub(super) fn new(host: Tz, span: Span) -> Self {
        Self { span, by_zone: BTreeMap::new(), host, known: BTreeMap::new() }
    }

    /// Compares an entry as Debian's cron runs it with the job that was made of it.
    pub(super) fn compare(&mut self, job: &Job, schedule: &Schedule) -> Comparison {
        let key = (job.read.typed.clone(), job.zone.name());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let comparison = self.compare_anew(job, schedule);
        self.known.insert(key, comparison.clone());
        comparison
    }

    fn compare_anew(&mut self, job: &Job, schedule: &Schedule) -> Comparison {
        let (host, span) = (self.host, self.span);
        let clock = self.by_zone.entry(host.name()).or_insert_with(|| CronClock::between(host, span.from, span.until));
        let mut old = clock.starts(job.read.old()).peekable();
        let mut after = span.from;
        let new = std::iter::from_fn(|| {
            after = schedule.next_after(after).filter(|at| *at <= span.until)?;
            Some(after)
        });
        let mut new = new.peekable();
        let mut comparison = Comparison::default();
        while let Some(at) = old.peek().into_iter().chain(new.peek()).min().copied() {
            let olds = std::iter::from_fn(|| old.next_if_eq(&at)).count();
            let news = std::iter::from_fn(|| new.next_if_eq(&at)).count();
            comparison.old.add(at, olds);
            comparison.new.add(at, news);
            if olds != news {
                comparison.differ(at, olds, news, cause(job, host, olds, news));
            }
        }
        comparison
    }
}

impl Starts {
    fn add(&mut self, at: DateTime<Utc>, times: usize) {
        self.count += times;
        let room = SHOWN - self.first.len();
        self.first.extend(std::iter::repeat_n(at, times.min(room)));
    }
}

impl Comparison {
    fn differ(&mut self, at: DateTime<Utc>, olds: usize, news: usize, cause: String) {
        let who = if olds > news { Who::Cron } else { Who::Cronlatch };
        let known = self.differences.iter().position(|known| known.who == who && known.cause == cause);
        let place = known.unwrap_or_else(|| {
            self.differences.push(Difference { cause, who, count: 0, first: Vec::new() });
            self.differences.len() - 1
        });
        let difference = &mut self.differences[place];
        difference.count += 1;
        if difference.first.len() < NAMED {
            difference.first.push((at, olds.abs_diff(news)));
        }
    }
}

impl Who {
    /// Its name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Cron => "cron",
            Self::Cronlatch => "cronlatch",
        }
    }
}

/// Why they differ at an instant. Zones and misread ranges first: both differ everywhere. All else
/// that differs is a clock change.
fn cause(job: &Job, host: Tz, olds: usize, news: usize) -> String {
    if job.zone != host {
        return format!("Debian's cron ignores CRON_TZ and goes by {host}");
    }
    if job.read.is_misread() {
        return format!("Debian's cron reads no time from the backward range in {:?}", job.read.typed);
    }
    let cause = if olds > 0 && news > 0 {
        "the clocks go forward: cron runs it once for each time that is left out, cronlatch once for all"
    } else {
        "the clocks change by more than three hours, which cron takes for a clock that was set"
    };
    cause.to_owned()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::times::Read;
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    fn compare(line: &str, zone: Tz, host: Tz, from: DateTime<Utc>, days: i64) -> Comparison {
        let tokens: Vec<&str> = line.split(' ').collect();
        let read = Read::fields(tokens.try_into().unwrap()).unwrap();
        let schedule = Schedule::parse(&read.text, zone).unwrap();
        let job = Job { name: "a".to_owned(), toml: String::new(), zone, read };
        Clocks::new(host, Span { from, until: from + TimeDelta::days(days) }).compare(&job, &schedule)
    }

    /// Who, how often, and the cause of the only difference.
    fn only(comparison: &Comparison) -> (Who, usize, &str) {
        let [difference] = &comparison.differences[..] else { panic!("{comparison:?}") };
        (difference.who, difference.count, &difference.cause)
    }

    const BERLIN: Tz = Tz::Europe__Berlin;

    #[test]
    fn an_ordinary_month_has_the_same_times_and_shows_the_first() {
        let found = compare("15 2 * * 1-5", BERLIN, BERLIN, at("2026-12-02T00:00:00Z"), 31);
        assert_eq!((found.old.count, &found.old), (23, &found.new));
        assert_eq!(found.old.first, ["2026-12-02T01:15:00Z", "2026-12-03T01:15:00Z", "2026-12-04T01:15:00Z"].map(at));
        assert_eq!(found.differences, []);
    }

    #[test]
    fn times_of_one_gap_are_several_runs_of_cron_and_one_of_cronlatch() {
        let found = compare("*/5 3 * * *", BERLIN, BERLIN, at("2027-03-20T00:00:00Z"), 10);
        assert_eq!(found.differences, []);
        let found = compare("0,20,40 2 * * *", BERLIN, BERLIN, at("2027-03-20T00:00:00Z"), 10);
        let (who, count, cause) = only(&found);
        assert_eq!((who, count, found.differences[0].first[0]), (Who::Cron, 1, (at("2027-03-28T01:00:00Z"), 2)));
        assert!(cause.contains("once for all"), "{cause}");
    }

    #[test]
    fn each_other_difference_has_its_cause() {
        let found = compare("0 9 * * *", Tz::Pacific__Apia, Tz::Pacific__Apia, at("2011-12-20T00:00:00Z"), 20);
        assert!(
            matches!(only(&found), (Who::Cronlatch, 1, cause) if cause.contains("more than three hours")),
            "{found:?}"
        );
        let found = compare("0 22-2 * * *", BERLIN, BERLIN, at("2026-12-02T12:00:00Z"), 1);
        assert!(matches!(only(&found), (Who::Cronlatch, 5, cause) if cause.contains("backward range")), "{found:?}");
        let found = compare("0 9 * * *", Tz::Asia__Tokyo, BERLIN, at("2026-12-02T12:00:00Z"), 7);
        assert!(found.differences.iter().all(|difference| difference.cause.contains("CRON_TZ")), "{found:?}");
        assert_eq!(found.differences.iter().map(|difference| difference.count).sum::<usize>(), 14);
    }

    #[test]
    fn equal_fields_of_two_zones_are_not_taken_for_one_another() {
        let from = at("2026-12-02T12:00:00Z");
        let mut clocks = Clocks::new(BERLIN, Span { from, until: from + TimeDelta::days(2) });
        for (zone, differences) in [(BERLIN, 0), (Tz::Asia__Tokyo, 2), (BERLIN, 0)] {
            let read = Read::fields(["0", "9", "*", "*", "*"]).unwrap();
            let schedule = Schedule::parse(&read.text, zone).unwrap();
            let job = Job { name: "a".to_owned(), toml: String::new(), zone, read };
            assert_eq!(clocks.compare(&job, &schedule).differences.len(), differences, "{zone}");
        }
    }

    fn field(least: u32, greatest: u32) -> impl Strategy<Value = String> {
        let range = (least..=greatest, least..=greatest).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
        let item = prop_oneof![3 => (least..=greatest).prop_map(|value| value.to_string()), 1 => range];
        prop_oneof![
            2 => Just("*".to_owned()),
            1 => (2_u32..20).prop_map(|step| format!("*/{step}")),
            3 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
        ]
    }

    /// Days before clock changes of all kinds up to two hours.
    const CHANGES: [(Tz, &str); 10] = [
        (BERLIN, "2027-03-27T00:30:00Z"),
        (BERLIN, "2026-10-24T00:30:00Z"),
        (Tz::America__New_York, "2027-03-13T07:00:00Z"),
        (Tz::America__New_York, "2026-10-31T05:30:00Z"),
        (Tz::America__Santiago, "2027-04-03T03:00:00Z"),
        (Tz::America__Santiago, "2027-09-04T03:00:00Z"),
        (Tz::Australia__Lord_Howe, "2026-10-02T15:00:00Z"),
        (Tz::Australia__Lord_Howe, "2027-04-02T14:00:00Z"),
        (Tz::Asia__Beirut, "2027-03-26T22:00:00Z"),
        (Tz::Antarctica__Troll, "2027-03-27T01:00:00Z"),
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn near_clock_changes_the_simulation_and_the_schedule_agree_but_for_several_times_of_one_gap(
            minute in field(0, 59),
            hour in prop_oneof![field(0, 23), field(0, 3)],
            weekday in prop_oneof![2 => Just("*".to_owned()), 1 => field(0, 7)],
            (zone, from) in select(&CHANGES[..]),
        ) {
            let line = format!("{minute} {hour} * * {weekday}");
            let found = compare(&line, zone, zone, at(from), 3);
            for difference in &found.differences {
                prop_assert_eq!(difference.who, Who::Cron, "{}: {:?}", line, difference);
                prop_assert!(difference.cause.contains("once for all"), "{}: {:?}", line, difference);
            }
        }
    }
}

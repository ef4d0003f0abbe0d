//! What has passed of a schedule, counted without a walk over every instant.
//!
//! Expressions are counted by days ([`Calendar`]), periods by division; both from one blackout
//! window to the next. Where these are too many, the instants are looked at, and where those are too
//! many, too, the middle is left out: first and last are true, the number is a lower bound.

mod calendar;
mod counted;
mod day;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::blackout::Blackouts;
use super::every::Every;
use super::source::Source;
use super::stretch::{Stretch, ceiling, instant};
use calendar::Calendar;

pub(super) use counted::Counted;
pub(super) use day::local_times;

/// What has passed of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The instants at which it ticked; `None`: none.
    pub live: Option<Span>,
    /// The instants that a blackout took; `None`: none.
    pub blacked_out: Option<Span>,
}

/// Instants that have passed: from which to which, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The earliest.
    pub first: DateTime<Utc>,
    /// The latest that was found.
    pub last: DateTime<Utc>,
    /// How many there are, both of these included.
    pub count: u64,
    /// Whether all were counted; if not, there are at least so many.
    pub exact: bool,
}

/// How many blackout windows are looked at, or, if there are more, how many instants.
const MAX_STEPS: u32 = 20_000;

/// What passed of a source in a stretch.
pub(super) fn passed(source: &Source, zone: Tz, blackouts: &Blackouts, stretch: Stretch) -> Passed {
    let inside = stretch.common(Stretch::of_all_instants());
    let mut counter = match source {
        Source::At(at) if stretch.contains(at.timestamp()) => return once(*at, blackouts),
        Source::At(_) | Source::ByHand => return Passed::default(),
        _ if inside.is_empty() => return Passed::default(),
        Source::Crontab(crontab) => Counter::Calendar(Calendar::new(zone, crontab.expressions(), inside)),
        Source::Every(every) => Counter::Every(*every),
    };
    let progress = Passing { counter: &mut counter, blackouts }.count(inside);
    if progress.reached >= inside.to {
        return progress.passed(true);
    }
    let all = counter.count(inside);
    if all.is_none_or(|all| all.count <= u64::from(MAX_STEPS)) {
        return walk(source, zone, blackouts, inside).passed(true);
    }
    Passing { counter: &mut counter, blackouts }.with_tail(progress, inside).passed(false)
}

/// Asks for one instant after the other.
fn walk(source: &Source, zone: Tz, blackouts: &Blackouts, stretch: Stretch) -> Progress {
    let mut progress = Progress { live: None, blacked_out: None, reached: stretch.from };
    while let Some(next) = source.next_after(zone, instant(progress.reached - 1)) {
        let second = next.timestamp();
        if second >= stretch.to {
            break;
        }
        let one = Some(Counted { first: second, last: second, count: 1 });
        match blackouts.end_at(next) {
            None => progress.live = Counted::join(progress.live, one),
            Some(_) => progress.blacked_out = Counted::join(progress.blacked_out, one),
        }
        progress.reached = second + 1;
    }
    progress
}

fn once(at: DateTime<Utc>, blackouts: &Blackouts) -> Passed {
    let span = Some(Span { first: at, last: at, count: 1, exact: true });
    match blackouts.end_at(at) {
        Some(_) => Passed { live: None, blacked_out: span },
        None => Passed { live: span, blacked_out: None },
    }
}

enum Counter<'a> {
    Calendar(Calendar<'a>),
    Every(Every),
}

impl Counter<'_> {
    fn count(&mut self, stretch: Stretch) -> Option<Counted> {
        match self {
            Self::Calendar(calendar) => calendar.count(stretch),
            Self::Every(every) => Counted::multiples(every.period(), every.offset(), stretch),
        }
    }
}

/// What was counted of a stretch, and how far.
#[derive(Clone, Copy)]
struct Progress {
    live: Option<Counted>,
    blacked_out: Option<Counted>,
    /// Everything before it was counted.
    reached: i64,
}

impl Progress {
    fn passed(self, exact: bool) -> Passed {
        let span = |counted: Counted| Span {
            first: instant(counted.first),
            last: instant(counted.last),
            count: counted.count,
            exact,
        };
        Passed { live: self.live.map(span), blacked_out: self.blacked_out.map(span) }
    }
}

/// Goes from one blackout window to the next, and counts what lies in them and between them.
struct Passing<'a, 'b> {
    counter: &'a mut Counter<'b>,
    blackouts: &'a Blackouts,
}

impl Passing<'_, '_> {
    /// What was counted, and of the rest what lies at the end of the stretch: it holds the last
    /// instant, which is worth more than the number of those in the middle.
    fn with_tail(&mut self, head: Progress, stretch: Stretch) -> Progress {
        let Some(tail) = self.tail(Stretch { from: head.reached, ..stretch }) else { return head };
        Progress {
            live: Counted::join(head.live, tail.live),
            blacked_out: Counted::join(head.blacked_out, tail.blacked_out),
            reached: tail.reached,
        }
    }

    /// From the begin on, as far as the steps allow.
    fn count(&mut self, stretch: Stretch) -> Progress {
        let mut progress = Progress { live: None, blacked_out: None, reached: stretch.from };
        let mut steps = MAX_STEPS;
        while progress.reached < stretch.to {
            let window = self.next_window(Stretch { from: progress.reached, ..stretch }, &mut steps);
            let before = Stretch { from: progress.reached, to: window.from };
            progress.live = Counted::join(progress.live, self.counter.count(before));
            progress.blacked_out = Counted::join(progress.blacked_out, self.counter.count(window));
            progress.reached = window.to;
            if steps == 0 {
                break;
            }
        }
        progress
    }

    /// The first blackout in a stretch, with those that it runs into; an empty one at the end, if
    /// there is none.
    fn next_window(&self, stretch: Stretch, steps: &mut u32) -> Stretch {
        let mut step = || {
            *steps = steps.saturating_sub(1);
            *steps > 0
        };
        let none = Stretch { from: stretch.to, to: stretch.to };
        let end_at = |second: i64| self.blackouts.end_at(instant(second)).map(ceiling);
        let (from, mut to) = match end_at(stretch.from) {
            Some(end) => (stretch.from, end),
            None => {
                let start = self.blackouts.next_start(instant(stretch.from)).map(ceiling);
                let Some(start) = start.filter(|start| *start < stretch.to) else { return none };
                (start, end_at(start).unwrap_or(start))
            }
        };
        while to < stretch.to && step() {
            match end_at(to) {
                Some(end) => to = end,
                None => break,
            }
        }
        Stretch { from, to: to.min(stretch.to) }
    }

    /// As much of the end as the steps allow: what is twice as long is tried until it is too much.
    fn tail(&mut self, stretch: Stretch) -> Option<Progress> {
        let (mut tail, mut length) = (None, 60);
        loop {
            let part = Stretch { from: stretch.from.max(stretch.to - length), ..stretch };
            let progress = self.count(part);
            if progress.reached < part.to {
                return tail;
            }
            tail = Some(progress);
            if part.from == stretch.from {
                return tail;
            }
            length *= 2;
        }
    }
}

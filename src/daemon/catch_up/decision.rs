//! What to do about the triggers of a job that have no row: pure.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use super::gaps::{Gaps, gaps};
use super::reruns;
use crate::daemon::queue::{PASSED_OVER, start_delay};
use crate::daemon::site::Site;
use crate::job::schedule::Span;
use crate::job::{CatchUp, Job};
use crate::store::{CatchUpPlan, JobProgress, LateRun, RangeKind, TriggerRange};
use crate::trigger::{MissedReason, RunId};

/// A watermark that lies further ahead than this was written by a clock that was wrong.
const AHEAD: TimeDelta = TimeDelta::minutes(1);

/// A late run that could wait for less than this, before the next trigger is due, is not worth it.
const LEAST_WAIT: TimeDelta = TimeDelta::seconds(1);

/// From so many rows behind it on, or this far back, a watermark is moved although nothing is missing: so
/// that every sweep sees all rows since.
const MANY_ROWS: usize = 32;
const LONG_AGO: TimeDelta = TimeDelta::hours(6);

/// Why a job is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Settle {
    /// Some host has given a trigger up, so no other one holds it for long.
    GivenUp,
    /// It is time to look: hosts may hold triggers for which they have no room yet.
    Neglected,
    /// Nobody claims anything that was due by then. A job with something due since is left to the next
    /// sweep, so that an outage is one row.
    UpTo(DateTime<Utc>),
}

/// Which of a job's triggers a sweep is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How far back the job catches up; what is older is missed.
    since: DateTime<Utc>,
    /// What is later may still be on its way through some host's claim.
    through: DateTime<Utc>,
    now: DateTime<Utc>,
    /// Whether nothing may be due between the two.
    only_if_quiet: bool,
}

impl Bounds {
    pub(super) fn of(job: &Job, now: DateTime<Utc>, settle: Settle) -> Self {
        let length = |duration| TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX);
        let back = |by: TimeDelta| now.checked_sub_signed(by).unwrap_or(DateTime::UNIX_EPOCH);
        let due_by = match settle {
            Settle::GivenUp => back(PASSED_OVER),
            Settle::Neglected => back(PASSED_OVER + length(job.start_deadline)),
            Settle::UpTo(until) => until,
        };
        let delay = start_delay(job);
        let since = back(length(job.catch_up_max_age).checked_add(&delay).unwrap_or(TimeDelta::MAX));
        let only_if_quiet = matches!(settle, Settle::UpTo(_));
        Self { since, through: (due_by - delay).trunc_subsecs(0), now, only_if_quiet }
    }
}

/// What to do about the triggers of a job that have no row: those in `(watermark, through]`.
/// `None`: nothing.
///
/// An older trigger never runs after a newer one, unless the job catches up on all. A host that may
/// not run the job, as no live one may, settles only what is too old for any.
pub(super) fn decide(job: &Job, site: &Site, progress: &JobProgress, bounds: Bounds) -> Option<CatchUpPlan> {
    let watermark = progress.caught_up_through;
    let mut deciding = Deciding { job, site, progress, bounds, ranges: Vec::new(), is_paused: false };
    if watermark - bounds.now > AHEAD {
        return Some(deciding.plan(bounds.through, Vec::new()));
    }
    let is_due = || until_next(job, bounds.through, bounds.now).is_some_and(|left| left <= TimeDelta::zero());
    if bounds.only_if_quiet && is_due() {
        return None;
    }
    let through = if site.may_run(job) { bounds.through } else { bounds.through.min(bounds.since) };
    let mut settled = progress.settled_through;
    let through = deciding.whole_stretches_up_to(settled, through);
    deciding.account_for_blackouts(settled, through);
    let ended = progress.pause.and_then(|pause| Some((pause.from, pause.until.filter(|until| *until <= through)?)));
    if let Some((from, until)) = ended {
        deciding.account_for_pause(settled, from, until);
        settled = settled.max(until);
    }
    settled = deciding.account_for_edit(settled, through);
    let late = deciding.decide_about_gaps(settled, through);
    let moves = !deciding.ranges.is_empty()
        || !late.is_empty()
        || ended.is_some()
        || progress.with_row.len() >= MANY_ROWS
        || through - watermark > LONG_AGO;
    (moves && through > watermark).then(|| deciding.plan(through, late))
}

/// A decision under way.
struct Deciding<'a> {
    job: &'a Job,
    site: &'a Site,
    progress: &'a JobProgress,
    bounds: Bounds,
    ranges: Vec<TriggerRange>,
    is_paused: bool,
}

impl Deciding<'_> {
    /// Up to where triggers are accounted for now: not into a pause or a blackout that reaches further,
    /// for what one takes is one row when it is over.
    fn whole_stretches_up_to(&mut self, settled: DateTime<Utc>, through: DateTime<Utc>) -> DateTime<Utc> {
        let light = self.before_the_dark(settled, through);
        let Some(pause) = self.progress.pause.filter(|pause| pause.until.is_none_or(|until| until > light)) else {
            return light;
        };
        // Nothing runs late in a pause.
        self.is_paused = pause.until.is_none_or(|until| until > self.bounds.now);
        self.before_the_dark(settled, light.min(pause.from))
    }

    /// The last trigger before a blackout that goes on, as a trigger to come tells.
    fn before_the_dark(&self, settled: DateTime<Utc>, through: DateTime<Utc>) -> DateTime<Utc> {
        let passed = self.job.schedule.passed(settled, through.max(settled));
        let Some(dark) = passed.blacked_out else { return through };
        let last_live = passed.live.map_or(settled, |live| live.last);
        let goes_on = dark.last > last_live && self.job.schedule.next_after(dark.last).is_some();
        if goes_on { last_live } else { through }
    }

    /// What came in a pause is paused; what was missing before it is not caught up after it.
    fn account_for_pause(&mut self, settled: DateTime<Utc>, from: DateTime<Utc>, until: DateTime<Utc>) {
        self.account(settled, from.min(until), RangeKind::Missed, MissedReason::Paused);
        self.account(from.max(settled), until, RangeKind::Paused, MissedReason::Paused);
    }

    /// A job that was edited doesn't catch up on what lay before: it is missed, if it ever was due.
    fn account_for_edit(&mut self, settled: DateTime<Utc>, through: DateTime<Utc>) -> DateTime<Utc> {
        let Some(edited_at) = self.progress.edited_at.map(|at| at.min(through)) else { return settled };
        self.account(settled, edited_at, RangeKind::Missed, MissedReason::Edited);
        settled.max(edited_at)
    }

    fn account(&mut self, after: DateTime<Utc>, through: DateTime<Utc>, kind: RangeKind, reason: MissedReason) {
        let found = gaps(&self.job.schedule, after, through, &self.progress.with_row, 1);
        self.ranges.extend(found.and_then(|gaps| range(&gaps, 0, kind, reason)));
    }

    fn account_for_blackouts(&mut self, settled: DateTime<Utc>, through: DateTime<Utc>) {
        let (kind, reason) = (RangeKind::Blackout, MissedReason::Blackout);
        let dark = self.job.schedule.passed(settled, through.max(settled)).blacked_out;
        let range = |dark: Span| TriggerRange { kind, from: dark.first, to: dark.last, count: dark.count, reason };
        self.ranges.extend(dark.map(range));
    }

    /// What is run late, oldest first; the others become one range.
    fn decide_about_gaps(&mut self, settled: DateTime<Utc>, through: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let most = match self.job.catch_up {
            CatchUp::None => 0,
            CatchUp::Latest => 1,
            CatchUp::All { max_runs, .. } => usize::try_from(max_runs).unwrap_or(usize::MAX),
        };
        let with_row = &self.progress.with_row;
        let Some(found) = gaps(&self.job.schedule, settled, through, with_row, most.saturating_add(1)) else {
            return Vec::new();
        };
        let young: Vec<_> = found.newest.iter().copied().filter(|at| *at > self.bounds.since).collect();
        let late: Vec<_> = young.iter().copied().rev().take(most).filter(|at| self.may_be_late(*at)).collect();
        let reason = match self.job.catch_up {
            _ if !self.site.may_run(self.job) => MissedReason::NoHost,
            _ if self.is_paused => MissedReason::Paused,
            CatchUp::None => MissedReason::NoCatchUp,
            CatchUp::Latest if young.is_empty() => MissedReason::TooOld,
            CatchUp::Latest => MissedReason::Superseded,
            CatchUp::All { .. } if young.len() > late.len() => MissedReason::TooMany,
            CatchUp::All { .. } => MissedReason::TooOld,
        };
        self.ranges.extend(range(&found, late.len(), RangeKind::Missed, reason));
        late.into_iter().rev().collect()
    }

    /// Whether a trigger may run late although there are newer ones: `latest` never runs an older one
    /// after a newer one, whatever has become of that.
    fn may_be_late(&self, at: DateTime<Utc>) -> bool {
        let has_newer = || {
            let mut rows = self.progress.with_row.iter().rev();
            // A clock that was ahead has left rows for a time to come.
            rows.find(|row| **row <= self.bounds.now).is_some_and(|newest| *newest > at)
        };
        self.site.may_run(self.job)
            && !self.is_paused
            && (matches!(self.job.catch_up, CatchUp::All { .. })
                || !has_newer() && until_next(self.job, at, self.bounds.now).is_none_or(|left| left > LEAST_WAIT))
    }

    fn plan(self, through: DateTime<Utc>, late: Vec<DateTime<Utc>>) -> CatchUpPlan {
        let Self { job, site, progress, bounds, ranges, .. } = self;
        let rows_since = progress.settled_through.min(through);
        let is_seen = |at: &&DateTime<Utc>| **at > rows_since && **at <= through;
        CatchUpPlan {
            job: job.name.clone(),
            target: progress.target.clone(),
            from: progress.caught_up_through,
            through,
            rows_seen: u64::try_from(progress.with_row.iter().filter(is_seen).count()).unwrap_or(u64::MAX),
            rows_since,
            ranges,
            only_newest: job.catch_up == CatchUp::Latest,
            late: (0_u32..).zip(late).map(|(place, at)| late_run(job, site, bounds.now, place, at)).collect(),
        }
    }
}

/// How long until the trigger after this one is due.
fn until_next(job: &Job, at: DateTime<Utc>, now: DateTime<Utc>) -> Option<TimeDelta> {
    job.schedule.next_after(at).map(|next| next + start_delay(job) - now)
}

/// The newest waits no longer than until the next trigger is due, which it must not follow. Of many, the
/// last waits as long as those before it may take.
fn late_run(job: &Job, site: &Site, now: DateTime<Utc>, place: u32, scheduled_at: DateTime<Utc>) -> LateRun {
    let (not_before, waits) = match job.catch_up {
        CatchUp::All { spacing, .. } => (spacing * place, job.start_deadline.max(job.catch_up_max_age)),
        CatchUp::Latest | CatchUp::None => {
            let left = until_next(job, scheduled_at, now).map(|left| left.to_std().unwrap_or_default());
            (Duration::ZERO, left.map_or(job.start_deadline, |left| left.min(job.start_deadline)))
        }
    };
    LateRun {
        run: RunId::generate(),
        scheduled_at,
        resource: site.resource(job),
        not_before: (!not_before.is_zero()).then_some(not_before),
        waits: waits + not_before,
        start_deadline: job.start_deadline,
        reruns_left: reruns(job),
    }
}

/// Gaps as they are recorded, all but the newest ones that are run late.
fn range(gaps: &Gaps, but_the_newest: usize, kind: RangeKind, reason: MissedReason) -> Option<TriggerRange> {
    let count = gaps.count.saturating_sub(u64::try_from(but_the_newest).unwrap_or(u64::MAX));
    let to = gaps.newest.len().checked_sub(but_the_newest + 1).and_then(|place| gaps.newest.get(place))?;
    (count > 0).then_some(TriggerRange { kind, from: gaps.first, to: *to, count, reason })
}

#[cfg(test)]
mod tests;

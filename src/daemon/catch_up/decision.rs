//! What to do about the triggers of a job that have no row: pure.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use super::gaps::{Gaps, gaps};
use super::reruns;
use crate::daemon::queue::{PASSED_OVER, start_delay};
use crate::daemon::site::Site;
use crate::job::{CatchUp, Job};
use crate::store::{CatchUpPlan, JobProgress, LateRun, Pause, RangeKind, TriggerRange};
use crate::trigger::{MissedReason, RunId};

/// How far back each trigger's row is looked up at least: a sweep that comes later than the job's
/// `catch_up_max_age` still counts right.
const LEAST_LOOK: TimeDelta = TimeDelta::minutes(15);

/// A watermark that lies further ahead than this was written by a clock that was wrong.
const AHEAD: TimeDelta = TimeDelta::minutes(1);

/// Which of a job's triggers a sweep is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// How far back the job catches up; what is older is missed.
    since: DateTime<Utc>,
    /// How far back rows are looked up.
    pub(super) rows_since: DateTime<Utc>,
    /// What is later may still be on its way through some host's claim.
    through: DateTime<Utc>,
    now: DateTime<Utc>,
}

impl Stretch {
    /// What is settled while other hosts may be claiming.
    pub(super) fn of(job: &Job, now: DateTime<Utc>) -> Self {
        Self::up_to(job, now, now - PASSED_OVER)
    }

    /// What is settled when nobody claims anything that was due by `until`.
    pub(super) fn up_to(job: &Job, now: DateTime<Utc>, until: DateTime<Utc>) -> Self {
        let max_age = TimeDelta::from_std(job.catch_up_max_age).unwrap_or(TimeDelta::MAX);
        let back = |by: TimeDelta| now.checked_sub_signed(by).unwrap_or(DateTime::UNIX_EPOCH);
        let through = (until - start_delay(job)).trunc_subsecs(0);
        Self { since: back(max_age), rows_since: back(max_age.max(LEAST_LOOK)), through, now }
    }
}

/// What to do about the triggers of a job that have no row: those in `(watermark, through]`.
/// `None`: there are none.
///
/// An older trigger never runs after a newer one, unless the job catches up on all. A host that may
/// not run the job settles only what is too old for any host.
pub(super) fn decide(job: &Job, site: &Site, progress: &JobProgress, stretch: Stretch) -> Option<CatchUpPlan> {
    let mut deciding = Deciding { job, site, progress, stretch, ranges: Vec::new(), is_paused: false };
    if progress.caught_up_through - stretch.now > AHEAD {
        return Some(deciding.plan(stretch.through, Vec::new()));
    }
    let mut settled = progress.settled_through;
    let mut through = if site.may_run(job) { stretch.through } else { stretch.through.min(stretch.since) };
    match &progress.pause {
        Some(Pause { from, until: Some(until) }) if *until <= stretch.now => {
            deciding.account_for_pause(settled, *from, (*until).min(through));
            settled = settled.max(*until);
        }
        // What a pause takes is accounted for when it is over, and nothing runs late in it.
        Some(pause) => {
            through = through.min(pause.from);
            deciding.is_paused = true;
        }
        None => {}
    }
    deciding.account_for_blackouts(settled, through);
    let late = deciding.decide_about_gaps(settled, through);
    let is_nothing = deciding.ranges.is_empty() && late.is_empty();
    (!is_nothing && through > progress.caught_up_through).then(|| deciding.plan(through, late))
}

/// A decision under way.
struct Deciding<'a> {
    job: &'a Job,
    site: &'a Site,
    progress: &'a JobProgress,
    stretch: Stretch,
    ranges: Vec<TriggerRange>,
    is_paused: bool,
}

impl Deciding<'_> {
    /// What came in a pause is paused; what was missing before it is not caught up after it.
    fn account_for_pause(&mut self, settled: DateTime<Utc>, from: DateTime<Utc>, until: DateTime<Utc>) {
        for (after, through, kind) in
            [(settled, from.min(until), RangeKind::Missed), (from.max(settled), until, RangeKind::Paused)]
        {
            let found = gaps(&self.job.schedule, self.without_rows(after), through, &self.progress.with_row, 1);
            self.ranges.extend(found.and_then(|gaps| range(&gaps, 0, kind, MissedReason::Paused)));
        }
    }

    fn account_for_blackouts(&mut self, settled: DateTime<Utc>, through: DateTime<Utc>) {
        let taken = self.job.schedule.passed(settled, through.max(settled)).blacked_out;
        let (kind, reason) = (RangeKind::Blackout, MissedReason::Blackout);
        let as_range = |span: crate::job::schedule::Span| TriggerRange {
            kind,
            from: span.first,
            to: span.last,
            count: span.count,
            reason,
        };
        self.ranges.extend(taken.map(as_range));
    }

    /// What is run late, oldest first; the others become one range.
    fn decide_about_gaps(&mut self, settled: DateTime<Utc>, through: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let most = match self.job.catch_up {
            CatchUp::None => 0,
            CatchUp::Latest => 1,
            CatchUp::All { max_runs, .. } => usize::try_from(max_runs).unwrap_or(usize::MAX),
        };
        let from = self.without_rows(settled);
        let Some(found) = gaps(&self.job.schedule, from, through, &self.progress.with_row, most.saturating_add(1))
        else {
            return Vec::new();
        };
        let young: Vec<_> = found.newest.iter().copied().filter(|at| *at > self.stretch.since).collect();
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

    /// From where on triggers without a row are looked for: the history before it is all there.
    fn without_rows(&self, settled: DateTime<Utc>) -> DateTime<Utc> {
        self.progress.newest_before.map_or(settled, |newest| newest.max(settled))
    }

    /// Whether a trigger may run late although there are newer ones: `latest` never runs an older one
    /// after a newer one, whatever has become of that.
    fn may_be_late(&self, at: DateTime<Utc>) -> bool {
        let now = self.stretch.now - start_delay(self.job);
        self.site.may_run(self.job)
            && !self.is_paused
            && (matches!(self.job.catch_up, CatchUp::All { .. })
                || self.progress.with_row.last().is_none_or(|newest| *newest < at)
                    && self.job.schedule.next_after(at).is_none_or(|next| next > now))
    }

    fn plan(self, through: DateTime<Utc>, late: Vec<DateTime<Utc>>) -> CatchUpPlan {
        let Self { job, site, progress, stretch, ranges, .. } = self;
        let rows_since = progress.caught_up_through.max(stretch.rows_since).min(through);
        let is_seen = |at: &&DateTime<Utc>| **at > rows_since && **at <= through;
        CatchUpPlan {
            job: job.name.clone(),
            target: progress.target.clone(),
            from: progress.caught_up_through,
            through,
            rows_seen: u64::try_from(progress.with_row.iter().filter(is_seen).count()).unwrap_or(u64::MAX),
            rows_since,
            ranges,
            late: (0_u32..).zip(late).map(|(place, at)| late_run(job, site, place, at)).collect(),
        }
    }
}

/// Late runs start one after the other; the last of many waits as long as those before it may take.
fn late_run(job: &Job, site: &Site, place: u32, scheduled_at: DateTime<Utc>) -> LateRun {
    let (not_before, waits) = match job.catch_up {
        CatchUp::All { spacing, .. } => (spacing * place, job.start_deadline.max(job.catch_up_max_age)),
        CatchUp::Latest | CatchUp::None => (Duration::ZERO, job.start_deadline),
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

//! A trigger whose instant has come: rank, look, claim, run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit};

use super::Shared;
use super::catch_up::reruns;
use super::pursuit::{Pursued, Pursuit};
use super::queue::{Due, PASSED_OVER};
use super::site::Peer;
use crate::events::{self, Contention, RunLabel, Takeover};
use crate::job::{Job, Overlap, RunOn};
use crate::lock::Owner;
use crate::run::{Assignment, Stop, Supervised};
use crate::store::{Became, Claim, Claimant, Claimed, Grant, Holder, WhenHeld};
use crate::trigger::{RunId, TriggerKind, claim_delay, rank};

/// How long a trigger that is early waits before it looks at the clock again, which may be set.
const EARLY_STEP: Duration = Duration::from_secs(1);

/// What a trigger may claim with.
enum Room {
    /// It may run here.
    Free(OwnedSemaphorePermit),
    /// It may not, but a run of its job is under way here that it replaces.
    ToReplace,
}

/// Attends all triggers that came due together: those that this host goes first with at once, the
/// others after the delay of their rank, and only if nobody has claimed them by then.
pub(super) fn attend(shared: &Arc<Shared>, due: Vec<Due>) {
    let live = shared.live();
    let mut ranks: BTreeMap<Duration, Vec<Due>> = BTreeMap::new();
    for due in due {
        shared.gates.of(&due.job.name).note(due.at);
        ranks.entry(shared.claim_delay(&due, &live)).or_default().push(due);
    }
    for (delay, group) in ranks {
        let shared = shared.clone();
        shared.tasks.clone().spawn(async move {
            let group = if delay.is_zero() { group } else { shared.still_unclaimed(group, delay).await };
            for due in group {
                let claiming = shared.clone();
                shared.tasks.spawn(async move { claiming.claim_and_run(due).await });
            }
        });
    }
}

impl Shared {
    /// How long this host leaves a trigger to those that go first, of all that may run the job.
    fn claim_delay(&self, due: &Due, live: &[Peer]) -> Duration {
        if due.job.placement.run_on == RunOn::Every {
            return Duration::ZERO;
        }
        let rivals: Vec<_> = live.iter().filter(|peer| peer.site.may_run(&due.job)).map(|peer| peer.instance).collect();
        let trigger = self.site.trigger(&due.job, due.at);
        claim_delay(rank(&trigger, self.instance, &rivals), rivals.len())
    }

    /// Waits out the delay of a rank and leaves what nobody has claimed by then.
    async fn still_unclaimed(&self, group: Vec<Due>, delay: Duration) -> Vec<Due> {
        tokio::time::sleep(delay).await;
        let triggers: Vec<_> = group.iter().map(|due| self.site.trigger(&due.job, due.at)).collect();
        match self.store.unclaimed(&triggers).await {
            Ok(unclaimed) => {
                self.health.answered();
                let left = |due: &Due| {
                    unclaimed.iter().any(|trigger| trigger.job == due.job.name && trigger.scheduled_at == due.at)
                };
                group.into_iter().filter(left).collect()
            }
            Err(error) => {
                // The claim itself finds out.
                self.health.failed(&error);
                group
            }
        }
    }

    /// Claims a trigger of the schedule and runs it, if the claim is granted. One that the database
    /// says is early is attended again from the start: it holds nobody off meanwhile.
    async fn claim_and_run(self: Arc<Self>, due: Due) {
        let mut pursuit = Pursuit::new(self.new_claim(&due));
        loop {
            let Some(turn) = self.turn(&due).await else {
                return self.unsettled.add([due.job.name.clone()]);
            };
            let Some(room) = self.find_room(&due).await else { return };
            let pursued = pursuit.pursue(&self, &due).await;
            drop(turn);
            let answer = match pursued {
                Pursued::Answered(Claimed::TooEarly { by }) => {
                    drop(room);
                    if self.until_due(&due, by).await {
                        continue;
                    }
                    return;
                }
                Pursued::Answered(answer) => answer,
                Pursued::GivenUp => return self.unsettled.add([due.job.name.clone()]),
            };
            if let Some((assignment, grant)) = self.heed(&due, pursuit.claim, answer) {
                match room {
                    Room::Free(permit) => self.run(Arc::new(assignment), grant, permit).await,
                    // The run that it was to replace has just ended by itself.
                    Room::ToReplace => self.runner.decline(&assignment, &grant).await,
                }
            }
            return;
        }
    }

    /// This job's turn to claim.
    async fn turn(&self, due: &Due) -> Option<OwnedMutexGuard<()>> {
        let patience = async {
            tokio::select! {
                () = tokio::time::sleep(PASSED_OVER.to_std().unwrap_or_default()) => {}
                () = self.health.wait_until_away() => {}
            }
        };
        self.gates.of(&due.job.name).turn(due.at, patience).await
    }

    /// Waits until a trigger that was `by` early is due, as far as this host knows by then; false if
    /// the daemon stops first.
    async fn until_due(&self, due: &Due, by: Duration) -> bool {
        let mut stop = self.stop.subscribe();
        let mut left = by;
        while !left.is_zero() {
            tokio::select! {
                biased;
                // The sender is our own, so the wait can't fail.
                _ = stop.wait_for(|stop| *stop != Stop::No) => return false,
                () = tokio::time::sleep(left.min(EARLY_STEP)) => {}
            }
            // Meanwhile a beat may have read the clock.
            left = (due.due_at() - self.clock.now()).to_std().unwrap_or_default();
        }
        true
    }

    /// Runs what was granted; the permit is held to its end.
    pub(super) async fn run(&self, assignment: Arc<Assignment>, grant: Grant, permit: OwnedSemaphorePermit) {
        say_granted(&assignment, &grant);
        let grace = assignment.job.timing.kill_grace();
        self.longest_grace.send_if_modified(|longest| {
            let grows = grace > *longest;
            *longest = grace.max(*longest);
            grows
        });
        let under_way = self.under_way.count(&assignment.job.name);
        let outcome = self.runner.supervise(&assignment, &grant).await;
        drop(under_way);
        drop(permit);
        // What was given back is not looked for at once: it would come straight back.
        if outcome == Supervised::Ended {
            self.look_for_waiting.notify_one();
        }
    }

    /// Room for a trigger. One that replaces a run here needs none to say so: it waits in the tables then, and
    /// has its turn once that run has gone.
    async fn find_room(&self, due: &Due) -> Option<Room> {
        if !matches!(due.job.overlap, Overlap::Replace(_)) {
            return self.permit(due).await.map(Room::Free);
        }
        tokio::select! {
            biased;
            permit = self.permit(due) => permit.map(Room::Free),
            () = self.under_way.any(&due.job.name) => Some(Room::ToReplace),
        }
    }

    /// Room for one more run, on a machine that can start it; `None` if there was none in time, or
    /// the daemon stops.
    async fn permit(&self, due: &Due) -> Option<OwnedSemaphorePermit> {
        let mut stop = self.stop.subscribe();
        let permit = async {
            self.runner.exhaustion.over().await;
            if self.room.available_permits() == 0 {
                self.crowd.is_full(self.options.max_running_jobs);
            }
            self.room.clone().acquire_owned().await
        };
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop != Stop::No) => None,
            permit = permit => permit.ok(),
            () = tokio::time::sleep(due.job.start_deadline) => {
                self.unsettled.add([due.job.name.clone()]);
                None
            }
        }
    }

    fn new_claim(&self, due: &Due) -> Claim {
        let when_held = match due.job.overlap {
            Overlap::Skip => WhenHeld::Skip,
            Overlap::Wait(wait) => WhenHeld::Wait(wait),
            Overlap::Replace(wait) => WhenHeld::Replace(wait),
        };
        Claim {
            run: RunId::generate(),
            trigger: self.site.trigger(&due.job, due.at),
            attempt: 1,
            kind: TriggerKind::Schedule,
            claimant: self.claimant(&due.job),
            when_held,
            start_deadline: due.job.start_deadline,
            reruns_left: reruns(&due.job),
        }
    }

    /// This host as the claimant of one run of a job.
    pub(super) fn claimant(&self, job: &Job) -> Claimant {
        Claimant {
            host: self.site.host.clone(),
            instance: self.instance,
            owner: Owner::generate(&self.site.host, self.instance),
            resource: self.site.resource(job),
            ttl: job.timing.ttl(),
            expected_now: self.clock.expected(),
        }
    }

    /// Says what the answer to a claim means, and gives what is to be run.
    fn heed(&self, due: &Due, claim: Claim, answer: Claimed) -> Option<(Assignment, Grant)> {
        let label = RunLabel {
            trigger: &claim.trigger,
            run: claim.run,
            attempt: claim.attempt,
            lock: &claim.claimant.resource,
            token: None,
        };
        match answer {
            Claimed::Granted(grant) => {
                let assignment = Assignment {
                    run: claim.run,
                    job: due.job.clone(),
                    trigger: claim.trigger,
                    attempt: claim.attempt,
                    kind: claim.kind,
                    owner: claim.claimant.owner,
                    resource: claim.claimant.resource,
                    retries: 0,
                    followers: self.plan().followers(&due.job, &self.site),
                };
                return Some((assignment, grant));
            }
            Claimed::AlreadyClaimed { run, host, .. } => {
                events::run_claimed_elsewhere(&claim.trigger, run, host.as_deref());
            }
            Claimed::Held { holder, became } => {
                say_held(label, holder.as_ref(), became);
                self.look_for_waiting.notify_one();
            }
            Claimed::Paused => tracing::debug!(job = due.job.name.as_str(), "the job is paused"),
            Claimed::Forgotten => tracing::debug!(job = due.job.name.as_str(), "the trigger lies before the history"),
            Claimed::Settled => tracing::debug!(job = due.job.name.as_str(), "catch-up has settled the trigger"),
            Claimed::TooLate => self.unsettled.add([due.job.name.clone()]),
            // Answered where it is waited for.
            Claimed::TooEarly { .. } => {}
        }
        None
    }
}

/// The lock is the run's: the normal case, or a take-over.
fn say_granted(assignment: &Assignment, grant: &Grant) {
    let label = RunLabel {
        trigger: &assignment.trigger,
        run: assignment.run,
        attempt: assignment.attempt,
        lock: &assignment.resource,
        token: Some(grant.token),
    };
    match &grant.taken_from {
        None => events::lock_acquired(label, grant.valid_until.remaining()),
        Some(from) => events::lock_taken_over(
            label,
            Takeover {
                holder: &from.owner,
                holder_token: from.token,
                held: (from.expired_at - from.acquired_at).max(TimeDelta::zero()).to_std().unwrap_or_default(),
            },
        ),
    }
}

/// The lock is somebody else's.
pub(super) fn say_held(label: RunLabel<'_>, holder: Option<&Holder>, became: Became) {
    let at = |until: DateTime<Utc>| until.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let outcome = match became {
        Became::Skipped(reason) => format!("it is skipped ({reason})"),
        Became::Waiting { until } => format!("it waits until {}", at(until)),
        Became::Replacing { until } => format!("it replaces that run, and waits for its end until {}", at(until)),
    };
    if let Some(holder) = holder {
        events::lock_contended(
            label,
            Contention {
                holder: &holder.owner,
                holder_run: holder.run,
                held_lock: &holder.resource,
                held: holder.held,
                remaining: holder.remaining,
                became: &outcome,
            },
        );
    }
    if let Became::Skipped(reason) = became {
        events::run_skipped(label, reason);
    }
}

//! A trigger whose instant has come: rank, look, claim, run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::catch_up::reruns;
use super::queue::{Due, PASSED_OVER};
use crate::clock::BootInstant;
use crate::events::{self, Contention, RunLabel, Takeover};
use crate::job::{Job, Overlap};
use crate::lock::Owner;
use crate::run::{Assignment, Stop};
use crate::store::{Became, Claim, Claimant, Claimed, Grant, Holder};
use crate::trigger::{RunId, Trigger, TriggerKind, claim_delay, rank};

/// The pauses between claims while the database is away.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Attends all triggers that came due together: those that this host goes first with at once, the
/// others after the delay of their rank, and only if nobody has claimed them by then.
pub(super) fn attend(shared: &Arc<Shared>, due: Vec<Due>) {
    let live = shared.live();
    let mut ranks: BTreeMap<usize, Vec<Due>> = BTreeMap::new();
    for due in due {
        let trigger = Trigger::scheduled(due.job.name.clone(), due.at);
        shared.gates.of(&due.job.name).note(due.at);
        ranks.entry(rank(&trigger, shared.instance, &live)).or_default().push(due);
    }
    for (rank, group) in ranks {
        let delay = claim_delay(rank, live.len());
        let shared = shared.clone();
        shared.tasks.clone().spawn(async move {
            let group = if rank == 0 { group } else { shared.still_unclaimed(group, delay).await };
            for due in group {
                let claiming = shared.clone();
                shared.tasks.spawn(async move { claiming.claim_and_run(due).await });
            }
        });
    }
}

impl Shared {
    /// Waits out the delay of a rank and leaves what nobody has claimed by then.
    async fn still_unclaimed(&self, group: Vec<Due>, delay: Duration) -> Vec<Due> {
        tokio::time::sleep(delay).await;
        let triggers: Vec<_> = group.iter().map(|due| Trigger::scheduled(due.job.name.clone(), due.at)).collect();
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

    /// Claims a trigger of the schedule and runs it, if the claim is granted.
    async fn claim_and_run(self: Arc<Self>, due: Due) {
        let gate = self.gates.of(&due.job.name);
        let patience = async {
            tokio::select! {
                () = tokio::time::sleep(PASSED_OVER.to_std().unwrap_or_default()) => {}
                () = self.health.wait_until_away() => {}
            }
        };
        let Some(turn) = gate.turn(due.at, patience).await else {
            return self.unsettled.add([due.job.name.clone()]);
        };
        let Some(permit) = self.permit(&due).await else { return };
        let granted = self.claim(&due).await;
        drop(turn);
        if let Some((assignment, grant)) = granted {
            self.run(Arc::new(assignment), grant, permit).await;
        }
    }

    /// Runs what was granted; the permit is held to its end.
    pub(super) async fn run(&self, assignment: Arc<Assignment>, grant: Grant, permit: OwnedSemaphorePermit) {
        say_granted(&assignment, &grant);
        self.runner.supervise(&assignment, &grant).await;
        drop(permit);
        self.look_for_waiting.notify_one();
    }

    /// Room for one more run; `None` if there was none in time, or the daemon stops.
    async fn permit(&self, due: &Due) -> Option<OwnedSemaphorePermit> {
        let mut stop = self.stop.subscribe();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop != Stop::No) => None,
            permit = self.room.clone().acquire_owned() => permit.ok(),
            () = tokio::time::sleep(due.job.start_deadline) => {
                self.unsettled.add([due.job.name.clone()]);
                None
            }
        }
    }

    /// Claims until there is an answer. Given up, so that catch-up decides, when `start_deadline`
    /// has passed or a later trigger of the job has come, unless an earlier try was granted.
    async fn claim(&self, due: &Due) -> Option<(Assignment, Grant)> {
        let mut claim = self.new_claim(due);
        let begun = BootInstant::now();
        let mut pause = FIRST_PAUSE;
        let mut maybe_granted = false;
        loop {
            if *self.stop.borrow() != Stop::No && !maybe_granted {
                return None;
            }
            claim.claimant.expected_now = self.clock.expected();
            let error = match self.store.claim(&claim).await {
                Ok(Claimed::TooEarly { by }) => {
                    tokio::time::sleep(by).await;
                    continue;
                }
                Ok(answer) => {
                    self.health.answered();
                    return self.heed(due, claim, answer);
                }
                Err(error) => error,
            };
            self.health.failed(&error);
            maybe_granted |= error.is_unknown();
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            let is_over = self.is_passed_over(due, begun) && (!maybe_granted || self.is_unclaimed(due).await);
            if is_over || *self.stop.borrow() >= Stop::Terminate {
                self.unsettled.add([due.job.name.clone()]);
                return None;
            }
        }
    }

    /// Whether a claim that brings no answer is not worth another try: while the database is away
    /// only the newest trigger of a job is tried again, so that its return brings no burst.
    fn is_passed_over(&self, due: &Due, begun: BootInstant) -> bool {
        let late = BootInstant::now().since(begun) > due.job.start_deadline;
        let old = !self.health.is_reachable() || self.clock.now() - due.at > PASSED_OVER;
        late || old && self.gates.of(&due.job.name).is_superseded(due.at)
    }

    /// Whether the database says that nobody, this host included, has been granted a trigger.
    async fn is_unclaimed(&self, due: &Due) -> bool {
        let trigger = Trigger::scheduled(due.job.name.clone(), due.at);
        match self.store.unclaimed(&[trigger]).await {
            Ok(unclaimed) => !unclaimed.is_empty(),
            Err(error) => {
                self.health.failed(&error);
                false
            }
        }
    }

    fn new_claim(&self, due: &Due) -> Claim {
        let wait = match due.job.overlap {
            Overlap::Skip => None,
            Overlap::Wait(wait) => Some(wait),
        };
        Claim {
            run: RunId::generate(),
            trigger: Trigger::scheduled(due.job.name.clone(), due.at),
            attempt: 1,
            kind: TriggerKind::Schedule,
            claimant: self.claimant(&due.job),
            wait,
            start_deadline: due.job.start_deadline,
            reruns_left: reruns(&due.job),
        }
    }

    /// This host as the claimant of one run of a job.
    pub(super) fn claimant(&self, job: &Job) -> Claimant {
        Claimant {
            host: self.host.clone(),
            instance: self.instance,
            owner: Owner::generate(&self.host, self.instance),
            resource: job.resource.clone(),
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
fn say_held(label: RunLabel<'_>, holder: Option<&Holder>, became: Became) {
    let outcome = match became {
        Became::Skipped(reason) => format!("it is skipped ({reason})"),
        Became::Waiting { until } => {
            format!("it waits until {}", until.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
        }
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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::site::{Peer, Site};
use super::{Plan, Shared};
use crate::clock::{BootInstant, Trust};
use crate::events;
use crate::fleet::{HostName, HostRow, InstanceId};
use crate::job::{Job, JobName};
use crate::run::Stop;
use crate::store::{Disagreement, HostBeat, StoreError};

/// From this difference between the host's clock and the database's on, somebody should know.
const SKEW_MS: i64 = 1_000;

/// How long what hosts disagree about is known, while no schedule changes.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// After how many beats of another daemon of the same name it is sure to live.
const SURE_AFTER: u32 = 3;

/// What was said already about the fleet, so that it is said once.
#[derive(Debug, Default)]
pub(super) struct Said {
    skewed: bool,
    namesakes: Namesakes,
    duplicates: usize,
    /// The schedules of the live daemons when it was last asked what they disagree about, and when.
    digests: BTreeMap<InstanceId, String>,
    asked_at: Option<BootInstant>,
    /// What hosts disagree about, by job.
    disagreements: BTreeMap<String, String>,
    /// Jobs that no live host may run, with what they ask for.
    stranded: BTreeMap<JobName, String>,
}

/// Other daemons of this host's name: when each was last seen, and how often that has moved. The row
/// of one that crashed stays for a while, but doesn't move.
#[derive(Debug, Default)]
struct Namesakes(BTreeMap<InstanceId, (DateTime<Utc>, u32)>);

impl Namesakes {
    /// How many of them surely live.
    fn alive(&mut self, own: InstanceId, name: &HostName, live: &[HostRow]) -> usize {
        let mut seen = BTreeMap::new();
        for host in live.iter().filter(|host| host.instance != own && host.name == *name) {
            let (before, moves) = self.0.get(&host.instance).copied().unwrap_or((host.seen_at, 0));
            seen.insert(host.instance, (host.seen_at, moves + u32::from(host.seen_at > before)));
        }
        self.0 = seen;
        self.0.values().filter(|(_, moves)| *moves > SURE_AFTER).count()
    }
}

/// Beats until it is dropped.
///
/// # Cancel safety
/// Safe.
pub(super) async fn beat_on(shared: &Shared, said: &mut Said) {
    loop {
        let pause = match beat(shared, said).await {
            Ok(_) => shared.options.heartbeat,
            Err(error) => {
                shared.health.failed(&error);
                (shared.options.heartbeat / 4).min(Duration::from_secs(2))
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// What a beat heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// The database's clock when it answered.
    pub(super) at: DateTime<Utc>,
    /// Whether no other daemon lives, draining ones included: their claims may be on their way.
    pub(super) alone: bool,
}

/// One beat: says that this daemon lives, hears who else does, and reads the database's clock.
pub(super) async fn beat(shared: &Shared, said: &mut Said) -> Result<Heard, StoreError> {
    let plan = shared.plan();
    // Read before the call: borrowed during it, the word could not be changed, and no signal obeyed.
    let draining = *shared.stop.borrow() != Stop::No;
    let fleet = shared
        .store
        .beat(&HostBeat {
            instance: shared.instance,
            name: shared.site.host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: shared.site.labels.iter().map(|label| label.as_str().to_owned()).collect(),
            // What the tables know, so that nobody looks for a difference before it is there.
            schedule_digest: shared.registered.borrow().digest.clone(),
            clock_offset_ms: shared.clock.offset().map(|offset| offset.num_milliseconds()),
            draining,
            stale_after: shared.options.heartbeat * 3,
        })
        .await?;
    shared.health.answered();
    let longest_ttl = plan.longest_ttl(shared.options.heartbeat);
    if let Trust::Stepped(off_ms) = shared.clock.sample(fleet.sample, longest_ttl) {
        events::clock_stepped(off_ms, longest_ttl);
    }
    said.about_clock(shared);
    said.about_namesakes(shared, &fleet.live);
    let heard = Heard { at: fleet.sample.at, alone: fleet.live.iter().all(|host| host.instance == shared.instance) };
    let digests = fleet.live.iter().map(|host| (host.instance, host.schedule_digest.clone())).collect();
    let live = fleet.live.into_iter().filter(|host| !host.draining).map(peer).collect();
    shared.live.send_replace(live);
    said.about_placement(shared, &plan);
    said.about_definitions(shared, digests).await;
    if shared.room.available_permits() > 0 {
        shared.crowd.has_room();
    }
    Ok(heard)
}

impl Said {
    fn about_clock(&mut self, shared: &Shared) {
        let Some(offset) = shared.clock.offset() else { return };
        let skewed = offset.num_milliseconds().abs() >= SKEW_MS;
        if skewed && !self.skewed {
            events::clock_skewed(offset.num_milliseconds());
        }
        self.skewed = skewed;
    }

    fn about_namesakes(&mut self, shared: &Shared, live: &[HostRow]) {
        let same_name = 1 + self.namesakes.alive(shared.instance, &shared.site.host, live);
        if same_name > 1 && same_name > self.duplicates {
            events::host_duplicated(shared.site.host.as_str(), same_name);
        }
        self.duplicates = same_name;
    }

    /// Names each job that hosts disagree about, once for each way in which they do.
    /// Asked for when some host's schedule has changed, and from time to time: it is for people only.
    async fn about_definitions(&mut self, shared: &Shared, digests: BTreeMap<InstanceId, String>) {
        let differ = digests.values().any(|digest| Some(digest) != digests.values().next());
        let is_known = self.asked_at.is_some_and(|at| BootInstant::now().since(at) < ASK_AGAIN);
        if differ && is_known && digests == self.digests {
            return;
        }
        let found = if differ { shared.store.disagreements().await } else { Ok(Vec::new()) };
        let found = match found {
            Ok(found) => found,
            Err(error) => return tracing::debug!("can't say which hosts disagree: {error}"),
        };
        self.asked_at = Some(BootInstant::now());
        self.digests = digests;
        let found: BTreeMap<String, String> =
            found.into_iter().map(|found| (found.job.clone(), in_words(&found))).collect();
        for (job, hosts) in &found {
            if self.disagreements.get(job) != Some(hosts) {
                events::schedule_disagreement(job, hosts);
            }
        }
        self.disagreements = found;
    }

    /// Names each job that no live host may run, once on each host, as what else concerns the fleet.
    fn about_placement(&mut self, shared: &Shared, plan: &Plan) {
        let live = shared.live();
        let is_stranded = |job: &&Arc<Job>| !live.iter().any(|peer| peer.site.may_run(job));
        let bound = plan.jobs().filter(|job| !job.placement.admits_all());
        let stranded: BTreeMap<_, _> =
            bound.filter(is_stranded).map(|job| (job.name.clone(), job.placement.to_string())).collect();
        let is_new = |(name, _): &(&JobName, &String)| !self.stranded.contains_key(*name);
        stranded.iter().filter(is_new).for_each(|(job, asks)| events::job_stranded(job, asks));
        let is_placed = |name: &&JobName| !stranded.contains_key(*name) && plan.get(name).is_some();
        self.stranded.keys().filter(is_placed).for_each(events::job_placed);
        self.stranded = stranded;
    }
}

fn peer(host: HostRow) -> Peer {
    Peer { instance: host.instance, site: Site { host: host.name, labels: host.labels } }
}

/// `web-1, web-2 (0a1b..); web-3 (2c3d..); not on web-4`
fn in_words(found: &Disagreement) -> String {
    let names = |hosts: &[HostName]| hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(", ");
    let versions = found.versions.iter().map(|(digest, hosts)| format!("{} ({digest})", names(hosts)));
    let missing = (!found.missing_on.is_empty()).then(|| format!("not on {}", names(&found.missing_on)));
    versions.chain(missing).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_predecessor_that_crashed_is_no_namesake_and_one_that_beats_is() {
        let name = HostName::new("a").expect("a name");
        let (own, other) = (InstanceId::generate(), InstanceId::generate());
        let started_at = Utc::now();
        let row = |instance, beats: i64| HostRow {
            instance,
            name: name.clone(),
            version: String::new(),
            schedule_digest: String::new(),
            labels: BTreeSet::new(),
            clock_offset_ms: None,
            draining: false,
            started_at,
            seen_at: started_at + TimeDelta::seconds(beats),
        };
        let mut namesakes = Namesakes::default();
        for beat in 0..9 {
            assert_eq!(namesakes.alive(own, &name, &[row(own, beat), row(other, 0)]), 0);
        }
        let found: Vec<_> = (1..=5).map(|beat| namesakes.alive(own, &name, &[row(own, 9), row(other, beat)])).collect();
        assert_eq!(found, [0, 0, 0, 1, 1]);
        assert_eq!(namesakes.alive(own, &name, &[row(own, 9)]), 0);
    }
}

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Shared;
use crate::clock::Trust;
use crate::events;
use crate::fleet::{HostName, HostRow, InstanceId};
use crate::run::Stop;
use crate::store::{HostBeat, StoreError};

/// From this difference between the host's clock and the database's on, somebody should know.
const SKEW_MS: i64 = 1_000;

/// After how many beats of another daemon of the same name it is sure to live.
const SURE_AFTER: u32 = 3;

/// What was said already about the fleet, so that it is said once.
#[derive(Debug, Default)]
pub(super) struct Said {
    skewed: bool,
    namesakes: Namesakes,
    duplicates: usize,
    disagreement: Option<String>,
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
            Ok(()) => shared.options.heartbeat,
            Err(error) => {
                shared.health.failed(&error);
                (shared.options.heartbeat / 4).min(Duration::from_secs(2))
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// One beat: says that this daemon lives, hears who else does, and reads the database's clock.
pub(super) async fn beat(shared: &Shared, said: &mut Said) -> Result<(), StoreError> {
    let plan = shared.plan();
    // Read before the call: borrowed during it, the word could not be changed, and no signal obeyed.
    let draining = *shared.stop.borrow() != Stop::No;
    let fleet = shared
        .store
        .beat(&HostBeat {
            instance: shared.instance,
            name: shared.host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: shared.options.labels.clone(),
            schedule_digest: plan.digest.clone(),
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
    said.about_fleet(shared, &fleet.live);
    let live = fleet.live.iter().filter(|host| !host.draining).map(|host| host.instance).collect();
    shared.live.send_replace(live);
    if shared.room.available_permits() > 0 {
        shared.crowd.has_room();
    }
    Ok(())
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

    fn about_fleet(&mut self, shared: &Shared, live: &[HostRow]) {
        let same_name = 1 + self.namesakes.alive(shared.instance, &shared.host, live);
        if same_name > 1 && same_name > self.duplicates {
            events::host_duplicated(shared.host.as_str(), same_name);
        }
        self.duplicates = same_name;
        let mut digests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for host in live {
            digests.entry(&host.schedule_digest).or_default().push(host.name.as_str());
        }
        let disagreement = (digests.len() > 1).then(|| {
            let groups: Vec<_> =
                digests.iter().map(|(digest, hosts)| format!("{} ({digest})", hosts.join(", "))).collect();
            groups.join("; ")
        });
        if disagreement.is_some() && disagreement != self.disagreement {
            events::schedule_disagreement(disagreement.as_deref().unwrap_or_default());
        }
        self.disagreement = disagreement;
    }
}

#[cfg(test)]
mod tests {
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
            labels: std::collections::BTreeSet::new(),
            schedule_digest: String::new(),
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

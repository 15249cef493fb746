//! What Raft promises, as far as its replicas show it: one leader in a term; on a replica that lives, terms, applied and
//! purged entries never go back; nothing is applied that is not in the log, or purged that is not applied. And that every
//! replica runs, unless its disk fails.

use std::collections::BTreeMap;

use petuum_sim::SimCluster;
use petuum_sim::cluster::{NodeView, ReplicaView};
use petuum_sim::history::What;
use petuum_types::GroupId;

/// See the module's text.
#[derive(Default)]
pub(super) struct Raft {
    /// Who led in a term.
    leaders: BTreeMap<(GroupId, u64), String>,
    /// By group, host and its start: what the replica showed last.
    shown: BTreeMap<(GroupId, String, u64), ReplicaView>,
}

impl Raft {
    pub(super) fn look(&mut self, cluster: &SimCluster, view: &NodeView) -> Result<(), String> {
        view.replicas.iter().try_for_each(|replica| self.replica(cluster, view, replica))
    }

    fn replica(&mut self, cluster: &SimCluster, view: &NodeView, now: &ReplicaView) -> Result<(), String> {
        let (group, host) = (now.group, &view.host);
        if let Some(failure) = &now.failure {
            if cluster.may_fail(host) {
                // Its disk gives it errors; it will be built again.
                return Ok(());
            }
            return Err(format!("{group} on {host} does not run: {failure}"));
        }
        if now.leads {
            let leader = self.leaders.entry((group, now.term)).or_insert_with(|| {
                cluster.note(host, What::Leads { group: group.0, term: now.term });
                host.clone()
            });
            if leader != host {
                return Err(format!("{group} has two leaders in term {}: {leader} and {host}", now.term));
            }
        }
        if now.last.is_some_and(|last| now.applied > Some(last)) || now.purged > now.applied {
            return Err(format!("{group} on {host} has applied or purged what it does not hold: {now:?}"));
        }
        let before = self.shown.insert((group, host.clone(), view.starts), now.clone());
        match before {
            Some(before) if now.term < before.term || now.applied < before.applied || now.purged < before.purged => {
                Err(format!("{group} on {host} went back from {before:?} to {now:?}"))
            }
            _ => Ok(()),
        }
    }

    /// A replica begins anew.
    pub(super) fn forget(&mut self, host: &str, group: GroupId) {
        self.shown.retain(|(of, on, _), _| (*of, on.as_str()) != (group, host));
    }

    /// Terms in which somebody led.
    pub(super) fn terms(&self) -> u64 {
        self.leaders.len() as u64
    }
}

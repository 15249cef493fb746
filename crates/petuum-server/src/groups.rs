//! The replicas a node holds.

use crate::NodeSettings;
use crate::ending::Ending;
use crate::gather::Gatherer;
use crate::identity::Identity;
use crate::machine::{ControlCell, ControlMachine, ShardCell, ShardMachine};
use crate::watermark::Watermark;
use petuum_consensus::{Consensus, Group, MachineFactory};
use petuum_control::control_members;
use petuum_types::map::ShardMap;
use petuum_types::{Error, ErrorKind, GroupId, NodeId, ShardId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The groups a node is a member of, with all their members and addresses; the control group first.
#[must_use]
pub fn groups_of(map: &ShardMap, node: NodeId) -> BTreeMap<GroupId, BTreeMap<NodeId, String>> {
    let address = |n: &NodeId| (*n, map.nodes.get(n).cloned().unwrap_or_default());
    let control = (GroupId::CONTROL, control_members(&map.nodes));
    let shards = map.shards.iter().map(|(shard, place)| (GroupId::of_shard(*shard), place.replicas.clone()));
    std::iter::once(control)
        .chain(shards)
        .filter(|(_, members)| members.contains(&node))
        .map(|(group, members)| (group, members.iter().map(address).collect()))
        .collect()
}

/// Who should lead a group: the first of its members.
#[must_use]
pub fn preferred_leader(map: &ShardMap, group: GroupId) -> Option<NodeId> {
    match group.shard() {
        None => control_members(&map.nodes).first().copied(),
        Some(shard) => map.shards.get(&shard)?.replicas.first().copied(),
    }
}

/// A replica of a shard on this node.
#[derive(Clone)]
pub struct ShardReplica {
    /// Its state.
    pub cell: Arc<ShardCell>,
    /// Its Raft group.
    pub group: Group,
    /// The entrance to its log.
    pub(crate) gatherer: Gatherer,
}

/// A replica of the control group on this node.
#[derive(Clone)]
pub struct ControlReplica {
    /// Its state.
    pub cell: Arc<ControlCell>,
    /// Its Raft group.
    pub group: Group,
}

/// What a node runs once it belongs to a cluster.
pub struct Running {
    /// Who the node is.
    pub identity: Identity,
    /// Raft.
    pub consensus: Consensus,
    /// The control group, if this node is a member.
    pub control: Option<ControlReplica>,
    /// The shards it has a replica of.
    pub shards: BTreeMap<ShardId, ShardReplica>,
}

/// What groups need of the node they run on.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) settings: &'a NodeSettings,
    pub(crate) watermark: &'a Watermark,
    pub(crate) ending: &'a Ending,
    /// Set once the node is to end: no further group is started.
    pub(crate) stopping: &'a AtomicBool,
}

impl Running {
    /// Starts every group, and forms those this node should lead and that were never formed.
    ///
    /// # Errors
    /// If a group cannot be recovered from the store; [`ErrorKind::Unavailable`] if the node is stopped meanwhile.
    pub(crate) async fn start(around: Around<'_>, identity: Identity, consensus: Consensus) -> Result<Self, Error> {
        let mut running = Self { identity, consensus, control: None, shards: BTreeMap::new() };
        for (id, members) in groups_of(&running.identity.map, running.identity.node) {
            if around.stopping.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::Unavailable, "this node is stopping"));
            }
            match id.shard() {
                None => running.control = Some(start_control(&running.consensus, members).await?),
                Some(shard) => {
                    let replica = start_shard(around, &running.consensus, shard, members).await?;
                    running.shards.insert(shard, replica);
                }
            }
        }
        for (id, group) in running.groups() {
            if preferred_leader(&running.identity.map, id) == Some(running.identity.node) {
                group.initialize().await?;
            } else {
                tokio::spawn(form_later(group.clone(), Duration::from_millis(4 * around.settings.election_max_ms)));
            }
        }
        Ok(running)
    }

    /// Every group of this node.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        let control = self.control.iter().map(|c| (GroupId::CONTROL, &c.group));
        control.chain(self.shards.iter().map(|(shard, r)| (GroupId::of_shard(*shard), &r.group)))
    }

    /// Hands every leadership to another member, for at most `within`; then peers go on without an election timeout.
    pub(crate) async fn hand_over(&self, within: Duration) {
        let handing = self.groups().filter(|(_, group)| group.status().is_leader()).map(|(id, group)| async move {
            let members = groups_of(&self.identity.map, self.identity.node).remove(&id).unwrap_or_default();
            for to in members.into_keys().filter(|n| *n != self.identity.node) {
                match group.transfer_leader(to).await {
                    Ok(()) => return,
                    Err(error) => tracing::info!(group = %id, %to, %error, "a leadership was not handed over"),
                }
            }
        });
        if tokio::time::timeout(within, futures::future::join_all(handing)).await.is_err() {
            tracing::info!("not every leadership could be handed over in time; the others will elect");
        }
    }
}

/// Forms a group whose preferred leader has not: it may have died before anybody else knew the members. Every member
/// forms with the same ones, so that it does no harm if the group is formed.
async fn form_later(group: Group, after: Duration) {
    tokio::time::sleep(after).await;
    if let Err(error) = group.initialize().await {
        tracing::warn!(group = %group.id(), %error, "a group could not be formed");
    }
}

async fn start_control(consensus: &Consensus, members: BTreeMap<NodeId, String>) -> Result<ControlReplica, Error> {
    let cell = ControlCell::new();
    let machine = cell.clone();
    let factory: MachineFactory = Arc::new(move || Box::new(ControlMachine::fresh(machine.clone())));
    let group = consensus.start_group(GroupId::CONTROL, members, factory).await?;
    Ok(ControlReplica { cell, group })
}

async fn start_shard(
    around: Around<'_>,
    consensus: &Consensus,
    shard: ShardId,
    members: BTreeMap<NodeId, String>,
) -> Result<ShardReplica, Error> {
    let staged_bytes_max = around.settings.staged_bytes_max;
    let shard_settings = petuum_shard::Settings { staged_bytes_max, ..petuum_shard::Settings::default() };
    let cell = ShardCell::new(shard, shard_settings);
    let machine = cell.clone();
    let factory: MachineFactory = Arc::new(move || Box::new(ShardMachine::fresh(machine.clone())));
    let group = consensus.start_group(GroupId::of_shard(shard), members, factory).await?;
    let watermark = around.watermark.clone();
    let gatherer = Gatherer::start(cell.clone(), group.clone(), watermark, around.settings, around.ending);
    Ok(ShardReplica { cell, group, gatherer })
}

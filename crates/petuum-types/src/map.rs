//! The shard map: slot → shard → nodes.

use crate::slot::SLOTS;
use crate::{MapEpoch, NodeId, RowId, ShardId, Slot, TableId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Who holds which slot. Its epoch is checked on every message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShardMap {
    /// Grows with every change of the map.
    pub epoch: MapEpoch,
    /// Every node and the address (`host:port`) that peers and clients reach it at.
    pub nodes: BTreeMap<NodeId, String>,
    /// Every shard, in order of its number.
    pub shards: BTreeMap<ShardId, ShardPlace>,
}

/// One shard's place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShardPlace {
    /// The slots the shard holds: `first..end`.
    pub slots: Range<u16>,
    /// The nodes with a replica; the first is the one that should lead.
    pub replicas: Vec<NodeId>,
}

impl ShardMap {
    /// Deals `SLOTS` slots to `shards` shards in even ranges and each shard's `replication` replicas to nodes in turn,
    /// so that preferred leaders are spread. `None` unless `1 <= shards <= SLOTS` and
    /// `1 <= replication <= nodes.len()`.
    #[must_use]
    pub fn spread(nodes: BTreeMap<NodeId, String>, shards: u32, replication: usize) -> Option<Self> {
        if shards == 0 || shards > u32::from(SLOTS) || replication == 0 || replication > nodes.len() {
            return None;
        }
        let ids: Vec<NodeId> = nodes.keys().copied().collect();
        let bound = |shard: u32| u16::try_from(u64::from(SLOTS) * u64::from(shard) / u64::from(shards)).ok();
        let mut places = BTreeMap::new();
        for shard in 0..shards {
            let first = shard as usize % ids.len();
            let replicas = (0..replication).map(|i| ids[(first + i) % ids.len()]).collect();
            places.insert(ShardId(shard), ShardPlace { slots: bound(shard)?..bound(shard + 1)?, replicas });
        }
        Some(Self { epoch: MapEpoch(1), nodes, shards: places })
    }

    /// The shard of a slot.
    ///
    /// # Panics
    /// If the map leaves a slot without a shard, which [`ShardMap::validate`] excludes.
    #[must_use]
    pub fn shard_of_slot(&self, slot: Slot) -> ShardId {
        self.shards
            .iter()
            .find(|(_, place)| place.slots.contains(&slot.0))
            .map(|(id, _)| *id)
            .expect("every slot has a shard")
    }

    /// The shard of a row.
    ///
    /// # Panics
    /// As [`ShardMap::shard_of_slot`].
    #[must_use]
    pub fn shard_of(&self, table: TableId, row: RowId) -> ShardId {
        self.shard_of_slot(Slot::of(table, row))
    }

    /// Checks that every slot has exactly one shard and every replica a known node; a map from the network or a disk
    /// is used only after this.
    ///
    /// # Errors
    /// A sentence that names the slot or node.
    pub fn validate(&self) -> Result<(), String> {
        let mut owners = vec![0u8; usize::from(SLOTS)];
        for (shard, place) in &self.shards {
            if place.slots.end > SLOTS || place.slots.start >= place.slots.end {
                return Err(format!("{shard} has the slots {:?}; expected a range within 0..{SLOTS}", place.slots));
            }
            for slot in place.slots.clone() {
                owners[usize::from(slot)] = owners[usize::from(slot)].saturating_add(1);
            }
            if place.replicas.is_empty() {
                return Err(format!("{shard} has no replica"));
            }
            if let Some(unknown) = place.replicas.iter().find(|node| !self.nodes.contains_key(node)) {
                return Err(format!("{shard} has a replica on {unknown}, which the map does not list"));
            }
        }
        match owners.iter().position(|&n| n != 1) {
            None => Ok(()),
            Some(slot) => Err(format!("slot {slot} has {} shards; expected 1", owners[slot])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(n: u64) -> BTreeMap<NodeId, String> {
        (1..=n).map(|i| (NodeId(i), format!("127.0.0.1:{i}"))).collect()
    }

    /// Part of every node's identity on its disk.
    #[test]
    fn golden_bytes() {
        let map = ShardMap::spread(nodes(2), 2, 1).unwrap();
        let bytes = crate::codec::encode(&map);
        assert_eq!(
            bytes.iter().map(|b| format!("{b:02x}")).collect::<String>(),
            "010102010b3132372e302e302e313a31020b3132372e302e302e313a32020000fb0008010101fb0008fb00100102"
        );
        assert_eq!(crate::codec::decode::<ShardMap>(&bytes).unwrap(), map);
    }

    #[test]
    fn spread_covers_every_slot_and_spreads_leaders() {
        let map = ShardMap::spread(nodes(3), 8, 3).unwrap();
        map.validate().unwrap();
        let leads = |n| map.shards.values().filter(|p| p.replicas[0] == NodeId(n)).count();
        assert_eq!((leads(1), leads(2), leads(3)), (3, 3, 2));
        assert!(map.shards.values().all(|p| p.replicas.len() == 3));
    }

    #[test]
    fn impossible_spreads_are_refused() {
        assert_eq!(ShardMap::spread(nodes(2), 8, 3), None);
        assert_eq!(ShardMap::spread(nodes(3), 0, 3), None);
        assert_eq!(ShardMap::spread(nodes(3), 4097, 3), None);
        assert_eq!(ShardMap::spread(nodes(3), 8, 0), None);
    }

    #[test]
    fn a_map_with_a_hole_or_an_unknown_node_is_refused() {
        let mut map = ShardMap::spread(nodes(3), 8, 3).unwrap();
        map.shards.get_mut(&ShardId(2)).unwrap().slots.end -= 1;
        assert!(map.validate().unwrap_err().contains("0 shards"));
        let mut map = ShardMap::spread(nodes(3), 8, 3).unwrap();
        map.nodes.remove(&NodeId(2));
        assert!(map.validate().unwrap_err().contains("node 2"));
    }
}

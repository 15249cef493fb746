//! Newtypes for everything that could be swapped by accident.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(/** One server process with one data directory; never reused. */ NodeId(u64), "node ");
id!(/** A set of slots, replicated as one Raft group. */ ShardId(u32), "shard ");
id!(/** One training run. */ JobId(u64), "job ");
id!(/** Grows with each restore or rollback of a job and fences everything older. */ Generation(u64), "generation ");
id!(/** A worker's place in its job, `0..workers`. */ WorkerId(u32), "worker ");
id!(/** The number the control group gives at each registration or removal; higher fences lower. */ Incarnation(u64), "incarnation ");
id!(/** A worker's messages to one shard, gapless from 0 under one incarnation. */ Sequence(u64), "sequence ");
id!(/** The version of the shard map. */ MapEpoch(u64), "map epoch ");
id!(/** A table; never reused within a cluster. */ TableId(u32), "table ");
id!(/** A row of a table. */ RowId(u64), "row ");
id!(/** A position in one group's Raft log. */ LogIndex(u64), "index ");

/// A cluster's name for ever: 128 random bits drawn at `init`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(pub u128);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Names one admin or register call for ever: the same id gets the same answer (P17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u128);

/// One Raft group of a cluster: the control group or a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The control group.
    pub const CONTROL: Self = Self(0);

    /// The group that replicates a shard. Shards are numbered from 0, groups from 1.
    ///
    /// # Panics
    /// On shard `u32::MAX`, which no map can hold.
    #[must_use]
    pub const fn of_shard(shard: ShardId) -> Self {
        Self(shard.0 + 1)
    }

    /// The shard this group replicates, or `None` for the control group.
    #[must_use]
    pub const fn shard(self) -> Option<ShardId> {
        match self.0 {
            0 => None,
            n => Some(ShardId(n - 1)),
        }
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shard() {
            None => f.write_str("control group"),
            Some(shard) => write!(f, "{shard}"),
        }
    }
}

id!(
    /**
    How many iterations a worker has finished, from 0.

    While a worker computes its iteration number `c` (the first is 0) its clock is `c`, and its updates carry
    timestamp `c`.
    */
    Clock(u64),
    "clock "
);

impl Clock {
    /// The clock before any iteration.
    pub const ZERO: Self = Self(0);

    /// The next clock.
    ///
    /// # Panics
    /// After 2^64 iterations.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("a clock fits 64 bits"))
    }

    /// The min clock that a read at this clock needs under `staleness`: every update with timestamp
    /// `<= c - s - 1` is contained once the min clock is `>= c - s` (Ho et al. 2013, section 3). Saturates at 0.
    #[must_use]
    pub fn needs(self, staleness: Staleness) -> Self {
        Self(self.0.saturating_sub(u64::from(staleness.0)))
    }
}

/// A table's bound on how many clocks a read may lag behind its reader. 0 is BSP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Staleness(pub u32);

impl fmt::Display for Staleness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "staleness {}", self.0)
    }
}

impl Sequence {
    /// The next sequence.
    ///
    /// # Panics
    /// After 2^64 messages.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("a sequence fits 64 bits"))
    }
}

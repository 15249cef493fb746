//! The kinds of faults, with where each is made and what of the real thing it is not.

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The process that leads a group is killed.
    KillLeader,
    /// A node is asked to stop: it hands its leaderships over.
    StopNode,
    /// A leader is told to hand its group over to another node.
    MoveLeader,
    /// A node is told to campaign although its group has a leader.
    ForceElection,
    /// Every node loses its power at the same instant.
    PowerLoss,
    /// One node or several lose their power at the same instant.
    PowerLossOfSome,
    /// A node or worker loses its power at a failpoint, in the midst of a step.
    Failpoint,
    /// A worker is killed, whatever it is doing.
    KillWorker,
    /// A worker cannot reach the leader of one shard, or any of its replicas.
    CutWorker,
    /// A node is cut off from all other nodes.
    Isolate,
    /// What a node sends to the others is lost, what they send arrives.
    CutOneWay,
    /// Each node reaches two neighbours only.
    Ring,
    /// Two halves that only one node reaches both of.
    Bridge,
    /// Links of a node are cut one after the other and mended in another order.
    Swizzle,
    /// Messages are lost at random.
    LossyNetwork,
    /// Messages between some hosts take up to half a second.
    SlowNetwork,
    /// A disk takes long to make its log durable.
    SlowDisk,
    /// A disk makes nothing durable for seconds.
    StuckDisk,
    /// A write fails.
    WriteError,
    /// A sync fails.
    SyncError,
    /// There is no space left.
    DiskFull,
    /// A read fails.
    ReadError,
    /// A read gives half of what is there.
    ShortRead,
    /// A read gives a wrong bit.
    FlippedBit,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 24] = [
        Self::KillLeader,
        Self::StopNode,
        Self::MoveLeader,
        Self::ForceElection,
        Self::PowerLoss,
        Self::PowerLossOfSome,
        Self::Failpoint,
        Self::KillWorker,
        Self::CutWorker,
        Self::Isolate,
        Self::CutOneWay,
        Self::Ring,
        Self::Bridge,
        Self::Swizzle,
        Self::LossyNetwork,
        Self::SlowNetwork,
        Self::SlowDisk,
        Self::StuckDisk,
        Self::WriteError,
        Self::SyncError,
        Self::DiskFull,
        Self::ReadError,
        Self::ShortRead,
        Self::FlippedBit,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// Where it is made.
    #[must_use]
    pub const fn made(self) -> &'static str {
        self.facts().1
    }

    /// What of the real thing it is not.
    #[must_use]
    pub const fn approximation(self) -> &'static str {
        self.facts().2
    }

    /// How many nodes it needs.
    #[must_use]
    pub const fn nodes(self) -> u32 {
        match self {
            Self::MoveLeader | Self::Isolate | Self::CutOneWay | Self::Swizzle => 2,
            Self::Bridge => 3,
            Self::Ring => 4,
            _ => 1,
        }
    }

    const fn facts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::KillLeader => ("leader-killed", "process", "the kill comes between two steps of 1 ms"),
            Self::StopNode => ("node-stopped", "process", "none: the code that SIGTERM runs"),
            Self::MoveLeader => ("leader-moved", "an order", "none: the code that SIGTERM runs"),
            Self::ForceElection => ("election-forced", "an order", "none known"),
            Self::PowerLoss => ("power-lost-everywhere", "disk, network, process", "none known"),
            Self::PowerLossOfSome => ("power-lost-of-some", "disk, network, process", "none known"),
            Self::Failpoint => {
                ("power-lost-at-failpoint", "the product's code", "the code runs on for up to 1 ms, unheard")
            }
            Self::KillWorker => ("worker-killed", "process", "the kill comes between two steps of 1 ms"),
            Self::CutWorker => ("worker-cut-off", "network", "none known"),
            Self::Isolate => ("node-isolated", "network", "none known"),
            Self::CutOneWay => ("node-mute", "network", "none known"),
            Self::Ring => ("ring", "network", "none known"),
            Self::Bridge => ("bridge", "network", "none known"),
            Self::Swizzle => ("swizzle", "network", "none known"),
            Self::LossyNetwork => {
                ("messages-lost", "network", "a lost segment stops its connection: turmoil sends none again")
            }
            Self::SlowNetwork => ("messages-late", "network", "links keep the order of a connection's segments"),
            Self::SlowDisk => ("disk-slow", "the syncer", "writes are slow only where they are made durable"),
            Self::StuckDisk => ("disk-stuck", "the syncer", "as disk-slow"),
            Self::WriteError => ("disk-write-error", "disk", "one operation; the file is whole up to it"),
            Self::SyncError => ("disk-sync-error", "disk", "none known"),
            Self::DiskFull => ("disk-full", "disk", "full for all files at once"),
            Self::ReadError => ("disk-read-error", "disk", "one operation; what is cached in memory is not read"),
            Self::ShortRead => ("disk-read-short", "disk", "of tables only: a log that reads so can cost the node"),
            Self::FlippedBit => ("disk-bit-flipped", "disk", "as disk-read-short; the file itself is whole"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn kinds_are_listed_once_and_have_names_of_their_own() {
        let mut names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(Kind::ALL.is_sorted(), "in the order of their declaration, so that none is left out unseen");
        assert_eq!(*Kind::ALL.last().unwrap() as usize + 1, Kind::ALL.len());
    }
}

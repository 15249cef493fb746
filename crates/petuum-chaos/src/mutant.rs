//! The defects that can be planted. Each stands at the line that keeps the rule it breaks; find the line by its name.

use crate::catalogue::catalogue;

/// The guarantee that a mutant breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// Durable.
    G1,
    /// Once.
    G2,
    /// Clocks.
    G3,
    /// Staleness.
    G4,
    /// Own writes, monotone reads.
    G5,
    /// One state.
    G6,
    /// Fencing.
    G7,
    /// Progress.
    G8,
}

use Guarantee::{G1, G2, G3, G4, G5, G6, G7, G8};

catalogue! {
    /// A defect that can be planted: the guarantee it breaks, and how.
    Mutant(guarantee: Guarantee, defect: &'static str) {
        AckBeforeFsync = "ack-before-fsync", G1, "Writes are acknowledged before they are durable.";
        VoteNotPersisted = "vote-not-persisted", G1, "A vote is forgotten with the process.";
        PurgeBeforeSnapshot = "purge-before-snapshot", G1, "The log is purged before the snapshot is written.";
        StagedPartsNotInSnapshot = "staged-parts-not-in-snapshot", G1, "Snapshots leave out staged parts.";
        SequenceGapAccepted = "sequence-gap-accepted", G2, "A message whose predecessor is missing is taken.";
        DedupByLeaderOnly = "dedup-by-leader-only", G2, "Repeats are found before logging only, not in apply.";
        DedupNotInSnapshot = "dedup-not-in-snapshot", G2, "Snapshots leave out the next sequence.";
        RefusalForgottenByNext = "refusal-forgotten-by-next", G2, "A refusal is remembered only until the worker's next message.";
        BatchTakesOpenBuffers = "batch-takes-open-buffers", G2, "A finished clock takes along what faster threads have added since.";
        VisibleBeforeTick = "visible-before-tick", G2, "A part changes rows when it is staged.";
        TickBeforeLastAck = "tick-before-last-ack", G3, "A tick goes out with one part unacknowledged.";
        TakeoverTakesLeast = "takeover-takes-least", G3, "C is the least of the shards' answers.";
        SettleTicksNothing = "settle-ticks-nothing", G3, "A settle advances the clock without the staged parts.";
        MinClockOfGreatest = "min-clock-of-greatest", G3, "The min clock is the greatest clock of the workers.";
        MinClockResetOnJoin = "min-clock-reset-on-join", G3, "A joiner sets the min clock back to the job's beginning.";
        FollowerAnswersEarly = "follower-answers-early", G4, "A replica answers below the min clock asked for, and says it had it.";
        LatestUnconfirmed = "latest-unconfirmed", G4, "A latest read is answered without asking whether the replica still leads.";
        LatestTrustsLease = "latest-trusts-lease", G4, "A latest read is answered under the leader's lease, without asking a majority.";
        FlushBelievesFirstTick = "flush-believes-first-tick", G4, "A flush waits for the first shard's tick, not for every shard's.";
        CacheNeverStale = "cache-never-stale", G4, "The cache answers whatever the min clock of its row.";
        JoinNotCountedAtFence = "join-not-counted-at-fence", G4, "A joiner counts only from its settle on.";
        NeedsOneClockLess = "needs-one-clock-less", G4, "Reads ask for one clock less than staleness allows.";
        OwnWritesDroppedAtClock = "own-writes-dropped-at-clock", G5, "Own updates are forgotten when their clock ends.";
        OlderRowReplacesNewer = "older-row-replaces-newer", G5, "A late answer replaces a newer row in the cache.";
        EvictedRowLeavesNoFloor = "evicted-row-leaves-no-floor", G5, "A row let go raises no index floor.";
        ReadCreatesRow = "read-creates-row", G6, "A read of an untouched row creates it on that replica.";
        SnapshotKeepsOldRows = "snapshot-keeps-old-rows", G6, "Installing a snapshot keeps rows that were there.";
        SnapshotForgetsMarks = "snapshot-forgets-marks", G6, "Installing a snapshot leaves out a part of the state.";
        IncarnationNotChecked = "incarnation-not-checked", G7, "A replaced process may go on speaking.";
        StaleEvictHonoured = "stale-evict-honoured", G7, "An eviction of a predecessor hits its successor.";
        RepeatedFenceResets = "repeated-fence-resets", G7, "A repeated fence sets the sequences back again.";
        LowerFenceTaken = "lower-fence-taken", G7, "A fence of a lower incarnation is taken.";
        LeaseKeptOverFailover = "lease-kept-over-failover", G8, "A new control leader counts old silence.";
        ReadNotWokenBySnapshot = "read-not-woken-by-snapshot", G8, "A snapshot wakes no parked read.";
        ReadNotWokenByCommand = "read-not-woken-by-command", G8, "An eviction wakes no parked read.";
    }
}

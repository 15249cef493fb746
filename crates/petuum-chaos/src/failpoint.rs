//! The points at which a simulation may take a machine's power: one on each side of every step that is durable or that
//! others see.

use crate::catalogue::catalogue;

catalogue! {
    /// A point in a step: which rules rest on the step, and where the point is.
    Failpoint(rules: &'static str, place: &'static str) {
        // Starting and forming.
        BootBeforeCount = "boot.before-count", "P21", "A node has opened its store and not counted its boot.";
        BootAfterCount = "boot.after-count", "P21", "The boot number is durable, nobody was told.";
        HelloBeforeGroups = "hello.before-groups", "P21", "A majority took the boot; no group runs yet.";
        ClaimBeforeWrite = "claim.before-write", "P21", "A node is asked to take part and has written nothing.";
        ClaimAfterWrite = "claim.after-write", "P21", "Its identity is durable and not answered.";
        // Storage and consensus.
        AppendBeforeWrite = "append.before-write", "P8", "Entries came and are not written.";
        AppendAfterWrite = "append.after-write", "P8", "Entries are written and not durable.";
        SyncBefore = "sync.before", "P8", "The queue is drained, the sync not begun.";
        SyncAfter = "sync.after", "P8", "The sync is done, nobody was called back.";
        SyncAcked = "sync.acked", "P8", "Everybody was called back.";
        VoteBefore = "vote.before", "P8", "A vote was decided and is not written.";
        VoteAfter = "vote.after", "P8", "The vote is durable and not sent.";
        TruncateBefore = "truncate.before", "P8", "A conflicting tail was found and is still there.";
        TruncateAfter = "truncate.after", "P8", "The tail is gone, nothing follows yet.";
        PurgeBefore = "purge.before", "P19", "A snapshot covers entries that are still there.";
        PurgeAfter = "purge.after", "P19", "The entries are purged.";
        SnapshotBuildBegun = "snapshot.build-begun", "P19", "A view was taken, nothing is written.";
        SnapshotPiece = "snapshot.piece", "P19", "A piece of a snapshot is written.";
        SnapshotBeforePublish = "snapshot.before-publish", "P19", "All pieces are written; the old one still counts.";
        SnapshotAfterPublish = "snapshot.after-publish", "P19", "The snapshot is durable; the log is not purged.";
        InstallBefore = "install.before", "P19", "A received snapshot is durable and not installed.";
        InstallAfter = "install.after", "P19", "The machine has the snapshot's state.";
        // A shard's machine.
        StageBeforeApply = "stage.before-apply", "P2", "A stage is committed and not applied.";
        StageAfterApply = "stage.after-apply", "P2", "A part is held, its answer not sent.";
        TickBeforeApply = "tick.before-apply", "P3", "A tick is committed and not applied.";
        TickAfterApply = "tick.after-apply", "P3", "The rows are changed, the answer not sent.";
        AbortAfterApply = "abort.after-apply", "P4", "A clock is given up, the answer not sent.";
        FenceAfterApply = "fence.after-apply", "P5", "A worker is fenced, the driver not told.";
        SettleAfterApply = "settle.after-apply", "P5", "A worker is settled, the driver not told.";
        OwnAfterApply = "own.after-apply", "P18", "A shard has its slots, the driver not told.";
        OpenJobAfterApply = "open-job.after-apply", "P18", "A shard has the job, the driver not told.";
        CreateTableAfterApply = "create-table.after-apply", "P18", "A shard has the table, the driver not told.";
        DropTableAfterApply = "drop-table.after-apply", "P18", "A shard has dropped the table, the driver not told.";
        // The control group and its driver.
        RegisterAfterApply = "register.after-apply", "P5 P17", "An incarnation is drawn, no shard fenced.";
        EvictAfterApply = "evict.after-apply", "P16", "A removal is decided, no shard fenced.";
        ClockRecorded = "clock.recorded", "P5", "C is recorded, no shard settled.";
        SettledRecorded = "settled.recorded", "P5 P15", "The transition is over, the registration not answered.";
        ErrandBeforeSend = "errand.before-send", "P5", "The driver is about to tell a shard.";
        ErrandAfterAnswer = "errand.after-answer", "P5", "A shard has answered, the answer is not counted.";
        ProposalBefore = "proposal.before", "P5", "All shards have answered, the record is not proposed.";
        // A node's services.
        GatherBeforePropose = "gather.before-propose", "P8", "Messages are gathered and not proposed.";
        GatherBeforeReply = "gather.before-reply", "P8", "Their entry is applied, no reply sent.";
        RegisterBeforeAnswer = "register.before-answer", "P17", "All shards have settled; the process is not told.";
        // A worker.
        WorkerBeforeSend = "worker.before-send", "P2 P3", "A message is made and not sent.";
        WorkerAfterAnswer = "worker.after-answer", "P3", "A shard's answer came and is not taken in.";
        WorkerBeforeRegister = "worker.before-register", "P17", "A registration is about to be sent.";
        WorkerAfterRegister = "worker.after-register", "P17", "The registration is answered, nothing sent.";
        WorkerBeforeClock = "worker.before-clock", "P1", "Updates are made, the clock is not ended.";
        WorkerAfterClock = "worker.after-clock", "P6", "The clock is queued.";
        WorkerBeforeLeave = "worker.before-leave", "P15", "All is flushed, the leave not sent.";
    }
}

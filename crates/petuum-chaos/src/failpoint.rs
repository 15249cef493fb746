//! The points at which a simulation may take a machine's power: one on each side of every step that is durable or that
//! others see.

use crate::catalogue::catalogue;

catalogue! {
    /// A point in a step: which rules rest on the step, and where the point is. Its name is the step's, then the side.
    Failpoint(rules: &'static str, place: &'static str) {
        // Starting and forming.
        BootBeforeCount = "boot.before-count", "P21", "A node has opened its store and not counted its boot.";
        BootAfterCount = "boot.after-count", "P21", "The boot number is durable, nobody was told.";
        HelloBefore = "hello.before", "P21", "A node is about to tell its peers of its boot.";
        HelloAfter = "hello.after", "P21", "A majority took the boot; no group runs yet.";
        ClaimBeforeWrite = "claim.before-write", "P21", "A node is asked to take part and has written nothing.";
        ClaimAfterWrite = "claim.after-write", "P21", "Its identity is durable and not answered.";
        // Storage and consensus.
        AppendBeforeWrite = "append.before-write", "P8", "Entries came and are not written.";
        AppendAfterWrite = "append.after-write", "P8", "Entries are written and not durable.";
        SyncBefore = "sync.before", "P8", "The queue is drained, the sync not begun.";
        SyncAfter = "sync.after", "P8", "The sync is done, nobody was called back.";
        SyncAfterCalls = "sync.after-calls", "P8", "Everybody was called back.";
        VoteBefore = "vote.before", "P8", "A vote was decided and is not written.";
        VoteAfter = "vote.after", "P8", "The vote is durable and not sent.";
        TruncateBefore = "truncate.before", "P8", "A conflicting tail was found and is still there.";
        TruncateAfter = "truncate.after", "P8", "The tail is gone, nothing follows yet.";
        PurgeBefore = "purge.before", "P19", "A snapshot covers entries that are still there.";
        PurgeAfter = "purge.after", "P19", "The entries are purged.";
        SnapshotBeforeBuild = "snapshot.before-build", "P19", "A view was taken, nothing is written.";
        SnapshotAfterPiece = "snapshot.after-piece", "P19", "A piece of a snapshot is written.";
        SnapshotBeforePublish = "snapshot.before-publish", "P19", "All pieces are written; the old one still counts.";
        SnapshotAfterPublish = "snapshot.after-publish", "P19", "The snapshot is durable; the log is not purged.";
        InstallBefore = "install.before", "P19", "A received snapshot is durable and not installed.";
        InstallAfter = "install.after", "P19", "The machine has the snapshot's state.";
        // A shard's machine.
        StageBeforeApply = "stage.before-apply", "P2", "A stage is committed and not applied.";
        StageAfterApply = "stage.after-apply", "P2", "A part is held, its answer not sent.";
        TickBeforeApply = "tick.before-apply", "P3", "A tick is committed and not applied.";
        TickAfterApply = "tick.after-apply", "P3", "The rows are changed, the answer not sent.";
        AbortBeforeApply = "abort.before-apply", "P4", "An abort is committed and not applied.";
        AbortAfterApply = "abort.after-apply", "P4", "A clock is given up, the answer not sent.";
        FenceBeforeApply = "fence.before-apply", "P5", "A fence is committed and not applied.";
        FenceAfterApply = "fence.after-apply", "P5", "A worker is fenced, the driver not told.";
        SettleBeforeApply = "settle.before-apply", "P5", "A settlement is committed and not applied.";
        SettleAfterApply = "settle.after-apply", "P5", "A worker is settled, the driver not told.";
        OwnBeforeApply = "own.before-apply", "P18", "A shard's part of the map is committed and not applied.";
        OwnAfterApply = "own.after-apply", "P18", "A shard has its slots, the driver not told.";
        OpenJobBeforeApply = "open-job.before-apply", "P18", "A job, for a shard, is committed and not applied.";
        OpenJobAfterApply = "open-job.after-apply", "P18", "A shard has the job, the driver not told.";
        CreateTableBeforeApply = "create-table.before-apply", "P18", "A table, for a shard, is committed and not applied.";
        CreateTableAfterApply = "create-table.after-apply", "P18", "A shard has the table, the driver not told.";
        DropTableBeforeApply = "drop-table.before-apply", "P18", "A table's end, for a shard, is committed and not applied.";
        DropTableAfterApply = "drop-table.after-apply", "P18", "A shard has dropped the table, the driver not told.";
        // The control group's machine.
        FormBeforeApply = "form.before-apply", "P21", "A cluster's map is committed and not applied.";
        FormAfterApply = "form.after-apply", "P21", "The map is known, no shard was told.";
        PlanJobBeforeApply = "plan-job.before-apply", "P18", "A job is committed and not applied.";
        PlanJobAfterApply = "plan-job.after-apply", "P18", "The job is planned, no shard was told.";
        PlanTableBeforeApply = "plan-table.before-apply", "P18", "A table is committed and not applied.";
        PlanTableAfterApply = "plan-table.after-apply", "P18", "The table is planned, no shard was told.";
        PlanDropBeforeApply = "plan-drop.before-apply", "P18", "A table's end is committed and not applied.";
        PlanDropAfterApply = "plan-drop.after-apply", "P18", "The end is planned, no shard was told.";
        RegisterBeforeApply = "register.before-apply", "P5 P17", "A registration is committed and not applied.";
        RegisterAfterApply = "register.after-apply", "P5 P17", "An incarnation is drawn, no shard fenced.";
        EvictBeforeApply = "evict.before-apply", "P16", "A removal is committed and not applied.";
        EvictAfterApply = "evict.after-apply", "P16", "The removal is decided, no shard fenced.";
        RecordMapBeforeApply = "record-map.before-apply", "P18", "Word that all shards have their slots is committed and not applied.";
        RecordMapAfterApply = "record-map.after-apply", "P18", "The cluster may have jobs, nobody was told.";
        RecordJobBeforeApply = "record-job.before-apply", "P18", "Word that all shards have a job is committed and not applied.";
        RecordJobAfterApply = "record-job.after-apply", "P18", "The job may have tables, nobody was told.";
        RecordTableBeforeApply = "record-table.before-apply", "P18", "Word that all shards have a table is committed and not applied.";
        RecordTableAfterApply = "record-table.after-apply", "P18", "The table may be used, nobody was told.";
        RecordGoneBeforeApply = "record-gone.before-apply", "P18", "Word that all shards have dropped a table is committed and not applied.";
        RecordGoneAfterApply = "record-gone.after-apply", "P18", "The table is forgotten, nobody was told.";
        RecordClockBeforeApply = "record-clock.before-apply", "P5", "The clock at which a worker goes on is committed and not applied.";
        RecordClockAfterApply = "record-clock.after-apply", "P5", "That clock stands, no shard is settled.";
        RecordSettledBeforeApply = "record-settled.before-apply", "P5 P15", "Word that all shards have settled is committed and not applied.";
        RecordSettledAfterApply = "record-settled.after-apply", "P5 P15", "The transition is over, the registration not answered.";
        // Its driver.
        ProposalBefore = "proposal.before", "P5", "All shards have answered, the record is not proposed.";
        ProposalAfter = "proposal.after", "P5", "The record is applied, the driver has not looked at it.";
        ErrandBeforeSend = "errand.before-send", "P5", "The driver is about to tell a shard.";
        ErrandAfterAnswer = "errand.after-answer", "P5", "A shard has answered, the answer is not counted.";
        // A node's services.
        GatherBeforePropose = "gather.before-propose", "P8", "Messages are gathered and not proposed.";
        GatherAfterApply = "gather.after-apply", "P8", "Their entry is applied, no reply sent.";
        // A worker.
        RegistrationBeforeSend = "registration.before-send", "P17", "A registration is about to be sent.";
        RegistrationBeforeAnswer = "registration.before-answer", "P17", "All shards have settled; the process is not told.";
        RegistrationAfterAnswer = "registration.after-answer", "P17", "The registration is answered, nothing sent.";
        ClockBeforeEnd = "clock.before-end", "P1", "Updates are made, the clock is not ended.";
        ClockAfterEnd = "clock.after-end", "P6", "The clock is queued.";
        MessageBeforeSend = "message.before-send", "P2 P3", "A message is made and not sent.";
        MessageAfterAnswer = "message.after-answer", "P3", "A shard's answer came and is not taken in.";
        LeaveBeforeSend = "leave.before-send", "P15", "All is flushed, the leave not sent.";
        LeaveAfterAnswer = "leave.after-answer", "P15", "The worker has left and does not say so yet.";
    }
}

#[cfg(test)]
mod tests {
    use super::Failpoint;
    use std::collections::BTreeMap;

    #[test]
    fn each_step_has_a_point_on_either_side() {
        let mut sides: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        for point in Failpoint::ALL {
            let (step, side) = point.name().split_once('.').expect("a step and a side");
            let (before, after) = (side.starts_with("before"), side.starts_with("after"));
            assert!(before != after, "{step}.{side}");
            let (has_before, has_after) = sides.entry(step).or_default();
            *has_before |= before;
            *has_after |= after;
        }
        for (step, found) in sides {
            assert_eq!(found, (true, true), "{step}");
        }
    }
}

//! What a node says of its replicas: positions, clocks, sizes, checksums.

use crate::groups::{Running, ShardReplica};
use petuum_consensus::{Group, Role};
use petuum_net::wire;
use petuum_types::{Error, ErrorKind, GroupId, LogIndex, ShardId};

/// Every replica of the node.
pub(super) fn replicas(running: &Running) -> wire::Replicas {
    let control = running.control.iter().map(|c| position(GroupId::CONTROL, &c.group));
    let shards = running.shards.iter().map(|(shard, replica)| shard_replica(*shard, replica));
    wire::Replicas { replicas: control.chain(shards).collect() }
}

fn index(index: Option<LogIndex>) -> u64 {
    index.map_or(0, |index| index.0)
}

fn position(id: GroupId, group: &Group) -> wire::Replica {
    let status = group.status();
    let role = match (&status.failure, status.role) {
        (Some(_), _) => "failed",
        (None, Role::Leader) => "leader",
        (None, Role::Follower) => "follower",
        (None, Role::Candidate) => "candidate",
        (None, Role::Learner) => "learner",
        (None, Role::Down) => "starting",
    };
    wire::Replica {
        group: id.0,
        role: role.to_owned(),
        leader: status.leader.map_or(0, |n| n.0),
        term: status.term,
        last_index: index(status.last_index),
        applied_index: index(status.applied),
        snapshot_index: index(status.snapshot_index),
        failure: status.failure.unwrap_or_default(),
        ..wire::Replica::default()
    }
}

fn shard_replica(shard: ShardId, replica: &ShardReplica) -> wire::Replica {
    let mut wire = position(GroupId::of_shard(shard), &replica.group);
    wire.parked_reads = replica.cell.parked_reads() as u64;
    replica.cell.with(|state| {
        wire.applied_index = state.applied().0;
        for table in state.tables() {
            wire.rows += table.rows;
            wire.bytes += table.bytes;
            if table.non_finite > 0 {
                wire.left_out.push(wire::LeftOut { table: table.schema.id.0, values: table.non_finite });
            }
        }
        for job in state.jobs() {
            let workers = state.workers(job).into_iter().map(|w| wire::WorkerClock {
                worker: w.worker.0,
                incarnation: w.incarnation.0,
                clock: w.clock.0,
                live: w.live,
                staged_bytes: w.staged_bytes,
            });
            let min_clock = state.min_clock(job).map_or(0, |c| c.0);
            wire.clocks.push(wire::JobClock { job: job.0, min_clock, workers: workers.collect() });
        }
    });
    wire
}

/// The checksums of one shard's replica here.
pub(super) fn checksums(running: &Running, shard: ShardId) -> Result<wire::Checksums, Error> {
    let replica = running.shards.get(&shard).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("this node has no replica of {shard}; fetch the shard map"))
    })?;
    let sums = replica.cell.with(|state| state.checksums());
    Ok(wire::Checksums {
        index: sums.index.0,
        slots: sums.slots.iter().map(|(slot, sum)| wire::SlotChecksum { slot: u32::from(slot.0), sum: *sum }).collect(),
        rest: sums.rest,
    })
}

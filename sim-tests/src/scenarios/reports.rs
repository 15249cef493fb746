//! Runs that play public reports: a seed of the swarm is given the shape and the faults that the report tells of. `C` and
//! `P` are the numbers of the table in `sim-tests/README.md`.

use std::time::Duration;

use petuum_chaos::{Buggify, Failpoint};
use petuum_sim::faults::Kind as AnyKind;
use petuum_sim::faults::Kind::{
    Bridge, CutOneWay, DiskFull, ForceElection, Isolate, KillLeader, KillWorker, LossyNetwork, MoveLeader, PowerLoss,
    PowerLossOfSome, ReadError, Ring, SlowDisk, SlowNetwork, StopNode, StuckDisk, Swizzle,
};

use super::faults::Kind;
use super::named::Named;
use super::plan::{Clumsy, Drawn};
use super::run::Scenario;

/// Around the step that makes entries part of a replica's state.
const APPLY: &[Failpoint] = &[
    Failpoint::StageBeforeApply,
    Failpoint::StageAfterApply,
    Failpoint::TickBeforeApply,
    Failpoint::TickAfterApply,
    Failpoint::SyncBefore,
    Failpoint::SyncAfter,
];

/// Every step of a snapshot.
const SNAPSHOT: &[Failpoint] = &[
    Failpoint::SnapshotBeforeBuild,
    Failpoint::SnapshotAfterPiece,
    Failpoint::SnapshotBeforePublish,
    Failpoint::SnapshotAfterPublish,
    Failpoint::InstallBefore,
    Failpoint::InstallAfter,
    Failpoint::PurgeBefore,
    Failpoint::PurgeAfter,
];

/// Three nodes, three workers that do nothing but count, and no faults yet.
fn plain(drawn: &mut Drawn) {
    let (shape, plan) = (&mut drawn.shape, &mut drawn.plan);
    (shape.nodes, shape.shards, shape.replication, shape.workers) = (3, 2, 3, 3);
    (shape.rivals, shape.removals, shape.refused, shape.reader) = (false, false, None, false);
    shape.lease = Duration::from_secs(60);
    shape.skew.clear();
    shape.pause_max = Duration::from_micros(400);
    shape.latency_max = Duration::from_millis(2);
    shape.sync_latency = (Duration::from_micros(100), Duration::from_millis(2));
    shape.settings.log_kept_entries = 2000;
    plan.faults.clear();
    (plan.clumsy, plan.points) = (Clumsy::Nowhere, Failpoint::ALL);
}

/// So many of each kind.
fn add(drawn: &mut Drawn, count: usize, kinds: &[AnyKind]) {
    kinds.iter().for_each(|kind| drawn.plan.faults.extend(std::iter::repeat_n(Kind::Any(*kind), count)));
}

/// Snapshots as often as can be, and nothing of the log kept behind them.
const fn keep_nothing(drawn: &mut Drawn) {
    drawn.shape.settings.snapshot_after_entries = 100;
    drawn.shape.settings.log_kept_entries = 0;
}

fn five_nodes(drawn: &mut Drawn) {
    (drawn.shape.nodes, drawn.shape.replication) = (5, 5);
}

fn logs_kept_0(drawn: &mut Drawn) {
    plain(drawn);
    keep_nothing(drawn);
    drawn.shape.workers = 6;
    add(drawn, 4, &[Isolate, KillLeader, MoveLeader, SlowDisk]);
}

fn slow_snapshots(drawn: &mut Drawn) {
    plain(drawn);
    keep_nothing(drawn);
    (drawn.shape.workers, drawn.shape.pause_max) = (8, Duration::from_micros(100));
    drawn.plan.clumsy = Clumsy::At(&[Buggify::PieceSmall, Buggify::PieceLate, Buggify::PieceSlow]);
    add(drawn, 6, &[Isolate, Swizzle]);
}

fn terms_apart(drawn: &mut Drawn) {
    plain(drawn);
    add(drawn, 5, &[ForceElection, Isolate, CutOneWay]);
}

fn latest_reads(drawn: &mut Drawn) {
    plain(drawn);
    drawn.shape.reader = true;
    drawn.shape.skew = vec![80, 100, 130];
    add(drawn, 8, &[MoveLeader]);
    add(drawn, 3, &[ForceElection, CutOneWay]);
}

fn late_heartbeats(drawn: &mut Drawn) {
    plain(drawn);
    five_nodes(drawn);
    add(drawn, 6, &[SlowNetwork]);
    add(drawn, 3, &[Ring, MoveLeader]);
}

fn bridges(drawn: &mut Drawn) {
    plain(drawn);
    five_nodes(drawn);
    add(drawn, 10, &[Bridge]);
    add(drawn, 2, &[KillLeader]);
}

fn one_node(drawn: &mut Drawn) {
    plain(drawn);
    (drawn.shape.nodes, drawn.shape.replication) = (1, 1);
    add(drawn, 8, &[PowerLoss]);
    add(drawn, 2, &[KillLeader, StopNode]);
}

pub(super) fn power(drawn: &mut Drawn) {
    plain(drawn);
    add(drawn, 6, &[PowerLoss, PowerLossOfSome]);
}

fn applying(drawn: &mut Drawn) {
    plain(drawn);
    drawn.plan.points = APPLY;
    add(drawn, 16, &[AnyKind::Failpoint]);
}

fn snapshot_steps(drawn: &mut Drawn) {
    plain(drawn);
    keep_nothing(drawn);
    drawn.plan.points = SNAPSHOT;
    add(drawn, 14, &[AnyKind::Failpoint]);
    add(drawn, 4, &[Isolate]);
}

fn restarts_after_purges(drawn: &mut Drawn) {
    plain(drawn);
    keep_nothing(drawn);
    add(drawn, 6, &[StopNode, KillLeader]);
}

fn slow_syncs(drawn: &mut Drawn) {
    plain(drawn);
    add(drawn, 14, &[SlowDisk]);
}

fn stuck_disks(drawn: &mut Drawn) {
    plain(drawn);
    add(drawn, 12, &[StuckDisk]);
}

pub(super) fn full_disks(drawn: &mut Drawn) {
    plain(drawn);
    drawn.shape.write_buffer_bytes = 64 << 10;
    add(drawn, 8, &[DiskFull]);
    add(drawn, 2, &[PowerLossOfSome]);
}

pub(super) fn failed_reads(drawn: &mut Drawn) {
    plain(drawn);
    keep_nothing(drawn);
    drawn.shape.write_buffer_bytes = 64 << 10;
    add(drawn, 5, &[ReadError, Isolate]);
}

fn lost_messages(drawn: &mut Drawn) {
    plain(drawn);
    add(drawn, 12, &[LossyNetwork]);
}

fn everyone_in_turn(drawn: &mut Drawn) {
    plain(drawn);
    add(drawn, 3, &[StopNode, KillLeader, KillWorker]);
    drawn.plan.faults.extend([Kind::RestartBeforeClock, Kind::RestartAfterClock].repeat(3));
}

pub(super) fn removed_and_back(drawn: &mut Drawn) {
    plain(drawn);
    (drawn.shape.removals, drawn.shape.lease) = (true, Duration::from_secs(2));
    drawn.plan.clumsy = Clumsy::At(&[Buggify::ExpiryLate]);
    drawn.plan.faults.extend([Kind::OutliveLease, Kind::OutliveLease, Kind::Evict].repeat(5));
    add(drawn, 4, &[MoveLeader]);
}

/// Followers that are away for longer than the log is kept.
pub(super) fn snapshots_to_followers(drawn: &mut Drawn) {
    plain(drawn);
    drawn.shape.settings.snapshot_after_entries = 100;
    drawn.shape.settings.log_kept_entries = 30;
    add(drawn, 5, &[Isolate, KillLeader, MoveLeader]);
}

/// One node; workers are removed while it comes and goes.
pub(super) fn removed_while_down(drawn: &mut Drawn) {
    plain(drawn);
    (drawn.shape.nodes, drawn.shape.replication) = (1, 1);
    (drawn.shape.removals, drawn.shape.lease) = (true, Duration::from_secs(2));
    add(drawn, 5, &[KillLeader]);
    drawn.plan.faults.extend([Kind::Evict, Kind::Evict, Kind::OutliveLease].repeat(3));
}

/// Nodes that are asked to stop, again and again.
pub(super) fn stops(drawn: &mut Drawn) {
    plain(drawn);
    add(drawn, 12, &[StopNode]);
}

/// Workers that are removed, come back, and die as they do.
pub(super) fn died_while_back(drawn: &mut Drawn) {
    removed_and_back(drawn);
    add(drawn, 12, &[KillWorker]);
}

/// Workers that may be behind each other without bound: what they have read stays good for ever.
pub(super) fn cached_for_ever(drawn: &mut Drawn) {
    plain(drawn);
    (drawn.shape.staleness, drawn.shape.pause_max) = (u32::MAX, Duration::from_micros(100));
    add(drawn, 6, &[KillLeader, Isolate]);
}

/// Clocks that are refused, under staleness 0.
pub(super) fn refused_clocks(drawn: &mut Drawn) {
    plain(drawn);
    (drawn.shape.staleness, drawn.shape.worker.threads, drawn.shape.refused) = (0, 2, Some(32));
    add(drawn, 4, &[KillLeader, Isolate, KillWorker]);
}

/// Followers whose disks are stuck are sent snapshots, then lose their power.
pub(super) fn snapshots_on_stuck_disks(drawn: &mut Drawn) {
    plain(drawn);
    keep_nothing(drawn);
    add(drawn, 5, &[StuckDisk, Isolate, PowerLossOfSome]);
}

/// One of them, on seed 1.
const fn play(name: &'static str, about: &'static str, shape: fn(&mut Drawn), needs: &'static [&'static str]) -> Named {
    Named { name, scenario: Scenario::Swarm, seed: 1, about, shape, needs, bounds: &[] }
}

/// All.
pub(super) const ALL: &[Named] = &[
    play(
        "logs-kept-0",
        "C1, C18: snapshots all the time and no log behind them; a leader must not panic over what it purged",
        logs_kept_0,
        &["snapshots-installed", "node-isolated", "leader-killed"],
    ),
    play(
        "snapshot-slower-than-the-writes",
        "C18, C22: a snapshot takes longer than the log behind it lives; the follower must catch up all the same",
        slow_snapshots,
        &["snapshots-installed", "clumsy:piece.slow", "clumsy:piece.late"],
    ),
    play(
        "terms-apart",
        "C9: nodes in terms of their own meet again; a leader must come of it",
        terms_apart,
        &["election-forced", "node-isolated", "node-mute"],
    ),
    play(
        "latest-reads-while-leaders-move",
        "C14, C32: reads of the latest rows during transfers and forced elections, clocks at different speeds",
        latest_reads,
        &["latest-reads", "leader-moved", "election-forced"],
    ),
    play(
        "answers-half-a-second-late",
        "C15: answers to heartbeats come when nobody waits for them any more",
        late_heartbeats,
        &["messages-late", "ring"],
    ),
    play("bridges", "C19: two halves and one node between them; the majority must get a leader", bridges, &["bridge"]),
    play(
        "one-node-loses-its-power",
        "C26, C28: a group of one member acknowledges nothing before it is durable",
        one_node,
        &["power-lost-everywhere", "bytes-lost"],
    ),
    play(
        "all-lose-their-power",
        "C26: all nodes, or some, lose their power again and again",
        power,
        &["power-lost-everywhere", "power-lost-of-some", "bytes-lost"],
    ),
    play(
        "crash-between-data-and-index",
        "C27: power goes on either side of a sync and of an apply; no entry is applied twice or not at all",
        applying,
        &["power-lost-at-failpoint"],
    ),
    play(
        "crash-in-every-step-of-a-snapshot",
        "C24: power goes while snapshots are written, published, installed and purged behind",
        snapshot_steps,
        &["power-lost-at-failpoint", "snapshots-installed"],
    ),
    play(
        "restarts-after-purges",
        "C23: what was purged is known after every restart",
        restarts_after_purges,
        &["node-stopped", "leader-killed", "reached:purge.after"],
    ),
    Named {
        bounds: &[("elections", 60)],
        ..play(
            "slow-syncs",
            "C30: syncs that take 400 ms stop no heartbeats: elections stay few",
            slow_syncs,
            &["disk-slow"],
        )
    },
    play("stuck-disks", "C31: a disk that hangs for seconds; others must take over", stuck_disks, &["disk-stuck"]),
    play("full-disks", "C34, C35: disks fill up and are emptied again", full_disks, &["disk-full", "disk-errors"]),
    play(
        "failed-reads",
        "C10: the log cannot be read once while a follower catches up",
        failed_reads,
        &["disk-read-error", "snapshots-installed"],
    ),
    play("lost-messages", "C13, C42: messages are lost; every call ends", lost_messages, &["messages-lost"]),
    play(
        "everyone-restarted-in-turn",
        "P1, P12, P35, P47: servers and workers restart in turn; nobody else loses anything",
        everyone_in_turn,
        &["node-stopped", "leader-killed", "worker-killed", "takeovers"],
    ),
    play(
        "removed-and-back",
        "P42, P47: workers are removed, by an operator or by their lease, and come back at the min clock",
        removed_and_back,
        &["worker-outlived", "worker-evicted", "rejoins", "clumsy:expiry.late"],
    ),
];

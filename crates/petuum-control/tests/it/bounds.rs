//! G10: the greatest state there can be still fits a snapshot.

use crate::harness::{create_job, refusal};
use petuum_control::limits::{ADDRESS_BYTES_MAX, ANSWERS_MAX, NODES_MAX, REGISTRATIONS_MAX, WORKERS_TOTAL_MAX};
use petuum_control::{Control, ControlAnswer, ControlCommand, EvictReason};
use petuum_types::limits::{NAME_BYTES_MAX, TABLES_MAX, WORKERS_MAX};
use petuum_types::map::{ShardMap, ShardPlace};
use petuum_types::{
    ClusterId, ErrorKind, Incarnation, JobId, LogIndex, MapEpoch, NodeId, RequestId, ShardId, WorkerId,
};

/// Ids no shorter than random ones.
const fn request(i: u64) -> RequestId {
    RequestId(u128::MAX - i as u128)
}

fn name(i: u64) -> String {
    format!("{i:0>width$}", width = NAME_BYTES_MAX)
}

fn apply(state: &mut Control, command: &ControlCommand) -> ControlAnswer {
    state.apply(LogIndex(u64::MAX), command)
}

fn greatest_map() -> ShardMap {
    let nodes = (0..NODES_MAX as u64).map(|i| (NodeId(u64::MAX - i), "a".repeat(ADDRESS_BYTES_MAX))).collect();
    let mut map = ShardMap::spread(nodes, 4096, 9).unwrap();
    map.epoch = MapEpoch(u64::MAX);
    map
}

/// Refused calls, whose answers are the longest, of every kind that can be refused with a job's name.
fn fill_answers(state: &mut Control, job: JobId) {
    for i in 0..=ANSWERS_MAX as u64 {
        let (request, worker) = (request(i), WorkerId(0));
        let refused = [
            ControlCommand::CreateJob { request, name: name(0), workers: 1, settings: Default::default() },
            ControlCommand::DropTable { request, job, name: "n".repeat(NAME_BYTES_MAX - 1) },
            ControlCommand::Register { request, job, worker: WorkerId(u32::MAX), rejoin: false },
            ControlCommand::Evict {
                request,
                job,
                worker,
                incarnation: Some(Incarnation(1)),
                reason: EvictReason::Left,
            },
        ];
        for command in refused {
            assert!(apply(state, &command).into_result().is_err());
        }
    }
}

#[test]
fn the_greatest_state_fits_a_snapshot() {
    let mut state = Control::new();
    apply(&mut state, &ControlCommand::Form { cluster: ClusterId(u128::MAX), map: greatest_map() });
    let jobs = WORKERS_TOTAL_MAX / u64::from(WORKERS_MAX);
    for j in 0..jobs {
        let call = create_job(u128::from(j), &name(j), WORKERS_MAX);
        assert_eq!(apply(&mut state, &call), ControlAnswer::Job { job: JobId(j + 1), created: true });
        for i in 0..u64::from(WORKERS_MAX) * REGISTRATIONS_MAX as u64 {
            let worker = WorkerId(u32::try_from(i % u64::from(WORKERS_MAX)).unwrap());
            let call = ControlCommand::Register { request: request(i), job: JobId(j + 1), worker, rejoin: false };
            assert!(matches!(apply(&mut state, &call), ControlAnswer::Registered { .. }));
        }
    }
    assert_eq!(refusal(apply(&mut state, &create_job(u128::MAX, "more", 1))), ErrorKind::ResourceExhausted);
    for i in 0..=TABLES_MAX as u64 {
        let mut call = crate::harness::create_table(u128::MAX - u128::from(i), &name(i), 1_000_000);
        if let ControlCommand::CreateTable { job: of, seed, .. } = &mut call {
            (*of, *seed) = (JobId(i % jobs + 1), u64::MAX);
        }
        let taken = apply(&mut state, &call).into_result().is_ok();
        assert_eq!(taken, i < TABLES_MAX as u64);
    }
    fill_answers(&mut state, JobId(jobs));
    let bytes = state.encode();
    assert!(Control::decode(&bytes).unwrap() == state);
}

#[test]
fn a_map_beyond_the_limits_is_refused() {
    let too_long = {
        let mut map = greatest_map();
        *map.nodes.values_mut().next().unwrap() = "a".repeat(ADDRESS_BYTES_MAX + 1);
        map
    };
    let too_many = {
        let nodes = (0..=NODES_MAX as u64).map(|i| (NodeId(i), "a".into())).collect();
        ShardMap::spread(nodes, 1, 1).unwrap()
    };
    let nodes = || (0..20).map(|i| (NodeId(i), "a".into())).collect();
    let twice = {
        let mut map = ShardMap::spread(nodes(), 1, 1).unwrap();
        map.shards.get_mut(&ShardId(0)).unwrap().replicas = vec![NodeId(1), NodeId(1)];
        map
    };
    let no_epoch = ShardMap { epoch: MapEpoch(0), ..ShardMap::spread(nodes(), 1, 1).unwrap() };
    let replicas = ShardMap::spread(nodes(), 1, 10).unwrap();
    let no_group = ShardMap {
        shards: [(ShardId(u32::MAX), ShardPlace { slots: 0..4096, replicas: vec![NodeId(1)] })].into_iter().collect(),
        ..no_epoch.clone()
    };
    let no_group = ShardMap { epoch: MapEpoch(1), ..no_group };
    for map in [too_long, too_many, twice, no_epoch, replicas, no_group] {
        let mut state = Control::new();
        let form = ControlCommand::Form { cluster: ClusterId(1), map };
        assert_eq!(refusal(apply(&mut state, &form)), ErrorKind::InvalidArgument);
        assert_eq!(state.cluster(), None);
    }
}

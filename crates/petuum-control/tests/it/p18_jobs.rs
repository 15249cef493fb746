//! P18: jobs of N workers, and tables that reach every shard.

use crate::harness::{JOB, World, create_job, create_table, refusal};
use petuum_control::{
    Control, ControlAnswer, ControlCommand, Driver, DutyId, EvictReason, JobSettings, RegistrationStatus, TablePhase,
    duties,
};
use petuum_types::map::ShardMap;
use petuum_types::{ClusterId, ErrorKind, JobId, LogIndex, MapEpoch, NodeId, RequestId, TableId};

fn map(shards: u32) -> ShardMap {
    ShardMap::spread([(NodeId(1), "a:1".to_owned())].into_iter().collect(), shards, 1).unwrap()
}

fn form(cluster: u128, map: ShardMap) -> ControlCommand {
    ControlCommand::Form { cluster: ClusterId(cluster), map }
}

#[test]
fn forming_is_idempotent() {
    let mut world = World::unformed();
    assert_eq!(refusal(world.log(create_job(1, "j", 1))), ErrorKind::NotInitialized);
    let mut hole = map(2);
    hole.shards.pop_last();
    assert_eq!(refusal(world.log(form(1, hole))), ErrorKind::InvalidArgument);
    assert_eq!(world.log(form(1, map(2))), ControlAnswer::Formed { cluster: ClusterId(1) });
    assert_eq!(world.log(form(2, map(2))), ControlAnswer::Formed { cluster: ClusterId(1) }, "the first id stands");
    assert_eq!(refusal(world.log(form(1, map(3)))), ErrorKind::AlreadyExists);
    assert_eq!(world.state.cluster(), Some(ClusterId(1)));
    // What was refused because nothing was formed is taken when sent again.
    assert!(matches!(world.log(create_job(1, "j", 1)), ControlAnswer::Job { created: true, .. }));
}

#[test]
fn start_barrier_of_n() {
    let mut world = World::new(2, 3);
    let waiting = |world: &World, request| match world.registration(0, request) {
        RegistrationStatus::Pending { waiting_for } => waiting_for,
        other => panic!("answered before all were settled: {other:?}"),
    };
    let (first, _) = world.register(0);
    assert_eq!(waiting(&world, first), "a shard that has not fenced it yet");
    world.run();
    assert_eq!(waiting(&world, first), "worker 1 has not registered, worker 2 has not registered");
    world.register(1);
    world.run();
    let (third, _) = world.register(2);
    assert_eq!(waiting(&world, first), "worker 2 is not settled yet");
    world.deliver_all();
    world.propose_all();
    world.deliver_all();
    assert!(!world.state.job(JOB).unwrap().has_started());
    world.propose_all();
    assert!(matches!(world.registration(0, first), RegistrationStatus::Ready { .. }));
    assert!(matches!(world.registration(2, third), RegistrationStatus::Ready { .. }));
    // It stays started: a takeover is answered as soon as it is settled, whoever else is out.
    world.evict(1, None, EvictReason::Operator);
    let (again, _) = world.register(0);
    world.run();
    assert!(matches!(world.registration(0, again), RegistrationStatus::Ready { .. }));
}

#[test]
fn a_worker_removed_before_the_start_is_named() {
    let mut world = World::new(1, 2);
    world.register(1);
    world.evict(1, None, EvictReason::Operator);
    world.run();
    let (request, _) = world.register(0);
    world.run();
    let expected = "worker 1 was removed before it began".to_owned();
    assert_eq!(world.registration(0, request), RegistrationStatus::Pending { waiting_for: expected });
}

#[test]
fn own_before_open_before_all_else() {
    let mut state = Control::new();
    assert!(duties(&state).is_empty());
    state.apply(LogIndex(1), &form(1, map(2)));
    state.apply(LogIndex(2), &create_job(1, "j", 1));
    state.apply(LogIndex(3), &create_table(2, "t", 4));
    state.apply(LogIndex(4), &crate::harness::register(RequestId(3), 0, false));
    let ids = |state: &Control| duties(state).iter().map(|duty| duty.id).collect::<Vec<_>>();
    assert_eq!(ids(&state), [DutyId::Own { epoch: MapEpoch(1) }]);
    state.apply(LogIndex(5), &ControlCommand::MapReady { epoch: MapEpoch(1) });
    assert!(matches!(ids(&state)[..], [DutyId::OpenJob { .. }]));
    state.apply(LogIndex(6), &ControlCommand::JobReady { job: JOB, epoch: MapEpoch(1) });
    assert!(matches!(ids(&state)[..], [DutyId::CreateTable { .. }, DutyId::Fence { .. }]));
    assert!(duties(&state).iter().all(|duty| duty.commands.len() == 2), "every shard is told");
}

#[test]
fn jobs_are_created_once() {
    let mut world = World::new(1, 2);
    assert_eq!(world.log(create_job(60, "job", 2)), ControlAnswer::Job { job: JOB, created: false });
    assert_eq!(refusal(world.log(create_job(61, "job", 3))), ErrorKind::AlreadyExists);
    assert_eq!(world.log(create_job(62, "second", 2)), ControlAnswer::Job { job: JobId(2), created: true });
    for (request, name, workers) in [(63, "", 1), (64, "x", 0), (65, "x", 4097)] {
        assert_eq!(refusal(world.log(create_job(request, name, workers))), ErrorKind::InvalidArgument);
    }
    assert_eq!(refusal(world.log(create_job(66, &"n".repeat(129), 1))), ErrorKind::InvalidArgument);
    let settings = JobSettings { lease_ms: 1 };
    let short = ControlCommand::CreateJob { request: RequestId(67), name: "x".into(), workers: 1, settings };
    assert_eq!(refusal(world.log(short)), ErrorKind::InvalidArgument);
    assert_eq!(world.state.job_named("second").unwrap().0, JobId(2));
}

#[test]
fn all_workers_together_have_a_limit() {
    let mut world = World::new(1, 2);
    for i in 0..15 {
        let answer = world.log(create_job(100 + i, &format!("big {i}"), 4096));
        assert!(matches!(answer, ControlAnswer::Job { created: true, .. }));
    }
    assert_eq!(refusal(world.log(create_job(99, "too many", 4096))), ErrorKind::ResourceExhausted);
}

#[test]
fn create_is_done_when_all_shards_have_it_and_a_drop_when_none_has() {
    let mut world = World::new(2, 1);
    assert_eq!(world.log(create_table(70, "t", 4)), ControlAnswer::Table { table: TableId(1), created: true });
    assert_eq!(world.log(create_table(71, "t", 4)), ControlAnswer::Table { table: TableId(1), created: false });
    assert_eq!(refusal(world.log(create_table(72, "t", 5))), ErrorKind::AlreadyExists);
    assert_eq!(refusal(world.log(create_table(73, "wide", 1_000_001))), ErrorKind::InvalidArgument);
    world.deliver_all();
    assert!(!world.state.table(TableId(1)).unwrap().is_ready());
    world.propose_all();
    assert!(world.state.table_named(JOB, "t").unwrap().is_ready());

    let drop = |request| ControlCommand::DropTable { request: RequestId(request), job: JOB, name: "t".into() };
    assert_eq!(world.log(drop(80)), ControlAnswer::Dropping { table: TableId(1) });
    assert_eq!(world.log(drop(81)), ControlAnswer::Dropping { table: TableId(1) }, "a second call waits for the same");
    assert_eq!(world.state.table(TableId(1)).unwrap().phase(), TablePhase::Dropping);
    // The name is free at once, under a new id.
    assert_eq!(world.log(create_table(82, "t", 4)), ControlAnswer::Table { table: TableId(2), created: true });
    world.run();
    assert!(world.state.table(TableId(1)).is_none());
    assert!(world.shards.values().all(|shard| shard.tables.iter().eq([&TableId(2)])));
}

#[test]
fn a_drop_overtakes_a_create_under_way() {
    let mut world = World::new(2, 1);
    world.log(create_table(70, "t", 4));
    let late = world.driver.step(&world.state);
    world.deliver(&late[0]);
    world.log(ControlCommand::DropTable { request: RequestId(80), job: JOB, name: "t".into() });
    let ready = ControlCommand::TableReady { table: TableId(1), epoch: MapEpoch(1) };
    assert_eq!(world.log(ready), ControlAnswer::Ignored);
    world.run();
    // A create still on its way meets a shard that knows the id is gone.
    late.iter().for_each(|errand| {
        world.deliver(errand);
    });
    assert!(world.shards.values().all(|shard| shard.tables.is_empty()));
    assert!(Driver::new().step(&world.state).is_empty());
}

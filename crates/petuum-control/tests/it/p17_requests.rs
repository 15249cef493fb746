//! P17: the same request id gets the same answer, and two processes of one name do not duel.

use crate::harness::{JOB, World, create_job, create_table, refusal, register};
use petuum_control::{ControlAnswer, ControlCommand, EvictReason, RegistrationStatus, Standing};
use petuum_types::{ErrorKind, Incarnation, JobId, RequestId, WorkerId};

#[test]
fn repeat_request_ids_get_the_same_answers() {
    let mut world = World::new(2, 2);
    world.start();
    let request = world.request();
    let calls = [
        create_job(50, "other", 3),
        create_table(51, "weights", 4),
        ControlCommand::DropTable { request: RequestId(52), job: JOB, name: "weights".into() },
        ControlCommand::DropTable { request: RequestId(53), job: JOB, name: "nothing".into() },
        register(request, 1, false),
        ControlCommand::Evict {
            request: RequestId(55),
            job: JOB,
            worker: WorkerId(1),
            incarnation: None,
            reason: EvictReason::Operator,
        },
    ];
    let first: Vec<ControlAnswer> = calls.iter().map(|call| world.log(call.clone())).collect();
    world.run();
    // Whatever has happened since: the table is gone, the worker evicted.
    let before = world.state.clone();
    let second: Vec<ControlAnswer> = calls.iter().map(|call| world.log(call.clone())).collect();
    assert_eq!(first, second);
    assert_eq!(before.workers(JOB).collect::<Vec<_>>(), world.state.workers(JOB).collect::<Vec<_>>());
    assert_eq!(before.tables(JOB).count(), world.state.tables(JOB).count());
}

#[test]
fn duelling_processes() {
    // Two processes of one name, each repeating its own registration: the older ends with its successor's name, and its
    // repeats start nothing.
    let mut world = World::new(2, 2);
    world.start();
    let (old, first) = world.register(0);
    world.run();
    let (new, second) = world.register(0);
    world.run();
    for _ in 0..3 {
        let again = world.log(register(old, 0, false));
        assert_eq!(again, ControlAnswer::Registered { incarnation: first });
        assert_eq!(world.registration(0, old), RegistrationStatus::Replaced { by: second });
        assert_eq!(world.log(register(new, 0, false)), ControlAnswer::Registered { incarnation: second });
        assert!(matches!(world.registration(0, new), RegistrationStatus::Ready { .. }));
    }
    assert_eq!(world.state.standing(JOB, WorkerId(0), first), Standing::Replaced { by: second });
    assert_eq!(world.state.standing(JOB, WorkerId(0), second), Standing::Live);
}

#[test]
fn a_refused_registration_repeated_after_a_re_join_replaces_nobody() {
    let mut world = World::new(2, 2);
    world.start();
    world.evict(1, None, EvictReason::Operator);
    world.run();
    let late = world.request();
    let refused = world.log(register(late, 1, false));
    let (request, _) = world.register_as(1, true);
    world.run();
    assert_eq!(world.log(register(late, 1, false)), refused);
    assert!(matches!(world.registration(1, request), RegistrationStatus::Ready { .. }));
    // The same id for another call is the caller's mistake.
    assert_eq!(refusal(world.log(register(late, 1, true))), ErrorKind::InvalidArgument);
}

#[test]
fn standing_during_and_after_a_removal() {
    let mut world = World::new(2, 2);
    let first = world.start()[1];
    let (_, second) = world.register(1);
    world.run();
    let standing = |world: &World, incarnation| world.state.standing(JOB, WorkerId(1), incarnation);
    world.evict(1, None, EvictReason::Operator);
    assert_eq!(standing(&world, second), Standing::Removing, "C is not known yet");
    world.deliver_all();
    world.propose_all();
    assert!(matches!(standing(&world, second), Standing::Evicted { .. }));
    assert_eq!(standing(&world, first), Standing::Replaced { by: second });
    world.run();
    assert!(matches!(standing(&world, second), Standing::Evicted { .. }));
    let version = world.phase(1).incarnation();
    assert_eq!(standing(&world, version), Standing::Unknown, "a removal's version is nobody's");
    assert_eq!(standing(&world, Incarnation(0)), Standing::Unknown);
    assert_eq!(world.state.standing(JobId(9), WorkerId(1), second), Standing::Unknown);
    assert_eq!(world.registration(1, RequestId(3)), RegistrationStatus::Unknown);
}

#[test]
fn names_that_do_not_exist() {
    let mut world = World::new(1, 2);
    let register = |job: u64, worker: u32, request: u128| ControlCommand::Register {
        request: RequestId(request),
        job: JobId(job),
        worker: WorkerId(worker),
        rejoin: false,
    };
    assert_eq!(refusal(world.log(register(7, 0, 900))), ErrorKind::NotFound);
    assert_eq!(refusal(world.log(register(1, 2, 901))), ErrorKind::InvalidArgument);
    assert_eq!(refusal(world.evict(1, None, EvictReason::Operator)), ErrorKind::NotFound);
    assert_eq!(refusal(world.evict(2, None, EvictReason::Operator)), ErrorKind::InvalidArgument);
    assert_eq!(refusal(world.evict(1, None, EvictReason::Left)), ErrorKind::InvalidArgument);
    world.register(1);
    assert_eq!(refusal(world.evict(1, Some(Incarnation(9)), EvictReason::Left)), ErrorKind::NotFound);
}

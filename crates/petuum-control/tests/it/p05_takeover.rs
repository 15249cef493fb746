//! P5: takeover and eviction: fence everywhere, record the greatest clock once, settle everywhere.

use crate::harness::{World, key};
use petuum_control::{ControlAnswer, ControlCommand, Driver, EvictReason, Phase, RegistrationStatus};
use petuum_types::{Clock, Incarnation, MapEpoch, ShardId};

#[test]
fn golden_takeover() {
    let mut world = World::new(2, 1);
    let first = world.start()[0];
    assert!(world.tick(1, 0, first));
    let (request, _) = world.register(0);
    world.run();
    let expected = [
        "log register worker 0, rejoin false",
        "shard 0 <- fence worker 0, incarnation 2, admit false -> Clock(Clock(0))",
        "shard 1 <- fence worker 0, incarnation 2, admit false -> Clock(Clock(1))",
        "log C of worker 0, incarnation 2: clock 1",
        "shard 0 <- settle worker 0, incarnation 2 at clock 1, keep true -> Done",
        "shard 1 <- settle worker 0, incarnation 2 at clock 1, keep true -> Done",
        "log settled worker 0, incarnation 2",
    ];
    assert_eq!(world.trace, expected);
    let ready = world.registration(0, request);
    assert!(matches!(ready, RegistrationStatus::Ready { start: Clock(1), incarnation: Incarnation(2), .. }));
    assert!(!world.tick(0, 0, first), "the old process is fenced");
}

#[test]
fn golden_eviction() {
    let mut world = World::new(2, 2);
    let incarnations = world.start();
    assert!(world.tick(0, 1, incarnations[1]));
    world.evict(1, None, EvictReason::Operator);
    world.run();
    let expected = [
        "log evict worker 1: Operator",
        "shard 0 <- fence worker 1, incarnation 3, admit false -> Clock(Clock(1))",
        "shard 1 <- fence worker 1, incarnation 3, admit false -> Clock(Clock(0))",
        "log C of worker 1, incarnation 3: clock 1",
        "shard 0 <- settle worker 1, incarnation 3 at clock 1, keep false -> Done",
        "shard 1 <- settle worker 1, incarnation 3 at clock 1, keep false -> Done",
        "log settled worker 1, incarnation 3",
    ];
    assert_eq!(world.trace, expected);
    let removed = Phase::Removed { at: Clock(1), reason: EvictReason::Operator, incarnation: Incarnation(3) };
    assert_eq!(world.phase(1), removed);
}

#[test]
fn control_leader_change_mid_takeover() {
    // The old leader fenced one shard and is gone; the new one asks both again, and C is recorded once.
    let mut world = World::new(2, 1);
    let first = world.start()[0];
    assert!(world.tick(0, 0, first));
    let (request, second) = world.register(0);
    let errands = world.driver.step(&world.state);
    let answer = world.deliver(&errands[0]);
    world.driver.answer(&world.state, &errands[0].id, answer);
    assert!(world.driver.proposals(&world.state).is_empty(), "one shard has not answered");

    world.driver = Driver::new();
    assert_eq!(world.driver.step(&world.state).len(), 2);
    world.deliver_all();
    world.propose_all();
    // The next one takes over between C and the settling: it settles, and fences nobody again.
    world.driver = Driver::new();
    let commands: Vec<_> = world.driver.step(&world.state).into_iter().map(|e| format!("{:?}", e.command)).collect();
    assert!(commands.iter().all(|c| c.starts_with("Settle")), "{commands:?}");
    world.run();
    assert!(matches!(world.phase(0), Phase::Live { incarnation, start: Clock(1) } if incarnation == second));
    assert!(matches!(world.registration(0, request), RegistrationStatus::Ready { .. }));
    assert_eq!(world.trace.iter().filter(|line| line.contains("C of")).count(), 1);
}

#[test]
fn c_is_recorded_once_and_only_for_its_own_incarnation() {
    let mut world = World::new(2, 1);
    world.start();
    let (_, second) = world.register(0);
    let record = |incarnation, clock, epoch| ControlCommand::RecordClock {
        key: key(0),
        incarnation,
        clock: Clock(clock),
        epoch: MapEpoch(epoch),
    };
    assert_eq!(world.log(record(Incarnation(1), 7, 1)), ControlAnswer::Ignored, "of the past");
    assert_eq!(world.log(record(second, 7, 2)), ControlAnswer::Ignored, "of another map");
    assert_eq!(world.log(record(second, 3, 1)), ControlAnswer::Recorded);
    assert_eq!(world.log(record(second, 9, 1)), ControlAnswer::Ignored, "recorded already");
    assert_eq!(world.phase(0).transition().unwrap().clock, Some(Clock(3)));
}

#[test]
fn nothing_is_settled_before_c_is_recorded() {
    let mut world = World::new(2, 1);
    world.start();
    let (_, incarnation) = world.register(0);
    let settled = ControlCommand::RecordSettled { key: key(0), incarnation, epoch: MapEpoch(1) };
    assert_eq!(world.log(settled), ControlAnswer::Ignored);
}

#[test]
fn a_register_supersedes_a_takeover_under_way() {
    // The second takeover starts after C of the first was recorded and one shard was settled at it.
    let mut world = World::new(2, 1);
    let first = world.start()[0];
    assert!(world.tick(0, 0, first));
    let (old, _) = world.register(0);
    world.deliver_all();
    world.propose_all();
    let errand = world.driver.step(&world.state)[1].clone();
    world.deliver(&errand);
    let (new, third) = world.register(0);
    world.run();
    assert_eq!(world.registration(0, old), RegistrationStatus::Replaced { by: third });
    assert!(matches!(world.registration(0, new), RegistrationStatus::Ready { start: Clock(1), .. }));
    assert_eq!(world.clocks(0), [1, 1]);
}

#[test]
fn an_evict_supersedes_a_takeover_under_way() {
    let mut world = World::new(2, 2);
    world.start();
    let (request, second) = world.register(1);
    world.deliver_all();
    world.evict(1, Some(second), EvictReason::Operator);
    world.run();
    assert_eq!(world.registration(1, request), RegistrationStatus::Evicted { at: Clock(0) });
    assert!(world.shards.values().all(|shard| !shard.sessions[&key(1)].live));
}

#[test]
fn a_stale_answer_ends_the_errand_and_is_never_counted() {
    let mut world = World::new(2, 1);
    world.start();
    world.register(0);
    let old_state = world.state.clone();
    let mut old_driver = Driver::new();
    let errands = old_driver.step(&old_state);
    world.register(0);
    world.run();
    for errand in &errands {
        let answer = world.deliver(errand);
        old_driver.answer(&old_state, &errand.id, answer);
    }
    assert!(old_driver.step(&old_state).is_empty(), "nothing left to send");
    assert!(old_driver.proposals(&old_state).is_empty(), "and nothing to propose");
}

#[test]
fn a_refusal_or_an_answer_of_the_wrong_kind_is_asked_again() {
    use petuum_types::command::ShardAnswer;
    let mut world = World::new(2, 1);
    world.start();
    world.register(0);
    let errands = world.driver.step(&world.state);
    for wrong in [ShardAnswer::Refused("busy".into()), ShardAnswer::Done] {
        world.driver.answer(&world.state, &errands[0].id, wrong);
        assert_eq!(world.driver.step(&world.state), errands);
    }
    let mut elsewhere = errands[0].id;
    elsewhere.shard = ShardId(9);
    world.driver.answer(&world.state, &elsewhere, ShardAnswer::Clock(Clock(5)));
    assert_eq!(world.driver, Driver::new(), "a shard outside the map is not heard");
}

//! Two drivers at once: the old control leader does not know yet that it is one no more (P5).

use crate::harness::{World, key};
use petuum_control::{Driver, EvictReason, Phase};
use petuum_types::Clock;

#[test]
fn two_drivers_overlapping() {
    let mut world = World::new(2, 1);
    let first = world.start()[0];
    assert!(world.tick(0, 0, first));
    let (_, second) = world.register(0);
    let (old_state, mut old_driver) = (world.state.clone(), Driver::new());
    let old_errands = old_driver.step(&old_state);

    // The new leader finishes, and the new process goes on.
    world.run();
    assert!(world.tick(0, 0, second) && world.tick(1, 0, second));

    // The old leader's fences arrive; it computes a C of its own, from the new process's clocks.
    for errand in &old_errands {
        let answer = world.deliver(errand);
        old_driver.answer(&old_state, &errand.id, answer);
    }
    let proposals = old_driver.proposals(&old_state);
    assert_eq!(proposals.len(), 1);
    for command in proposals {
        world.log(command);
    }
    assert_eq!(world.phase(0), Phase::Live { incarnation: second, start: Clock(1) });
    assert!(world.tick(0, 0, second), "a repeated fence of its own incarnation stops nobody");
}

#[test]
fn an_old_drivers_settle_does_not_touch_a_later_transition() {
    let mut world = World::new(2, 2);
    world.start();
    world.register(1);
    world.deliver_all();
    world.propose_all();
    let settles = world.driver.step(&world.state);
    world.evict(1, None, EvictReason::Operator);
    world.run();
    for errand in &settles {
        let answer = world.deliver(errand);
        world.driver.answer(&world.state, &errand.id, answer);
    }
    assert_eq!(world.driver, Driver::new(), "soft state of a duty that is over is not kept");
    assert!(world.shards.values().all(|shard| !shard.sessions[&key(1)].live));
}

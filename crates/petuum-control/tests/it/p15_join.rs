//! P15: joins, removals and returns.

use crate::harness::{World, key, refusal, register};
use petuum_control::{ControlAnswer, EvictReason, Phase, RegistrationStatus, Standing, TransitionKind};
use petuum_types::{Clock, ErrorKind, JobId, WorkerId};

#[test]
fn golden_join() {
    let mut world = World::new(2, 1);
    world.register(0);
    world.run();
    let expected = [
        "log register worker 0, rejoin false",
        "shard 0 <- fence worker 0, incarnation 1, admit true -> Clock(Clock(0))",
        "shard 1 <- fence worker 0, incarnation 1, admit true -> Clock(Clock(0))",
        "log C of worker 0, incarnation 1: clock 0",
        "shard 0 <- settle worker 0, incarnation 1 at clock 0, keep true -> Done",
        "shard 1 <- settle worker 0, incarnation 1 at clock 0, keep true -> Done",
        "log settled worker 0, incarnation 1",
    ];
    assert_eq!(world.trace, expected);
}

#[test]
fn join_race_with_ticks_of_others() {
    // Worker 0 ticks shard 0 before the join's fence and shard 1 after it: the joiner starts at the greater min clock.
    let mut world = World::new(2, 2);
    let incarnations = world.start();
    world.evict(1, None, EvictReason::Operator);
    world.run();
    for _ in 0..3 {
        assert!(world.tick(0, 0, incarnations[0]));
    }
    let (request, _) = world.register_as(1, true);
    world.deliver_all();
    assert!(world.tick(1, 0, incarnations[0]));
    world.propose_all();
    world.run();
    assert!(matches!(world.registration(1, request), RegistrationStatus::Ready { start: Clock(3), .. }));
    assert_eq!(world.clocks(1), [3, 3]);
}

#[test]
fn a_returning_worker_never_starts_below_its_removal() {
    // Worker 1 counted 5 clocks in both shards; the shards' min clock is 0, yet it must not run clocks 0 to 4 again.
    let mut world = World::new(2, 2);
    let incarnations = world.start();
    for shard in [0, 1] {
        (0..5).for_each(|_| assert!(world.tick(shard, 1, incarnations[1])));
    }
    world.evict(1, Some(incarnations[1]), EvictReason::Left);
    world.run();
    assert_eq!(world.state.worker(JobId(1), WorkerId(1)).unwrap().removed_at(), Some(Clock(5)));
    // Shards that count a joiner at their min clock 0, as if they kept nothing of it.
    world.shards.values_mut().for_each(|shard| shard.sessions.get_mut(&key(1)).unwrap().clock = Clock(0));
    let (request, _) = world.register_as(1, true);
    world.run();
    assert!(matches!(world.registration(1, request), RegistrationStatus::Ready { start: Clock(5), .. }));
}

#[test]
fn a_register_during_a_removal_waits() {
    let mut world = World::new(2, 2);
    world.start();
    world.evict(1, None, EvictReason::Operator);
    let request = world.request();
    for rejoin in [false, true] {
        assert_eq!(refusal(world.log(register(request, 1, rejoin))), ErrorKind::Unavailable);
    }
    world.deliver_all();
    world.propose_all();
    assert_eq!(refusal(world.log(register(request, 1, true))), ErrorKind::Unavailable, "a shard has not settled it");
    world.run();
    // The same request, sent again, is now taken: a refusal to be tried again is no answer for ever.
    assert!(matches!(world.log(register(request, 1, true)), ControlAnswer::Registered { .. }));
}

#[test]
fn evict_arriving_after_re_register() {
    // The eviction of incarnation 1 was sent before the worker's second process registered, and arrives after.
    let mut world = World::new(2, 2);
    let incarnations = world.start();
    let (_, second) = world.register(1);
    assert_eq!(refusal(world.evict(1, Some(incarnations[1]), EvictReason::Operator)), ErrorKind::Replaced);
    assert_eq!(refusal(world.evict(1, Some(incarnations[1]), EvictReason::Left)), ErrorKind::Replaced);
    world.run();
    assert_eq!(world.phase(1), Phase::Live { incarnation: second, start: Clock(0) });
    // Without an incarnation it is about whoever there is.
    assert!(matches!(world.evict(1, None, EvictReason::Operator), ControlAnswer::Removing { .. }));
}

#[test]
fn a_removed_worker_comes_back_only_explicitly_and_is_told_what_it_lost() {
    let mut world = World::new(2, 2);
    let incarnations = world.start();
    assert!(world.tick(0, 1, incarnations[1]));
    for reason in [EvictReason::Operator, EvictReason::LeaseExpired, EvictReason::Left] {
        let speaker = world.state.worker(JobId(1), WorkerId(1)).unwrap().speaker();
        world.evict(1, Some(speaker), reason);
        world.run();
        assert_eq!(world.state.standing(JobId(1), WorkerId(1), speaker), Standing::Evicted { at: Clock(1) });
        let request = world.request();
        let ControlAnswer::Refused { kind, message } = world.log(register(request, 1, false)) else {
            panic!("a removed worker registered without saying that it re-joins");
        };
        assert_eq!(kind, ErrorKind::Evicted);
        assert!(message.contains("clocks from 1 on are lost"), "{message}");
        let (again, _) = world.register_as(1, true);
        world.run();
        assert!(matches!(world.registration(1, again), RegistrationStatus::Ready { .. }));
    }
}

#[test]
fn a_superseded_join_stays_a_join() {
    // The shard that never saw the first join has to count the worker; a takeover would leave it out.
    let mut world = World::new(2, 2);
    world.register(0);
    let errand = world.driver.step(&world.state)[0].clone();
    world.deliver(&errand);
    world.register(0);
    assert_eq!(world.phase(0).transition().unwrap().kind, TransitionKind::Join);
    world.run();
    assert!(world.shards.values().all(|shard| shard.sessions[&key(0)].live));
    // Once settled, a further registration takes over.
    world.register(0);
    assert_eq!(world.phase(0).transition().unwrap().kind, TransitionKind::Takeover);
}

#[test]
fn an_evict_during_a_join_removes_it_where_it_was_counted() {
    let mut world = World::new(2, 2);
    world.register(0);
    let errands = world.driver.step(&world.state);
    world.deliver(&errands[0]);
    world.evict(0, None, EvictReason::Operator);
    world.run();
    // The other fence of the join arrives late.
    world.deliver(&errands[1]);
    assert!(world.shards.values().all(|shard| !shard.sessions[&key(0)].live));
    assert!(matches!(world.phase(0), Phase::Removed { at: Clock(0), .. }));
}

#[test]
fn evicting_twice_is_one_removal() {
    let mut world = World::new(2, 2);
    world.start();
    let first = world.evict(1, None, EvictReason::Operator);
    assert_eq!(world.evict(1, None, EvictReason::Operator), first);
    world.run();
    assert_eq!(world.evict(1, None, EvictReason::Operator), first);
}

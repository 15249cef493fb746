//! That the check finds what it is there for, and that small models are whole.

use super::*;
use stateright::Model;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

fn takeover(mutant: Option<Mutant>) -> Bounds {
    Bounds { takeovers: 1, answers_travel: false, mutant, ..Bounds::calm(0) }
}

fn broken_by(mutant: Mutant) -> &'static str {
    match check(takeover(Some(mutant)), 1, true) {
        Ok(report) => panic!("{mutant:?} was not found in {} states", report.states),
        Err(found) => found.property,
    }
}

#[test]
fn without_a_mutant_the_same_model_is_whole() {
    let report = check(takeover(None), 2, false).unwrap_or_else(|found| panic!("{found}"));
    assert!(report.states > 1000, "{report:?}");
}

#[test]
fn p3_ticks_before_all_parts_are_held_are_found() {
    assert_eq!(broken_by(Mutant::TicksBeforeAllStaged), "G2 once");
}

#[test]
fn p5_the_least_clock_is_found() {
    let property = broken_by(Mutant::LeastClock);
    assert!(["G2 once", "no refusal"].contains(&property), "{property}");
}

#[test]
fn p5_a_fence_that_is_not_logged_is_found() {
    let property = broken_by(Mutant::NoFence);
    assert!(["G2 once", "G7 fencing", "no refusal"].contains(&property), "{property}");
}

#[test]
fn p5_two_contents_under_one_incarnation_are_found() {
    assert_eq!(broken_by(Mutant::NoRegistration), "G2 once");
}

#[test]
fn a_check_of_one_thread_and_one_of_two_see_the_same_states() {
    let bounds = Bounds { evictions: 1, rejoins: 1, answers_travel: false, ..Bounds::calm(0) };
    let states = |threads| check(bounds, threads, false).map(|report| (report.states, report.steps));
    let one = states(1).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(states(2).unwrap_or_else(|found| panic!("{found}")), one);
}

/// That every way ends is what makes the check of last states a check of all ways.
#[test]
fn no_way_comes_back_to_where_it_was() {
    let removal = Bounds { takeovers: 0, evictions: 1, rejoins: 1, losses: 1, early: 1, ..takeover(None) };
    let repeat = Bounds { repeats: 1, early: 1, ..takeover(None) };
    let travelling = Bounds { early: 1, answers_travel: true, ..takeover(None) };
    for model in [removal, repeat, travelling] {
        assert!(longest_way(&ClusterModel::new(model)) > 20);
    }
}

/// The number of states of the longest way that a depth-first walk takes.
fn longest_way(model: &ClusterModel) -> usize {
    let key = |world: &World| {
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        hasher.finish()
    };
    // By state: whether it is on the way now.
    let mut seen = BTreeMap::<u64, bool>::new();
    let mut longest = 0;
    let first = model.init_states().remove(0);
    seen.insert(key(&first), true);
    let mut way = vec![(key(&first), model.next_states(&first))];
    while let Some((at, ahead)) = way.last_mut() {
        let Some(world) = ahead.pop() else {
            seen.insert(*at, false);
            way.pop();
            continue;
        };
        match seen.get(&key(&world)) {
            Some(on_the_way) => assert!(!on_the_way, "a way leads back to {world:?}"),
            None => {
                seen.insert(key(&world), true);
                way.push((key(&world), model.next_states(&world)));
            }
        }
        longest = longest.max(way.len());
    }
    longest
}

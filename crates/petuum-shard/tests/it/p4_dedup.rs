//! P4: sequences, epochs, incarnations; repeats and refusals.

use crate::support::*;
use petuum_shard::Settings;
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::outcome::{Fence, Outcome, Refusal, Retry};
use petuum_types::{Clock, Generation, Incarnation, MapEpoch, Sequence, WorkerId};

#[test]
fn a_repeat_is_acknowledged_again_and_counts_once() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let stage = client.stage(0, 0, add(FLOATS, 5, 0, &[1.0]));
    let tick = client.tick(0, 1);
    assert_eq!(rig.send(&stage), Outcome::Accepted);
    assert_eq!(rig.send(&stage), Outcome::Accepted);
    assert_eq!(rig.shard.precheck(&stage), Some(Outcome::Accepted));
    assert_eq!(rig.send(&tick), Outcome::Accepted);
    let before = rig.shard.clone();
    for message in [&stage, &tick, &stage] {
        assert_eq!(rig.shard.precheck(message), Some(Outcome::Ticked));
        assert_eq!(rig.send(message), Outcome::Ticked, "the client goes on to the remaining ticks");
    }
    assert_eq!((rig.floats(5)[0], rig.clock(0)), (1.0, 1));
    assert_eq!(rig.shard.checksums().slots, before.checksums().slots);
}

#[test]
fn a_gap_is_retryable_and_takes_nothing() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let (first, second) = (client.tick(0, 0), client.tick(1, 0));
    assert_eq!(rig.shard.precheck(&second), None, "the message before may be in the log");
    assert_eq!(rig.shard.next_sequence(&second), Some(Sequence(0)));
    assert_eq!(rig.send(&second), gap(0));
    assert_eq!(rig.entry(&[first, second]), [Outcome::Accepted, Outcome::Accepted]);
}

#[test]
fn a_refusal_consumes_its_sequence_and_is_given_again() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let bad = client.stage(0, 0, add(FLOATS, 5, 0, &[f32::NAN]));
    let refusal = refused(rig.send(&bad));
    assert_eq!(rig.status(0).next_sequence, Sequence(1));
    assert_eq!(refused(rig.send(&bad)), refusal);
    assert_eq!(rig.shard.precheck(&bad), Some(Outcome::Refused(refusal)));
    client.acked_below = 1;
    assert_eq!(rig.send(&client.abort(0)), Outcome::Accepted);
    assert_eq!(rig.send(&bad), Outcome::Accepted, "acknowledged, so forgotten: nobody waits for this answer");
}

#[test]
fn refusals_are_bounded_and_a_client_that_acknowledges_none_waits() {
    let mut rig = Rig::with(Settings { refusals_max: 2, ..Settings::default() });
    let mut client = rig.join(0, 1);
    for clock in 1..3 {
        refused(rig.send(&client.tick(clock, 0)));
    }
    let third = client.tick(7, 0);
    assert!(matches!(rig.send(&third), Outcome::Retry(Retry::Busy(_))));
    let acknowledging = petuum_types::message::WorkerMessage { acked_below: Sequence(1), ..third };
    assert_eq!(refused(rig.send(&acknowledging)), Refusal::ClockOrder { expected: Clock(0), got: Clock(7) });
}

#[test]
fn epochs_generations_and_strangers() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let tick = client.tick(0, 0);
    let with = |change: &dyn Fn(&mut petuum_types::message::WorkerMessage)| {
        let mut message = tick.clone();
        change(&mut message);
        message
    };
    let ours = MapEpoch(1);
    let cases = [
        (with(&|m| m.epoch = MapEpoch(0)), Outcome::Retry(Retry::MapBehind { ours })),
        (with(&|m| m.epoch = MapEpoch(2)), Outcome::Retry(Retry::ShardBehind { ours })),
        (with(&|m| m.generation = Generation(0)), Outcome::Fenced(Fence::OldGeneration { current: GENERATION })),
        (with(&|m| m.generation = Generation(2)), UNREGISTERED),
        (with(&|m| m.job.0 = 77), UNREGISTERED),
        (with(&|m| m.worker = WorkerId(3)), UNREGISTERED),
        (with(&|m| m.incarnation = Incarnation(2)), UNREGISTERED),
    ];
    for (message, outcome) in cases {
        assert_eq!(rig.shard.precheck(&message), Some(outcome.clone()));
        assert_eq!(rig.send(&message), outcome);
    }
    assert_eq!(rig.shard.workers(JOB).len(), 1, "nobody was created");
    assert_eq!(rig.send(&tick), Outcome::Accepted);
}

#[test]
fn at_a_new_epoch_the_client_renumbers_from_the_next_expected() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0])));
    rig.send(&client.stage(0, 1, add(FLOATS, 6, 0, &[1.0])));
    let own = ShardCommand::Own { epoch: MapEpoch(2), slots: 0..4096 };
    assert_eq!(rig.command(&own), ShardAnswer::Done);
    let mut cut_again = Client { epoch: 2, next: 1, ..client.clone() };
    let under_old_number = cut_again.stage(0, 0, add(FLOATS, 5, 0, &[8.0]));
    assert_eq!(rig.send(&under_old_number), gap(2), "no repeat: this content was never taken");
    assert_eq!(rig.send(&cut_again.stage(0, 0, add(FLOATS, 5, 0, &[8.0]))), Outcome::Accepted);
    assert_eq!(rig.send(&cut_again.tick(0, 1)), Outcome::Accepted, "the clock's earlier cut is replaced whole");
    assert_eq!((rig.floats(5)[0], rig.floats(6)[0]), (8.0, 0.0));
}

#[test]
fn an_abort_gives_up_a_clock_but_not_a_ticked_one() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0])));
    let abort = client.abort(0);
    assert_eq!(rig.send(&abort), Outcome::Accepted);
    rig.commit(&mut client, 0, add(FLOATS, 5, 0, &[2.0]));
    assert_eq!(rig.send(&abort), Outcome::Accepted, "a late repeat undoes nothing");
    assert_eq!(rig.floats(5)[0], 2.0);
    let late = rig.send(&client.abort(0));
    assert_eq!(refused(late), Refusal::ClockOrder { expected: Clock(1), got: Clock(0) });
}

#[test]
fn clocks_of_another_incarnation_are_not_confirmed() {
    let mut rig = Rig::new();
    let mut first = rig.join(0, 1);
    rig.tick_empty(&mut first, 0..3);
    let mut second = rig.join(0, 2);
    let outcome = rig.send(&second.stage(1, 0, add(FLOATS, 5, 0, &[1.0])));
    assert_eq!(refused(outcome), Refusal::ClockOrder { expected: Clock(3), got: Clock(1) });
}

#[test]
#[should_panic(expected = "an entry applied twice")]
fn an_index_never_comes_twice() {
    let mut rig = Rig::new();
    rig.index -= 1;
    rig.command(&ShardCommand::DropTable(FLOATS));
}

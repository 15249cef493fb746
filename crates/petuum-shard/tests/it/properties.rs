//! Random scripts of commands and messages, late, doubled and wrong, on replicas that take different ways.

use crate::snapshots::{bytes_of, restore};
use crate::support::*;
use bytes::Bytes;
use petuum_shard::{Applied, ReadOutcome, Shard};
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::entry::{self, Entry};
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::outcome::Outcome;
use petuum_types::read::Read;
use petuum_types::{Clock, Incarnation, LogIndex, MapEpoch, Sequence, TableId, WorkerId};
use proptest::prelude::*;

fn payload() -> impl Strategy<Value = Bytes> {
    let value = prop_oneof![4 => -2.0f32..2.0, 1 => Just(f32::NAN), 1 => Just(f32::MAX)];
    let table = prop_oneof![Just(FLOATS), Just(NORMALS), Just(TableId(9))];
    prop_oneof![
        4 => (table, 0u64..6, 0u32..3, prop::collection::vec(value, 1..3)).prop_map(|(t, r, c, v)| add(t, r, c, &v)),
        2 => (0u64..6, any::<(i64, i64)>()).prop_map(|(r, (a, b))| count(r, &[a, b])),
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Bytes::from),
    ]
}

/// A message near enough to what a shard expects that many are taken.
fn message() -> impl Strategy<Value = WorkerMessage> {
    let kind = prop_oneof![Just(Kind::Stage), Just(Kind::Tick), Just(Kind::StageTick), Just(Kind::Abort)];
    let who = (0u32..2, 1u64..4, prop_oneof![8 => Just(1u64), 1 => Just(2u64)]);
    (kind, who, 0u64..8, 0u64..5, 0u64..4, 0u32..3, payload()).prop_map(
        |(kind, (worker, incarnation, epoch), sequence, clock, acked, count, payload)| WorkerMessage {
            kind,
            job: JOB,
            generation: GENERATION,
            worker: WorkerId(worker),
            incarnation: Incarnation(incarnation),
            sequence: Sequence(sequence),
            epoch: MapEpoch(epoch),
            clock: Clock(clock),
            acked_below: Sequence(acked),
            count,
            payload: if matches!(kind, Kind::Stage | Kind::StageTick) { payload } else { Bytes::new() },
        },
    )
}

fn command() -> impl Strategy<Value = ShardCommand> {
    prop_oneof![
        6 => (0u32..2, 1u64..4, any::<bool>()).prop_map(|(w, i, admit)| fence(w, i, admit)),
        6 => (0u32..2, 1u64..4, 0u64..5, any::<bool>()).prop_map(|(w, i, c, keep)| settle(w, i, c, keep)),
        1 => (1u32..4).prop_map(|t| ShardCommand::DropTable(TableId(t))),
        1 => Just(ShardCommand::CreateTable(floats())),
        1 => (1u64..3).prop_map(|e| ShardCommand::Own { epoch: MapEpoch(e), slots: 0..4096 }),
    ]
}

/// One step of a log.
#[derive(Clone, Debug)]
enum Step {
    Messages(Vec<WorkerMessage>),
    /// The next messages that worker 0 or 1 would send, rightly numbered: a commit of its next clock.
    Commit(u32, Bytes),
    Command(ShardCommand),
    Skip,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(message(), 1..4).prop_map(Step::Messages),
        4 => (0u32..2, payload()).prop_map(|(worker, payload)| Step::Commit(worker, payload)),
        2 => command().prop_map(Step::Command),
        1 => Just(Step::Skip),
    ]
}

fn entry_of(shard: &Shard, step: &Step) -> Option<Entry> {
    Some(match step {
        Step::Messages(messages) => Entry::Messages(messages.clone()),
        Step::Command(command) => Entry::Command(command.clone()),
        Step::Skip => return None,
        Step::Commit(worker, payload) => {
            let status = shard.workers(JOB).into_iter().find(|w| w.worker == WorkerId(*worker))?;
            let mut client = Client::new(*worker, status.incarnation.0);
            (client.next, client.epoch) = (status.next_sequence.0, shard.epoch().0);
            let clock = status.clock.0;
            Entry::Messages(vec![client.stage(clock, 0, payload.clone()), client.tick(clock, 1)])
        }
    })
}

fn take(shard: &mut Shard, index: u64, entry: Option<&Entry>) -> Option<Applied> {
    match entry {
        Some(entry) => Some(shard.apply(LogIndex(index), entry)),
        None => {
            shard.skip(LogIndex(index));
            None
        }
    }
}

/// The entry without what was told to come again, and without commands that did not fit yet.
fn taken(entry: Entry, applied: &Applied) -> Entry {
    match (entry, applied) {
        (Entry::Messages(messages), Applied::Messages(outcomes)) => {
            let taken = messages.into_iter().zip(outcomes).filter(|(_, o)| !matches!(o, Outcome::Retry(_)));
            Entry::Messages(taken.map(|(message, _)| message).collect())
        }
        (Entry::Command(_), Applied::Command(ShardAnswer::Refused(_))) => Entry::Messages(Vec::new()),
        (command, _) => command,
    }
}

fn joined() -> Rig {
    let mut rig = Rig::new();
    rig.join(0, 1);
    rig.join(1, 1);
    rig
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// G6, and I10: a snapshot and the log after it give what the whole log gives; clocks never go back (G3); the early
    /// answer is never at odds with the last word; incremental sums equal a recount.
    #[test]
    fn replicas_agree_whatever_way_they_took(steps in prop::collection::vec(step(), 1..60), cut in 0usize..60) {
        let Rig { mut shard, mut index } = joined();
        let mut twin = shard.clone();
        for (at, step) in steps.iter().enumerate() {
            if at == cut {
                twin = restore(&bytes_of(&twin, 100), 77).unwrap();
            }
            let entry = entry_of(&shard, step);
            let before = (shard.min_clock(JOB), shard.workers(JOB));
            index += 1;
            let applied = take(&mut shard, index, entry.as_ref());
            prop_assert_eq!(&applied, &take(&mut twin, index, entry.as_ref()));
            prop_assert!(shard.min_clock(JOB) >= before.0);
            for (was, is) in before.1.iter().zip(shard.workers(JOB)) {
                prop_assert!(is.worker == was.worker && is.clock >= was.clock && is.incarnation >= was.incarnation);
            }
        }
        prop_assert_eq!(&shard, &twin);
        prop_assert_eq!(shard.checksums(), shard.checksums_recomputed());
        prop_assert_eq!(shard.checksums().combined(), twin.checksums().combined());
        prop_assert_eq!(restore(&bytes_of(&shard, 1000), 333).unwrap(), shard);
    }

    /// P4: what a leader answers early is what apply would have answered; only a limit is retryable instead of final.
    #[test]
    fn the_early_answer_never_contradicts_apply(steps in prop::collection::vec(step(), 1..40), last in message()) {
        let Rig { mut shard, mut index } = joined();
        for step in &steps {
            let entry = entry_of(&shard, step);
            index += 1;
            take(&mut shard, index, entry.as_ref());
        }
        if let Some(early) = shard.precheck(&last) {
            let applied = shard.apply(LogIndex(index + 1), &Entry::Messages(vec![last]));
            prop_assert_eq!(applied, Applied::Messages(vec![early]));
        }
    }

    /// G2: a log in which everything that was taken stands again, at once and once more late, gives the rows and clocks of
    /// the log itself. (What was told to come again is another matter: its second coming may be its first effect.)
    #[test]
    fn what_is_sent_twice_counts_once(steps in prop::collection::vec(step(), 1..40)) {
        let Rig { shard: mut once, mut index } = joined();
        let mut twice = once.clone();
        let mut history = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let entry = entry_of(&once, step);
            index += 3;
            let applied = take(&mut once, index, entry.as_ref());
            take(&mut twice, index, entry.as_ref());
            if let Some(again) = entry.zip(applied).map(|(entry, applied)| taken(entry, &applied)) {
                twice.apply(LogIndex(index + 1), &again);
                history.push(again);
                let late = &history[at * 31 % history.len()];
                twice.apply(LogIndex(index + 2), late);
            }
        }
        prop_assert_eq!(once.min_clock(JOB), twice.min_clock(JOB));
        for table in [FLOATS, COUNTERS, NORMALS] {
            for row in 0..6 {
                let values = |shard: &Shard| match shard.read(&Read { epoch: shard.epoch(), ..read(table, &[row]) }) {
                    ReadOutcome::Answer(answer) => Some(answer.rows[0].values.clone()),
                    _ => None,
                };
                prop_assert_eq!(values(&once), values(&twice), "{} row {}", table, row);
            }
        }
    }

    /// P13: reads change nothing, whatever they ask.
    #[test]
    fn reads_never_change_anything(
        steps in prop::collection::vec(step(), 1..20),
        reads in prop::collection::vec((1u32..6, any::<u64>(), 0u64..4, 0u64..4, 0u64..4, 0u64..3), 1..20),
    ) {
        let Rig { mut shard, mut index } = joined();
        for step in &steps {
            let entry = entry_of(&shard, step);
            index += 1;
            take(&mut shard, index, entry.as_ref());
        }
        let before = (shard.clone(), bytes_of(&shard, 500));
        for (table, row, min_clock, own_clock, incarnation, epoch) in reads {
            let read = Read {
                epoch: MapEpoch(epoch),
                min_clock: Clock(min_clock),
                own_clock: Clock(own_clock),
                reader: (incarnation > 0).then_some((WorkerId(0), Incarnation(incarnation))),
                ..read(TableId(table), &[row, row / 2])
            };
            if let ReadOutcome::Answer(answer) = shard.read(&read) {
                prop_assert!(answer.min_clock >= read.min_clock && answer.index == shard.applied());
                prop_assert!(read.reader.is_none() || answer.own_clock >= read.own_clock);
            }
        }
        prop_assert_eq!(&shard, &before.0);
        prop_assert_eq!(bytes_of(&shard, 500), before.1);
    }

    /// I14: bytes from the network never panic and never change rows or clocks unless they are a worker's own message.
    #[test]
    fn no_entry_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let mut rig = joined();
        if let Ok(entry) = Entry::decode(&Bytes::from(bytes)) {
            rig.shard.apply(LogIndex(rig.index + 1), &entry);
        }
        let mut client = Client::new(0, 1);
        let messages = [client.stage(0, 0, add(FLOATS, 5, 0, &[1.0])), client.tick(0, 1), client.stage_tick(1, count(1, &[1, 1]))];
        let encoded: Vec<Bytes> = messages.iter().map(WorkerMessage::encode).collect();
        let mut damaged = entry::encode_messages(&encoded).to_vec();
        let at = at.index(damaged.len());
        damaged[at] = with;
        if let Ok(entry) = Entry::decode(&Bytes::from(damaged)) {
            rig.shard.apply(LogIndex(rig.index + 2), &entry);
        }
        prop_assert_eq!(rig.shard.checksums(), rig.shard.checksums_recomputed());
    }

    #[test]
    fn no_snapshot_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        prop_assert!(restore(&bytes, 50).is_err());
        let good = bytes_of(&joined().shard, 1 << 20);
        let mut damaged = good.clone();
        for (at, with) in flips {
            let at = at.index(damaged.len());
            damaged[at] = with;
        }
        prop_assert_eq!(restore(&damaged, 50).is_ok(), damaged == good);
    }
}

#[test]
fn the_random_scripts_reach_what_they_are_for() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let scripts = prop::collection::vec(step(), 40..60);
    let (mut accepted, mut refused, mut fenced, mut settled) = (0, 0, 0, 0);
    for _ in 0..100 {
        use proptest::strategy::ValueTree;
        let steps = scripts.new_tree(&mut runner).unwrap().current();
        let Rig { mut shard, mut index } = joined();
        for step in &steps {
            let entry = entry_of(&shard, step);
            index += 1;
            match take(&mut shard, index, entry.as_ref()) {
                Some(Applied::Messages(outcomes)) => {
                    accepted += outcomes.iter().filter(|o| matches!(o, Outcome::Accepted)).count();
                    refused += outcomes.iter().filter(|o| matches!(o, Outcome::Refused(_))).count();
                    fenced += outcomes.iter().filter(|o| matches!(o, Outcome::Fenced(_))).count();
                }
                Some(Applied::Command(ShardAnswer::Done)) => settled += 1,
                _ => {}
            }
        }
    }
    let reached = (accepted, refused, fenced, settled);
    assert!(accepted > 500 && refused > 100 && fenced > 100 && settled > 100, "{reached:?}");
}

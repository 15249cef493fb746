//! G6: sums that agree with a recount, and marks at common indices.

use crate::support::*;
use petuum_shard::MARK_INTERVAL;
use petuum_types::LogIndex;
use petuum_types::command::ShardCommand;

#[test]
fn sums_follow_every_change_and_name_the_slot() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.commit(&mut client, 0, add(FLOATS, 5, 0, &[1.0]));
    let before = rig.shard.checksums();
    rig.commit(&mut client, 1, add(FLOATS, 5, 0, &[1.0]));
    rig.commit(&mut client, 2, count(9, &[1, 1]));
    let after = rig.shard.checksums();
    assert_eq!(after, rig.shard.checksums_recomputed());
    let slot = petuum_types::Slot::of(FLOATS, petuum_types::RowId(5));
    assert_eq!((before.slots.len(), before.slots[0].0, after.slots.len()), (1, slot, 2));
    assert!(before.slots[0].1 != after.slots.iter().find(|(s, _)| *s == slot).unwrap().1);
    assert_ne!(before.combined(), after.combined());
    rig.command(&ShardCommand::DropTable(FLOATS));
    assert_eq!(rig.shard.checksums(), rig.shard.checksums_recomputed());
    assert_eq!(rig.shard.checksums().slots.len(), 1);
}

#[test]
fn the_rest_covers_sessions_and_staged_bytes() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let mut twin = rig.clone();
    let mut twin_client = client.clone();
    rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0])));
    twin.send(&twin_client.stage(0, 0, add(FLOATS, 5, 0, &[1.5])));
    let (ours, theirs) = (rig.shard.checksums(), twin.shard.checksums());
    assert_eq!((&ours.slots, ours.index), (&theirs.slots, theirs.index));
    assert_ne!(ours.rest, theirs.rest);
}

#[test]
fn marks_stand_at_multiples_whether_skipped_jumped_or_applied() {
    let mut jumped = Rig::new();
    let mut client = jumped.join(0, 1);
    jumped.commit(&mut client, 0, add(FLOATS, 5, 0, &[1.0]));
    let mut skipped = jumped.clone();
    let mut again = client.clone();
    for index in skipped.index + 1..=MARK_INTERVAL {
        skipped.shard.skip(LogIndex(index));
    }
    (jumped.index, skipped.index) = (MARK_INTERVAL, MARK_INTERVAL);
    jumped.commit(&mut client, 1, add(FLOATS, 5, 0, &[1.0]));
    skipped.commit(&mut again, 1, add(FLOATS, 5, 0, &[1.0]));
    assert_eq!(jumped.shard.checksum_marks(), skipped.shard.checksum_marks());
    assert_eq!(jumped.shard.checksum_marks().len(), 1);
    for n in 2..40 {
        skipped.shard.skip(LogIndex(n * MARK_INTERVAL));
    }
    let marks = skipped.shard.checksum_marks();
    assert_eq!((marks.len(), marks.last().unwrap().0), (16, LogIndex(39 * MARK_INTERVAL)));
}

//! Snapshots: equal states give equal bytes, bytes give the equal state back, and damage is always found (G9).

use crate::support::*;
use bytes::Bytes;
use petuum_shard::{Damaged, Restore, Settings, Shard};
use petuum_types::outcome::Outcome;
use petuum_types::{LogIndex, ShardId};

pub(crate) fn bytes_of(shard: &Shard, piece: usize) -> Vec<u8> {
    let pieces: Vec<Bytes> = shard.view().pieces(piece).collect();
    let (last, whole) = pieces.split_last().unwrap();
    assert!(whole.iter().all(|p| p.len() == piece) && !last.is_empty() && last.len() <= piece);
    pieces.concat()
}

pub(crate) fn restore(bytes: &[u8], piece: usize) -> Result<Shard, Damaged> {
    let mut restore = Restore::new(ShardId(0), Settings::default());
    for piece in bytes.chunks(piece) {
        restore.push(piece)?;
    }
    restore.finish()
}

/// A state with a bit of everything.
fn full() -> Rig {
    let mut rig = Rig::new();
    let (mut a, mut b) = (rig.join(0, 1), rig.join(1, 2));
    rig.commit(&mut a, 0, add(FLOATS, 5, 1, &[1.5, -2.0]));
    rig.commit(&mut a, 1, add(NORMALS, 900, 0, &[f32::NAN, 1.0]));
    rig.commit(&mut b, 0, count(3, &[1, -1]));
    rig.send(&b.stage(1, 0, add(FLOATS, 6, 0, &[9.0])));
    rig.send(&b.stage(1, 1, count(4, &[9, 9])));
    rig.send(&b.stage(2, 0, count(4, &[9, 9])));
    refused(rig.send(&b.tick(7, 0)));
    rig.join(2, 3);
    rig.command(&fence(2, 4, false));
    rig.command(&fence(3, 5, false));
    rig.command(&settle(3, 5, 2, false));
    rig.command(&petuum_types::command::ShardCommand::DropTable(petuum_types::TableId(44)));
    rig.shard.skip(LogIndex(1024));
    rig.index = 1024;
    rig
}

#[test]
fn a_restored_shard_is_equal_and_goes_on_alike() {
    let mut rig = full();
    for piece in [1, 7, 64, 1 << 20] {
        let bytes = bytes_of(&rig.shard, piece);
        assert_eq!(bytes, bytes_of(&rig.shard, 4096));
        assert_eq!(restore(&bytes, piece).unwrap(), rig.shard);
    }
    let mut twin = Rig { shard: restore(&bytes_of(&rig.shard, 100), 33).unwrap(), index: rig.index };
    let mut b = Client { next: 6, ..Client::new(1, 2) };
    let tick = b.tick(1, 2);
    assert_eq!((rig.send(&tick), twin.send(&tick)), (Outcome::Accepted, Outcome::Accepted));
    assert_eq!(rig.shard, twin.shard);
    assert_eq!(rig.floats(6)[0], 9.0);
}

#[test]
fn a_view_stays_while_the_shard_goes_on() {
    let mut rig = full();
    let before = bytes_of(&rig.shard, 512);
    let view = rig.shard.view();
    assert_eq!(view.index(), LogIndex(1024));
    let mut a = Client { next: 4, ..Client::new(0, 1) };
    rig.commit(&mut a, 2, add(FLOATS, 5, 0, &[100.0]));
    assert_eq!(view.pieces(512).collect::<Vec<_>>().concat(), before);
}

#[test]
fn golden_bytes_of_an_empty_shard() {
    let bytes = bytes_of(&Shard::new(ShardId(3), Settings::default()), 1 << 20);
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, GOLDEN);
}

const GOLDEN: &str = concat!(
    "5054534801000000", // preamble
    "0100000009000000",
    "1c0294236fcbe846",   // head: tag, length, chain
    "010300000000000000", // codec format, id 3, and zeros
    "ff00000010000000",
    "a82e0de8186e3369",                 // end: tag, length, chain
    "01000000000000000000000000000000", // one record before it, rows sum to 0
);

/// Every kind of record: their bytes never change under this version.
#[test]
fn golden_sum_of_a_full_state() {
    assert_eq!(petuum_types::checksum::hash(0, &bytes_of(&full().shard, 1 << 20)), 13_240_832_229_588_217_659);
}

#[test]
fn every_flipped_byte_and_every_cut_is_an_error() {
    let bytes = bytes_of(&full().shard, 1 << 20);
    for at in 0..bytes.len() {
        for bit in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            assert!(restore(&damaged, 1 << 20).is_err(), "byte {at} with {bit:#x} flipped");
        }
        assert!(restore(&bytes[..at], 1 << 20).is_err(), "cut at {at}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let bytes = bytes_of(&full().shard, 1 << 20);
    let mut other_version = bytes.clone();
    other_version[4] = 2;
    assert!(matches!(restore(&other_version, 99), Err(Damaged::Preamble { .. })));
    assert!(matches!(restore(&bytes[..bytes.len() - 1], 99), Err(Damaged::Cut { .. })));
    assert!(matches!(restore(&[], 99), Err(Damaged::Cut { records: 0 })));
    let longer = [bytes.clone(), vec![0]].concat();
    assert!(matches!(restore(&longer, 1 << 20), Err(Damaged::Trailing { bytes: 1 })));
    let mut of_another = Restore::new(ShardId(1), Settings::default());
    let damaged = of_another.push(&bytes).unwrap_err();
    assert!(damaged.to_string().contains("a snapshot of shard 0; expected shard 1"), "{damaged}");
    assert_eq!(of_another.push(&[]), Err(damaged.clone()), "an error stays");
    assert_eq!(of_another.finish(), Err(damaged));
}

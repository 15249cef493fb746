//! A clock's updates as parts: encoded once per shard, and from then on the same bytes on the wire, in the log and in
//! the shard's state (P1, P2).
//!
//! Sections lie in order of (table, first column, columns), so that rows of one shape share a header; the rows of a
//! section lie in slot order. The same updates, map and size give the same bytes.

use super::clock::ClockUpdates;
use bytes::Bytes;
use petuum_types::limits::PART_BYTES_MAX;
use petuum_types::map::ShardMap;
use petuum_types::part::{self, HEADER_BYTES, SECTION_HEADER_BYTES, SectionData};
use petuum_types::{RowId, ShardId, Slot, TableId, ValueType};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a row's id in a section.
const ROW_ID_BYTES: usize = 8;
/// A part of one row of one column of the widest type.
const PART_BYTES_MIN: usize = HEADER_BYTES + SECTION_HEADER_BYTES + ROW_ID_BYTES + 8;

/// What rows of one section share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    table: TableId,
    first_column: u32,
    columns: u32,
    value_type: ValueType,
}

/// A run of columns of one row; the order is that of the rows in a shard's parts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    shape: Shape,
    slot: Slot,
    row: RowId,
    start: usize,
    end: usize,
}

/// One shard's share, before it is encoded.
#[derive(Default)]
struct Share {
    runs: Vec<Run>,
    values: Vec<u8>,
}

/// The parts of a clock for each shard that it adds to, each of at most `part_bytes`; a long row is cut by column range.
/// No part and no shard for a clock without updates.
///
/// # Panics
/// If `part_bytes` lies outside 48 bytes to [`PART_BYTES_MAX`], which settings are checked for, or the map leaves a
/// slot without a shard.
#[must_use]
pub fn cut(updates: &ClockUpdates, map: &ShardMap, part_bytes: usize) -> BTreeMap<ShardId, Vec<Bytes>> {
    assert!(
        (PART_BYTES_MIN..=PART_BYTES_MAX).contains(&part_bytes),
        "parts of {part_bytes} bytes; expected {PART_BYTES_MIN} to {PART_BYTES_MAX}"
    );
    let owners = Owners::new(map);
    let mut shares: BTreeMap<ShardId, Share> = BTreeMap::new();
    for (table, row, delta) in updates.iter() {
        let slot = Slot::of(table, row);
        let share = shares.entry(owners.of(slot)).or_default();
        let run_bytes_max = part_bytes - (HEADER_BYTES + SECTION_HEADER_BYTES + ROW_ID_BYTES);
        let value_type = delta.value_type();
        let runs = &mut share.runs;
        delta.runs(run_bytes_max, &mut share.values, |first_column, Range { start, end }| {
            let columns = u32::try_from((end - start) / value_type.bytes()).expect("columns are u32");
            runs.push(Run { shape: Shape { table, first_column, columns, value_type }, slot, row, start, end });
        });
    }
    shares.retain(|_, share| !share.runs.is_empty());
    shares.into_iter().map(|(shard, share)| (shard, share.encode(part_bytes))).collect()
}

impl Share {
    fn encode(mut self, part_bytes: usize) -> Vec<Bytes> {
        self.runs.sort_unstable();
        let mut parts = Vec::new();
        let mut sections: Vec<(Shape, SectionData<'_>)> = Vec::new();
        let mut bytes = HEADER_BYTES;
        for run in &self.runs {
            let values = &self.values[run.start..run.end];
            let row_bytes = ROW_ID_BYTES + values.len();
            let opens = sections.last().is_none_or(|(shape, _)| *shape != run.shape);
            let mut needed = row_bytes + if opens { SECTION_HEADER_BYTES } else { 0 };
            if bytes + needed > part_bytes {
                parts.push(finish(&mut sections));
                bytes = HEADER_BYTES;
                needed = row_bytes + SECTION_HEADER_BYTES;
            }
            bytes += needed;
            match sections.last_mut() {
                Some((shape, section)) if *shape == run.shape => section.rows.push((run.row, values)),
                _ => sections.push((run.shape, run.shape.section((run.row, values)))),
            }
        }
        parts.push(finish(&mut sections));
        parts
    }
}

fn finish(sections: &mut Vec<(Shape, SectionData<'_>)>) -> Bytes {
    let sections: Vec<_> = sections.drain(..).map(|(_, section)| section).collect();
    part::encode(&sections)
}

impl Shape {
    fn section(self, first: (RowId, &[u8])) -> SectionData<'_> {
        let Self { table, first_column, columns, value_type } = self;
        SectionData { table, value_type, first_column, columns, rows: vec![first] }
    }
}

/// The map's slot ranges in order, for one look-up per row.
struct Owners {
    ends: Vec<(u16, ShardId)>,
}

impl Owners {
    fn new(map: &ShardMap) -> Self {
        let mut ends: Vec<_> = map.shards.iter().map(|(shard, place)| (place.slots.end, *shard)).collect();
        ends.sort_unstable();
        Self { ends }
    }

    fn of(&self, slot: Slot) -> ShardId {
        let at = self.ends.partition_point(|(end, _)| *end <= slot.0);
        self.ends.get(at).map(|(_, shard)| *shard).expect("a valid map has a shard for every slot")
    }
}

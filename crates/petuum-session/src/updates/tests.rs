//! P1: whatever the threads add, the parts add up to it; what does not fit is refused where it is made.

use super::*;
use bytes::Bytes;
use petuum_types::limits::ROW_COLUMNS_MAX;
use petuum_types::map::ShardMap;
use petuum_types::part::{HEADER_BYTES, Part, SECTION_HEADER_BYTES};
use petuum_types::{
    ErrorKind, Initial, JobId, NodeId, NonFinite, RowId, ShardId, Slot, Staleness, TableId, TableSchema, ValueType,
    Values,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(crate) fn table(id: u32, width: u32, value_type: ValueType) -> TableSchema {
    TableSchema {
        id: TableId(id),
        job: JobId(1),
        name: format!("t{id}"),
        width,
        value_type,
        initial: Initial::Zero,
        seed: 0,
        non_finite: NonFinite::Reject,
        staleness: Staleness(1),
    }
}

pub(crate) fn map(shards: u32) -> ShardMap {
    ShardMap::spread([(NodeId(1), "127.0.0.1:1".into())].into(), shards, 1).unwrap()
}

type Cell = (TableId, RowId, u32);

/// The sum of all parts by cell, as f64; checks shards, sizes and the order of rows on the way.
fn decode(parts: &BTreeMap<ShardId, Vec<Bytes>>, map: &ShardMap, part_bytes: usize) -> BTreeMap<Cell, i64> {
    let mut sums = BTreeMap::new();
    for (shard, parts) in parts {
        for part in parts {
            assert!(part.len() <= part_bytes, "{} bytes", part.len());
            for section in Part::parse(part).unwrap().sections() {
                let slots: Vec<Slot> = section.iter().map(|(row, _)| Slot::of(section.table, row)).collect();
                assert!(slots.is_sorted(), "rows of a section lie in slot order");
                for (row, bytes) in section.iter() {
                    assert_eq!(map.shard_of(section.table, row), *shard);
                    add_row(&mut sums, section.table, row, section.first_column, section.value_type, bytes);
                }
            }
        }
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

fn add_row(sums: &mut BTreeMap<Cell, i64>, table: TableId, row: RowId, first: u32, value_type: ValueType, le: &[u8]) {
    let values: Vec<i64> = match Values::read_le(value_type, le).unwrap() {
        #[expect(clippy::cast_possible_truncation, reason = "the test adds small integers")]
        Values::F32(values) => values.iter().map(|v| *v as i64).collect(),
        Values::I64(values) => values,
    };
    for (column, value) in (first..).zip(values) {
        *sums.entry((table, row, column)).or_default() += value;
    }
}

#[derive(Clone, Debug)]
struct Inc {
    thread: usize,
    wide: bool,
    row: u64,
    first: u32,
    values: Vec<i8>,
}

fn incs() -> impl Strategy<Value = Vec<Inc>> {
    let columns = prop_oneof![0u32..40, 240u32..270, 0u32..3000];
    let inc = (0usize..3, any::<bool>(), 0u64..6, columns, prop::collection::vec(any::<i8>(), 0..300));
    prop::collection::vec(
        inc.prop_map(|(thread, wide, row, first, values)| Inc { thread, wide, row, first, values }),
        0..20,
    )
}

proptest! {
    #[test]
    fn p1_the_sum_of_decoded_parts_is_the_sum_of_incs(
        incs in incs(),
        shards in 1u32..9,
        part_bytes in prop_oneof![48usize..400, 400usize..100_000],
    ) {
        let (wide, narrow) = (table(1, 4000, ValueType::F32), table(2, 4000, ValueType::I64));
        let mut buffers = vec![UpdateBuffer::default(); 3];
        let mut expected: BTreeMap<Cell, i64> = BTreeMap::new();
        for inc in &incs {
            let schema = if inc.wide { &wide } else { &narrow };
            let buffer = &mut buffers[inc.thread];
            if inc.wide {
                let values: Vec<f32> = inc.values.iter().map(|v| f32::from(*v)).collect();
                buffer.inc_dense(schema, RowId(inc.row), inc.first, values.as_slice()).unwrap();
            } else {
                let values: Vec<i64> = inc.values.iter().map(|v| i64::from(*v)).collect();
                buffer.inc_dense(schema, RowId(inc.row), inc.first, values.as_slice()).unwrap();
            }
            for (column, value) in (inc.first..).zip(&inc.values) {
                *expected.entry((schema.id, RowId(inc.row), column)).or_default() += i64::from(*value);
            }
        }
        expected.retain(|_, sum| *sum != 0);
        let updates = ClockUpdates::merge(buffers.iter_mut().map(UpdateBuffer::take));
        prop_assert!(buffers.iter().all(UpdateBuffer::is_empty));
        let map = map(shards);
        let parts = cut(&updates, &map, part_bytes);
        prop_assert!(parts.values().all(|parts| !parts.is_empty()));
        prop_assert_eq!(decode(&parts, &map, part_bytes), expected.clone());
        prop_assert_eq!(cut(&updates, &map, part_bytes), parts, "the same bytes again");
        for ((table, row, column), sum) in expected {
            let value_type = if table == wide.id { ValueType::F32 } else { ValueType::I64 };
            let mut values = Values::zeros(value_type, 4000);
            updates.overlay(table, row, &mut values);
            match values {
                #[expect(clippy::cast_precision_loss, reason = "small integers")]
                Values::F32(values) => prop_assert_eq!(values[column as usize], sum as f32),
                Values::I64(values) => prop_assert_eq!(values[column as usize], sum),
            }
        }
    }
}

#[test]
fn p1_golden_parts_of_a_clock() {
    let (f, i) = (table(3, 600, ValueType::F32), table(4, 2, ValueType::I64));
    let mut buffer = UpdateBuffer::default();
    buffer.inc(&f, RowId(7), 4, 1.5f32).unwrap();
    buffer.inc(&f, RowId(7), 6, -2.0f32).unwrap();
    buffer.inc(&f, RowId(7), 599, 1.0f32).unwrap();
    buffer.inc(&i, RowId(1), 1, 258i64).unwrap();
    buffer.inc(&i, RowId(2), 1, -1i64).unwrap();
    let parts = cut(&buffer.take(), &map(1), 4096);
    let hex: String = parts[&ShardId(0)][0].iter().map(|b| format!("{b:02x}")).collect();
    let expected = concat!(
        "0100030000000000",
        "030000000101000001000000040000000300000000000000", // table 3, columns 4..7: the gap of one is filled
        "030000000101000001000000570200000100000000000000", // table 3, column 599: a section of its own
        "040000000201000002000000010000000100000000000000", // table 4, column 1 of two rows
        "0700000000000000",
        "0000c03f00000080000000c0", // -0 adds nothing
        "0700000000000000",
        "0000803f",
        "0200000000000000", // row 2 has the lower slot
        "0100000000000000",
        "ffffffffffffffff",
        "0201000000000000",
    );
    assert_eq!(hex, expected);
    assert_eq!(parts[&ShardId(0)].len(), 1);
}

#[test]
fn p1_an_empty_clock_has_no_parts() {
    assert!(cut(&ClockUpdates::default(), &map(4), 4096).is_empty());
    let mut buffer = UpdateBuffer::default();
    buffer.inc(&table(1, 2, ValueType::I64), RowId(0), 0, 5i64).unwrap();
    buffer.inc(&table(1, 2, ValueType::I64), RowId(0), 0, -5i64).unwrap();
    assert!(cut(&buffer.take(), &map(4), 4096).is_empty(), "what adds nothing is not sent");
}

#[test]
fn p1_a_few_columns_of_a_row_of_a_million_stay_few() {
    let schema = table(1, ROW_COLUMNS_MAX, ValueType::F32);
    let mut buffer = UpdateBuffer::default();
    for column in [0, 17, 500_000, ROW_COLUMNS_MAX - 1] {
        buffer.inc(&schema, RowId(0), column, 1.0f32).unwrap();
    }
    assert!(buffer.bytes() < 8 * 1024, "{} bytes", buffer.bytes());
    let parts = cut(&buffer.take(), &map(1), 4096);
    assert_eq!(parts[&ShardId(0)][0].len(), HEADER_BYTES + 4 * (SECTION_HEADER_BYTES + 8 + 4));
}

#[test]
fn p1_columns_far_apart_keep_their_places() {
    let schema = table(1, 2000, ValueType::I64);
    let columns = [255, 256, 511, 1024, 1279, 1536];
    let mut buffer = UpdateBuffer::default();
    for column in columns {
        buffer.inc(&schema, RowId(0), column, i64::from(column)).unwrap();
    }
    let map = map(1);
    let sums = decode(&cut(&buffer.take(), &map, 4096), &map, 4096);
    let expected = columns.map(|column| ((schema.id, RowId(0), column), i64::from(column)));
    assert_eq!(sums, BTreeMap::from(expected));
}

#[test]
fn p1_a_row_longer_than_a_part_is_cut_by_column_range() {
    let schema = table(1, 100_000, ValueType::I64);
    let mut buffer = UpdateBuffer::default();
    buffer.inc_dense(&schema, RowId(0), 0, vec![1i64; 100_000].as_slice()).unwrap();
    let parts = cut(&buffer.take(), &map(1), 64 * 1024);
    let bytes: usize = parts[&ShardId(0)].iter().map(Bytes::len).sum();
    assert_eq!(parts[&ShardId(0)].len(), 13);
    assert!(bytes < 800_000 + 13 * 64, "{bytes} bytes");
}

#[test]
fn p1_threads_add_up_in_thread_order() {
    let schema = table(1, 1, ValueType::F32);
    let sum = |order: [f32; 3]| {
        let updates = ClockUpdates::merge(order.map(|value| {
            let mut buffer = UpdateBuffer::default();
            buffer.inc(&schema, RowId(0), 0, value).unwrap();
            buffer.take()
        }));
        let mut values = Values::F32(vec![0.0]);
        updates.overlay(schema.id, RowId(0), &mut values);
        values.as_f32().unwrap()[0]
    };
    // 1 is lost beside 2^24, unless the large ones cancel first.
    assert_eq!(sum([16_777_216.0, 1.0, -16_777_216.0]), 0.0);
    assert_eq!(sum([16_777_216.0, -16_777_216.0, 1.0]), 1.0);
}

#[test]
fn untouched_columns_keep_every_bit_and_i64_wraps() {
    let (f, i) = (table(1, 3, ValueType::F32), table(2, 1, ValueType::I64));
    let mut buffer = UpdateBuffer::default();
    buffer.inc(&f, RowId(0), 1, -0.0f32).unwrap();
    buffer.inc(&f, RowId(0), 2, 1.0f32).unwrap();
    buffer.inc(&i, RowId(0), 0, i64::MAX).unwrap();
    buffer.inc(&i, RowId(0), 0, 1i64).unwrap();
    let mut values = Values::F32(vec![-0.0, -0.0, -0.0]);
    buffer.overlay(f.id, RowId(0), &mut values);
    assert_eq!(values, Values::F32(vec![-0.0, -0.0, 1.0]));
    let mut values = Values::I64(vec![-1]);
    buffer.overlay(i.id, RowId(0), &mut values);
    assert_eq!(values, Values::I64(vec![i64::MAX]));
}

#[test]
fn what_does_not_fit_is_named_and_changes_nothing() {
    let (f, i) = (table(1, 4, ValueType::F32), table(2, 4, ValueType::I64));
    let mut buffer = UpdateBuffer::default();
    buffer.inc(&f, RowId(5), 3, 3e38f32).unwrap();
    let before = format!("{buffer:?}");
    let refused = [
        (
            buffer.inc(&f, RowId(5), 4, 1.0f32),
            "table \"t1\", row 5: columns 4..5; expected columns below the table's width 4",
        ),
        (buffer.inc_dense(&f, RowId(6), u32::MAX, [0.5f32; 2].as_slice()), "row 6: columns 4294967295..4294967297"),
        (buffer.inc(&f, RowId(5), 0, 1i64), "row 5: expected values of type f32, got i64"),
        (buffer.inc(&i, RowId(9), 0, 1.0f32), "table \"t2\", row 9: expected values of type i64, got f32"),
        (buffer.inc_dense(&f, RowId(5), 1, [1.0, f32::NAN].as_slice()), "row 5: column 2: an update of NaN"),
        (buffer.inc_dense(&f, RowId(5), 1, [1.0, 1.0, 3e38].as_slice()), "column 3: adding 3"),
        (buffer.inc(&f, RowId(8), 1, f32::INFINITY), "row 8: column 1: an update of inf"),
    ];
    for (result, message) in refused {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(message), "{error}");
    }
    assert_eq!(format!("{buffer:?}"), before);
}

#[test]
fn a_table_that_drops_or_accepts_what_is_not_finite_takes_it() {
    let mut schema = TableSchema { non_finite: NonFinite::Drop, ..table(1, 2, ValueType::F32) };
    let mut buffer = UpdateBuffer::default();
    buffer.inc_dense(&schema, RowId(0), 0, [f32::NAN, 2.0].as_slice()).unwrap();
    let mut values = Values::F32(vec![1.0, 1.0]);
    buffer.overlay(schema.id, RowId(0), &mut values);
    assert_eq!(values, Values::F32(vec![1.0, 3.0]), "the shard will leave the cell unchanged");
    schema.non_finite = NonFinite::Accept;
    schema.id = TableId(2);
    buffer.inc(&schema, RowId(0), 0, f32::INFINITY).unwrap();
    let mut values = Values::F32(vec![1.0, 1.0]);
    buffer.overlay(schema.id, RowId(0), &mut values);
    assert_eq!(values, Values::F32(vec![f32::INFINITY, 1.0]));
}

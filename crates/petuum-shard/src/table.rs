//! Tables and their rows, with the sums that replicas compare.
//!
//! Rows lie by slot, each slot's behind one shared pointer: a copy of the state costs a pointer per slot, and a change
//! after it copies one slot's index and the row's values, not the table. A row exists once an update has reached it;
//! until then it is its initial value (P13).
//!
//! Invariant between entries: a slot's sum is the wrapping sum of its rows' sums, a table's of its slots'.

use petuum_kernels::{add_f32, add_finite_f32, add_i64, f32_le_bytes, i64_le_bytes, initial_row};
use petuum_types::part::Part;
use petuum_types::{LogIndex, NonFinite, RowId, Slot, TableId, TableSchema, Values, checksum};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every table of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tables {
    pub(crate) live: BTreeMap<TableId, Table>,
    /// Ids are never reused, so that a late create cannot bring a table back.
    pub(crate) dropped: BTreeSet<TableId>,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Table {
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) slots: BTreeMap<Slot, SlotRows>,
    pub(crate) rows: u64,
    pub(crate) sum: u64,
    /// Values left out because they, or their sum, were not finite.
    pub(crate) non_finite: u64,
}

/// A table's rows in one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SlotRows {
    pub(crate) rows: Arc<BTreeMap<RowId, Row>>,
    pub(crate) sum: u64,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) values: Arc<Values>,
    pub(crate) changed: LogIndex,
    /// As counted in the slot's sum; 0 for a row not counted yet.
    pub(crate) sum: u64,
}

/// Rows changed by an entry, whose sums are computed once at its end however many parts and workers touched them.
#[derive(Debug, Default)]
pub(crate) struct Touched(Vec<(TableId, RowId)>);

impl Tables {
    pub(crate) fn schema(&self, table: TableId) -> Option<&TableSchema> {
        self.live.get(&table).map(|t| t.schema.as_ref())
    }

    pub(crate) fn was_dropped(&self, table: TableId) -> bool {
        self.dropped.contains(&table)
    }

    pub(crate) fn count(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn create(&mut self, schema: TableSchema) {
        self.live.insert(schema.id, Table::new(schema));
    }

    pub(crate) fn drop_table(&mut self, table: TableId) {
        self.live.remove(&table);
        self.dropped.insert(table);
    }

    /// The wrapping sum of all rows' sums.
    pub(crate) fn sum(&self) -> u64 {
        self.live.values().fold(0, |sum, table| sum.wrapping_add(table.sum))
    }

    /// Adds a part that was checked when it came, and returns how many values were left out as not finite. Sections of
    /// tables dropped since are passed over.
    pub(crate) fn apply_part(&mut self, index: LogIndex, payload: &[u8], touched: &mut Touched) -> u64 {
        let part = Part::parse(payload).expect("a part is checked before it is kept");
        let mut left_out = 0;
        for section in part.sections() {
            let Some(table) = self.live.get_mut(&section.table) else { continue };
            let before = table.non_finite;
            for (row, values) in section.iter() {
                table.add(index, row, section.first_column as usize, values);
                touched.0.push((section.table, row));
            }
            left_out += table.non_finite - before;
        }
        left_out
    }

    /// Brings the sums of touched rows up to date.
    pub(crate) fn rehash(&mut self, mut touched: Touched) {
        touched.0.sort_unstable();
        touched.0.dedup();
        for (table, row) in touched.0 {
            self.live.get_mut(&table).expect("messages drop no tables").rehash(row);
        }
    }
}

impl Table {
    pub(crate) fn new(schema: TableSchema) -> Self {
        Self { schema: Arc::new(schema), slots: BTreeMap::new(), rows: 0, sum: 0, non_finite: 0 }
    }

    pub(crate) fn row(&self, row: RowId) -> Option<&Row> {
        self.slots.get(&Slot::of(self.schema.id, row))?.rows.get(&row)
    }

    /// Adds little-endian values to the row's columns from `first` on.
    fn add(&mut self, index: LogIndex, id: RowId, first: usize, values_le: &[u8]) {
        let slot = self.slots.entry(Slot::of(self.schema.id, id)).or_default();
        let row = Arc::make_mut(&mut slot.rows).entry(id).or_insert_with(|| {
            self.rows += 1;
            Row { values: Arc::new(initial_row(&self.schema, id)), changed: LogIndex(0), sum: 0 }
        });
        row.changed = index;
        let end = first + values_le.len() / self.schema.value_type.bytes();
        match (Arc::make_mut(&mut row.values), self.schema.non_finite) {
            (Values::I64(values), _) => add_i64(&mut values[first..end], values_le),
            (Values::F32(values), NonFinite::Accept) => add_f32(&mut values[first..end], values_le),
            // Under `reject` updates are finite, but a sum may still overflow: the table stays finite all the same.
            (Values::F32(values), NonFinite::Reject | NonFinite::Drop) => {
                self.non_finite += add_finite_f32(&mut values[first..end], values_le);
            }
        }
    }

    fn rehash(&mut self, id: RowId) {
        let table = self.schema.id;
        let slot = self.slots.get_mut(&Slot::of(table, id)).expect("a touched row has a slot");
        let row = Arc::make_mut(&mut slot.rows).get_mut(&id).expect("a touched row exists");
        let sum = row_sum(table, id, row);
        let difference = sum.wrapping_sub(row.sum);
        row.sum = sum;
        slot.sum = slot.sum.wrapping_add(difference);
        self.sum = self.sum.wrapping_add(difference);
    }

    /// Puts back a row of a snapshot.
    pub(crate) fn restore(&mut self, id: RowId, changed: LogIndex, values: Values) {
        let table = self.schema.id;
        let mut row = Row { values: Arc::new(values), changed, sum: 0 };
        row.sum = row_sum(table, id, &row);
        let slot = self.slots.entry(Slot::of(table, id)).or_default();
        slot.sum = slot.sum.wrapping_add(row.sum);
        self.sum = self.sum.wrapping_add(row.sum);
        self.rows += 1;
        let before = Arc::make_mut(&mut slot.rows).insert(id, row);
        assert!(before.is_none(), "{table}, {id} twice in a snapshot whose rows were checked to be in order");
    }
}

/// A row's sum over everything that makes it what it is.
pub(crate) fn row_sum(table: TableId, id: RowId, row: &Row) -> u64 {
    let mut key = [0; 20];
    key[..4].copy_from_slice(&table.0.to_le_bytes());
    key[4..12].copy_from_slice(&id.0.to_le_bytes());
    key[12..].copy_from_slice(&row.changed.0.to_le_bytes());
    checksum::hash(checksum::hash(0, &key), &le_bytes(&row.values))
}

pub(crate) fn le_bytes(values: &Values) -> Cow<'_, [u8]> {
    match values {
        Values::F32(values) => f32_le_bytes(values),
        Values::I64(values) => i64_le_bytes(values),
    }
}

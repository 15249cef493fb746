//! What one clock adds to a job's rows, of one thread or of all threads of a worker.
//!
//! Invariants: rows are in order of (table, row); a row that is here was added to.

use super::delta::{Delta, Unfit};
use super::scalar::ValuesRef;
use petuum_types::{RowId, TableId, TableSchema, Values};
use std::collections::BTreeMap;

/// Bytes that a row's bookkeeping takes, roughly, besides its values: counted so that many tiny rows have a bound too.
const ROW_OVERHEAD_BYTES: usize = 96;

/// Updates of one clock.
#[derive(Clone, Debug, Default)]
pub struct ClockUpdates {
    rows: BTreeMap<(TableId, RowId), Delta>,
    bytes: usize,
}

impl ClockUpdates {
    /// The updates of all threads for one clock, added up in the order given, which is thread order (P1): the order of
    /// f32 additions, so that the same updates give the same bits.
    #[must_use]
    pub fn merge(threads: impl IntoIterator<Item = Self>) -> Self {
        threads.into_iter().reduce(Self::with).unwrap_or_default()
    }

    fn with(mut self, later: Self) -> Self {
        for (key, delta) in later.rows {
            match self.rows.get_mut(&key) {
                Some(earlier) => earlier.merge(delta),
                None => {
                    self.rows.insert(key, delta);
                }
            }
        }
        self.bytes = self.rows.values().map(|delta| ROW_OVERHEAD_BYTES + delta.bytes()).sum();
        self
    }

    /// Adds this clock's updates of a row to its values as read (own-write overlay, G5).
    pub fn overlay(&self, table: TableId, row: RowId, values: &mut Values) {
        if let Some(delta) = self.rows.get(&(table, row)) {
            delta.overlay(values);
        }
    }

    /// Whether this clock adds to the row.
    #[must_use]
    pub fn touches(&self, table: TableId, row: RowId) -> bool {
        self.rows.contains_key(&(table, row))
    }

    /// How many rows are added to.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing is added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory, roughly.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds to a row, or changes nothing. The columns are within the table's width.
    pub(super) fn add(
        &mut self,
        schema: &TableSchema,
        row: RowId,
        first: u32,
        values: ValuesRef<'_>,
    ) -> Result<(), Unfit> {
        use std::collections::btree_map::Entry;
        match self.rows.entry((schema.id, row)) {
            Entry::Occupied(mut delta) => self.bytes += delta.get_mut().add(schema, first, values)?,
            Entry::Vacant(slot) => {
                let mut delta = Delta::new(schema);
                self.bytes += ROW_OVERHEAD_BYTES + delta.add(schema, first, values)?;
                slot.insert(delta);
            }
        }
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TableId, RowId, &Delta)> {
        self.rows.iter().map(|((table, row), delta)| (*table, *row, delta))
    }
}

//! One thread's updates of the clock it is in (P1), checked where they are made, so that a refused clock is rare (P4).
//!
//! Invariants: everything in a buffer fits its table's schema; a refused call changes nothing.

use super::clock::ClockUpdates;
use super::delta::Unfit;
use super::scalar::{Scalar, ValuesRef};
use petuum_types::{Error, ErrorKind, RowId, TableId, TableSchema, Values};

/// The updates of one thread since its last `clock()`.
#[derive(Clone, Debug, Default)]
pub struct UpdateBuffer {
    updates: ClockUpdates,
}

impl UpdateBuffer {
    /// Adds one value to a column.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] naming table, row, what was expected and what came: a column past the width, a
    /// value of another type, or, where the table rejects them, a sum of this clock's updates that is not finite.
    pub fn inc(
        &mut self,
        schema: &TableSchema,
        row: RowId,
        column: u32,
        value: impl Into<Scalar>,
    ) -> Result<(), Error> {
        self.inc_dense(schema, row, column, &value.into())
    }

    /// Adds to consecutive columns from `first_column` on; to none if `values` is empty.
    ///
    /// # Errors
    /// As [`UpdateBuffer::inc`].
    pub fn inc_dense<'a>(
        &mut self,
        schema: &TableSchema,
        row: RowId,
        first_column: u32,
        values: impl Into<ValuesRef<'a>>,
    ) -> Result<(), Error> {
        let values = values.into();
        let end = u64::from(first_column) + values.len() as u64;
        if end > u64::from(schema.width) {
            return Err(invalid(
                schema,
                row,
                format!(
                    "columns {first_column}..{end}; expected columns below the table's width {}: no update was made",
                    schema.width
                ),
            ));
        }
        if values.is_empty() {
            return Ok(());
        }
        self.updates.add(schema, row, first_column, values).map_err(|unfit| match unfit {
            Unfit::Type => {
                let (expected, got) = (schema.value_type, values.value_type());
                invalid(schema, row, format!("expected values of type {expected}, got {got}: no update was made"))
            }
            Unfit::NotFinite(at) => invalid(schema, row, not_finite(first_column, values, at)),
        })
    }

    /// Adds this buffer's updates of a row to its values as read: a worker sees its own writes at once (G5).
    pub fn overlay(&self, table: TableId, row: RowId, values: &mut Values) {
        self.updates.overlay(table, row, values);
    }

    /// Whether the buffer adds to the row.
    #[must_use]
    pub fn touches(&self, table: TableId, row: RowId) -> bool {
        self.updates.touches(table, row)
    }

    /// The updates of the clock that ends here; the buffer is empty for the next.
    #[must_use]
    pub fn take(&mut self) -> ClockUpdates {
        std::mem::take(&mut self.updates)
    }

    /// Whether nothing has been added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Bytes of memory, roughly.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.updates.bytes()
    }
}

fn invalid(schema: &TableSchema, row: RowId, what: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, what).context(format!("table \"{}\", {row}", schema.name))
}

fn not_finite(first_column: u32, values: ValuesRef<'_>, at: usize) -> String {
    let column = first_column as usize + at;
    let value = match values {
        ValuesRef::F32(values) => values[at],
        ValuesRef::I64(_) => unreachable!("an i64 is finite"),
    };
    if value.is_finite() {
        format!("column {column}: adding {value} makes this clock's update infinite; the table rejects that")
    } else {
        format!("column {column}: an update of {value}; the table rejects NaN and infinities")
    }
}

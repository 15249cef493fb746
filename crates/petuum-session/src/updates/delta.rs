//! What one clock adds to one row: blocks of columns, so that a lone column of a row of a million takes one block.
//!
//! Invariants: a block exists only if one of its columns was added to; untouched columns hold the identity, which adds
//! nothing; no block reaches past the table's width.

use super::scalar::{Number, ValuesRef};
use petuum_types::{NonFinite, TableSchema, ValueType, Values};
use std::collections::BTreeMap;
use std::ops::Range;

/// Columns of a block: what a lone column costs in memory. Never on a wire or disk.
const BLOCK_COLUMNS: u32 = 256;
/// A run of untouched columns this long is cut out of what is sent: the header of a new section and the row's id take
/// 32 bytes, as much as eight f32; twice that, so that parts do not crumble.
pub(super) const GAP_COLUMNS: usize = 16;

/// Additions to the columns of a row of one type.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks<T> {
    blocks: BTreeMap<u32, Vec<T>>,
}

/// A run of `values` within one block.
struct Piece {
    block: u32,
    offset: usize,
    values: Range<usize>,
}

/// `len` columns from `first` on, block by block.
fn pieces(first: u32, len: usize) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let column = first as usize + done;
        let offset = column % BLOCK_COLUMNS as usize;
        let columns = (BLOCK_COLUMNS as usize - offset).min(len - done);
        let block = u32::try_from(column / BLOCK_COLUMNS as usize).expect("columns are u32");
        let piece = Piece { block, offset, values: done..done + columns };
        done += columns;
        (columns > 0).then_some(piece)
    })
}

/// Whether no value is such. Without the early end of `any`, which compilers cannot make vector code of.
fn none<T>(values: &[T], such: impl Fn(&T) -> bool) -> bool {
    values.iter().filter(|value| such(value)).count() == 0
}

impl<T: Number> Blocks<T> {
    /// The first index of `values` whose sum with what is here would not be finite.
    fn not_finite(&self, first: u32, values: &[T]) -> Option<usize> {
        pieces(first, values.len()).find_map(|piece| {
            let added = &values[piece.values.clone()];
            let bad = match self.blocks.get(&piece.block) {
                None if none(added, |v| !v.is_finite()) => None,
                None => added.iter().position(|v| !v.is_finite()),
                Some(block) => block[piece.offset..].iter().zip(added).position(|(b, v)| !b.plus(*v).is_finite()),
            };
            bad.map(|i| piece.values.start + i)
        })
    }

    /// Adds `values` from column `first` on, in a table of `width` columns. Answers the bytes newly allocated.
    fn add(&mut self, width: u32, first: u32, values: &[T]) -> usize {
        let mut grown = 0;
        for piece in pieces(first, values.len()) {
            let block = self.blocks.entry(piece.block).or_insert_with(|| {
                let columns = (width - piece.block * BLOCK_COLUMNS).min(BLOCK_COLUMNS) as usize;
                grown += columns * size_of::<T>();
                vec![T::IDENTITY; columns]
            });
            for (into, value) in block[piece.offset..].iter_mut().zip(&values[piece.values]) {
                *into = into.plus(*value);
            }
        }
        grown
    }

    fn merge(&mut self, later: Self) {
        for (number, block) in later.blocks {
            match self.blocks.entry(number) {
                std::collections::btree_map::Entry::Vacant(slot) => {
                    slot.insert(block);
                }
                std::collections::btree_map::Entry::Occupied(mut earlier) => {
                    earlier.get_mut().iter_mut().zip(block).for_each(|(into, value)| *into = into.plus(value));
                }
            }
        }
    }

    fn overlay(&self, row: &mut [T], policy: NonFinite) {
        for (number, block) in &self.blocks {
            let start = (number * BLOCK_COLUMNS) as usize;
            for (into, value) in row.iter_mut().skip(start).zip(block) {
                // A shard leaves such a cell unchanged, so own writes must not show it.
                if policy != NonFinite::Drop || value.is_finite() {
                    *into = into.plus(*value);
                }
            }
        }
    }

    /// Calls `emit(first column, values)` for each run of touched columns, in order. Runs lie at least
    /// [`GAP_COLUMNS`] apart and have at most `columns_max` columns.
    fn runs(&self, columns_max: usize, mut emit: impl FnMut(u32, &[T])) {
        let mut first = 0;
        let mut run: Vec<T> = Vec::new();
        let mut identities = 0;
        let mut flush = |first: u32, run: &mut Vec<T>, identities: usize| {
            run.truncate(run.len() - identities);
            for (i, chunk) in run.chunks(columns_max).enumerate() {
                emit(first + u32::try_from(i * columns_max).expect("columns are u32"), chunk);
            }
            run.clear();
        };
        for (number, block) in &self.blocks {
            let start = number * BLOCK_COLUMNS;
            if !run.is_empty() && first as usize + run.len() != start as usize {
                flush(first, &mut run, identities);
            }
            if none(block, |value| value.is_identity()) {
                // Nothing to cut out of it, as of most blocks of a dense row.
                first = if run.is_empty() { start } else { first };
                identities = 0;
                run.extend_from_slice(block);
                continue;
            }
            for (column, value) in (start..).zip(block) {
                identities = if value.is_identity() { identities + 1 } else { 0 };
                if run.is_empty() {
                    if identities > 0 {
                        continue;
                    }
                    first = column;
                }
                run.push(*value);
                if identities >= GAP_COLUMNS {
                    flush(first, &mut run, identities);
                }
            }
        }
        if !run.is_empty() {
            flush(first, &mut run, identities);
        }
    }

    fn write_runs(&self, columns_max: usize, out: &mut Vec<u8>, emit: &mut impl FnMut(u32, Range<usize>)) {
        self.runs(columns_max, |first, values| {
            let begin = out.len();
            T::write_le(values, out);
            emit(first, begin..out.len());
        });
    }

    fn bytes(&self) -> usize {
        self.blocks.values().map(|block| block.len() * size_of::<T>()).sum()
    }
}

/// Additions to a row, of its table's type.
#[derive(Clone, Debug)]
pub(super) struct Delta {
    policy: NonFinite,
    columns: Columns,
}

#[derive(Clone, Debug)]
enum Columns {
    F32(Blocks<f32>),
    I64(Blocks<i64>),
}

/// Why values cannot be added.
pub(super) enum Unfit {
    /// They are of another type than the row.
    Type,
    /// The value at this index, or its sum with what the clock already adds, is not finite.
    NotFinite(usize),
}

impl Delta {
    pub(super) fn new(schema: &TableSchema) -> Self {
        let columns = match schema.value_type {
            ValueType::F32 => Columns::F32(Blocks::default()),
            ValueType::I64 => Columns::I64(Blocks::default()),
        };
        Self { policy: schema.non_finite, columns }
    }

    /// Adds values, or changes nothing. The column range is within the table's width, which is the caller's to check.
    /// Answers the bytes newly allocated.
    pub(super) fn add(&mut self, schema: &TableSchema, first: u32, values: ValuesRef<'_>) -> Result<usize, Unfit> {
        match (&mut self.columns, values) {
            (Columns::F32(blocks), ValuesRef::F32(values)) => {
                if self.policy == NonFinite::Reject
                    && let Some(at) = blocks.not_finite(first, values)
                {
                    return Err(Unfit::NotFinite(at));
                }
                Ok(blocks.add(schema.width, first, values))
            }
            (Columns::I64(blocks), ValuesRef::I64(values)) => Ok(blocks.add(schema.width, first, values)),
            _ => Err(Unfit::Type),
        }
    }

    /// Adds what a later thread added to the same row.
    pub(super) fn merge(&mut self, later: Self) {
        match (&mut self.columns, later.columns) {
            (Columns::F32(into), Columns::F32(from)) => into.merge(from),
            (Columns::I64(into), Columns::I64(from)) => into.merge(from),
            _ => unreachable!("a table has one type, checked when values were added"),
        }
    }

    /// Adds itself to a row that was read.
    pub(super) fn overlay(&self, row: &mut Values) {
        match (&self.columns, row) {
            (Columns::F32(blocks), Values::F32(row)) => blocks.overlay(row, self.policy),
            (Columns::I64(blocks), Values::I64(row)) => blocks.overlay(row, self.policy),
            // An answer of another type than the table's is refused where it arrives.
            _ => {}
        }
    }

    /// Appends the little-endian bytes of each run of touched columns to `out` and tells `emit` the run's first column
    /// and where its bytes lie. A run has at most `run_bytes_max` bytes.
    pub(super) fn runs(&self, run_bytes_max: usize, out: &mut Vec<u8>, mut emit: impl FnMut(u32, Range<usize>)) {
        let columns_max = run_bytes_max / self.value_type().bytes();
        match &self.columns {
            Columns::F32(blocks) => blocks.write_runs(columns_max, out, &mut emit),
            Columns::I64(blocks) => blocks.write_runs(columns_max, out, &mut emit),
        }
    }

    pub(super) const fn value_type(&self) -> ValueType {
        match self.columns {
            Columns::F32(_) => ValueType::F32,
            Columns::I64(_) => ValueType::I64,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.columns {
            Columns::F32(blocks) => blocks.bytes(),
            Columns::I64(blocks) => blocks.bytes(),
        }
    }
}

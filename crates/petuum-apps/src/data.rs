//! Data files: IDX (MNIST and its kin), libsvm and CSV, plain or gzip-compressed, read as streams.
//!
//! Each worker keeps only its part ([`Partition`]) and passes over the rest with as little work as the format allows:
//! IDX rows are skipped unread, of a libsvm line only the label and the first and last index are looked at, of a CSV
//! record only the label; except that all look at the first [`CENTER_EXAMPLES`] to agree on a centre. Labels and the number of features are properties of the whole file, so every worker finds
//! the same [`Shape`] without talking to another.
//!
//! Not here: shuffling (a program's business, see [`crate::mlr`]), downloads, binary formats of other systems.
//!
//! Invariants: a file's bytes never cause a panic; memory grows only with bytes that were really there, never by a
//! number in a header; every value is finite; errors name file, place, expected and got.

mod csv;
mod error;
mod examples;
mod files;
mod idx;
mod labels;
mod libsvm;
mod options;
mod partition;
mod source;
#[cfg(test)]
mod tests;

pub use error::{EXCERPT_CHARS, Error, Place, Problem};
pub use examples::{CENTER_EXAMPLES, Dense, Examples, Features, LANES, Shape, Sparse, stride};
pub use files::Files;
pub use options::{Format, LabelColumn, Options};
pub use partition::Partition;

/// Features of an example: a table's row holds them and a bias.
pub const FEATURES_MAX: usize = petuum_types::limits::ROW_COLUMNS_MAX as usize - 1;
/// Classes of a data set: one read fetches a row of each.
pub const CLASSES_MAX: usize = petuum_types::limits::READ_ROWS_MAX;
/// Examples of a data set; positions within a part are 32-bit.
pub const EXAMPLES_MAX: u64 = u32::MAX as u64;
/// Bytes of a line or record of a text file: one with the most features, at 32 bytes each.
pub const LINE_BYTES_MAX: usize = 32 * (FEATURES_MAX + 1);

/// Counts one more example.
fn next_example(total: &mut u64) -> Result<u64, Problem> {
    let example = *total;
    if example == EXAMPLES_MAX {
        return Err(Problem::Limit { what: "or more examples", got: example + 1, limit: EXAMPLES_MAX });
    }
    *total += 1;
    Ok(example)
}

/// A number times `scale`; both it and the product are finite.
fn parse_number(text: &[u8], scale: f32) -> Result<f32, Problem> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f32>().ok());
    number
        .map(|number| number * scale)
        .filter(|number| number.is_finite())
        .ok_or_else(|| Problem::unexpected("a number that is finite, also after scaling", text))
}

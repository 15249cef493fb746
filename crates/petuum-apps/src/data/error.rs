//! What can be wrong with a data file: where, what was expected, what is there.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}{place}: {problem}", path.display())]
pub struct Error {
    /// The file, or the folder that was searched.
    pub path: PathBuf,
    /// Where in it.
    pub place: Place,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

impl Error {
    pub(crate) fn new(path: &Path, place: Place, problem: Problem) -> Self {
        Self { path: path.to_owned(), place, problem }
    }
}

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line, from 1.
    Line(u64),
    /// A byte offset, from 0; of a compressed file, in its uncompressed content.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Byte(byte) => write!(f, ", byte {byte}"),
        }
    }
}

/// What is wrong with a file. Texts from files are cut to [`EXCERPT_CHARS`] characters.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The operating system, or the decompressor, says so.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// No example at all.
    #[error("has no examples; expected at least one")]
    Empty,
    /// The file ends too early.
    #[error("ends too early: expected {expected} bytes from here, got {got}")]
    Truncated {
        /// Bytes expected from the place on.
        expected: u64,
        /// Bytes there are.
        got: u64,
    },
    /// More bytes than the header announces.
    #[error("goes on after the {announced} items that its header announces")]
    TrailingBytes {
        /// Items announced.
        announced: u32,
    },
    /// Not the kind of file that was expected.
    #[error("starts with {got:#010x}; expected {expected:#010x} ({kind})")]
    WrongMagic {
        /// The magic number expected.
        expected: u32,
        /// The one there is.
        got: u32,
        /// What the expected number means.
        kind: &'static str,
    },
    /// Images and labels do not go together.
    #[error("has {labels} labels for the {images} images beside it; expected one each")]
    CountMismatch {
        /// Images announced.
        images: u32,
        /// Labels announced.
        labels: u32,
    },
    /// Something that is not what the format has here.
    #[error("got {got:?}; expected {expected}")]
    Unexpected {
        /// What the format has here.
        expected: &'static str,
        /// What is there.
        got: String,
    },
    /// A class that the model does not have.
    #[error("label {got}; expected {expected}")]
    LabelOutOfRange {
        /// The label.
        got: i64,
        /// The labels there may be.
        expected: String,
    },
    /// A feature index below the base, or not above the one before it.
    #[error("feature index {got}; expected at least {least} (indices start at the base and ascend within a line)")]
    IndexOrder {
        /// The index.
        got: u64,
        /// The least there may be.
        least: u64,
    },
    /// A record of another length than the first.
    #[error("has {got} columns; expected {expected} as in the records before")]
    Columns {
        /// Columns of the first record, or of the training file.
        expected: usize,
        /// Columns there are.
        got: usize,
    },
    /// The label column does not exist.
    #[error("has no column {wanted}; it has {columns} columns")]
    NoLabelColumn {
        /// The column asked for.
        wanted: String,
        /// Columns there are.
        columns: usize,
    },
    /// A limit of this reader.
    #[error("{got} {what}; the limit is {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        got: u64,
        /// How much there may be.
        limit: u64,
    },
    /// A test file of another shape than the training file.
    #[error("examples have {got} features; expected {expected} as in training")]
    OtherShape {
        /// Features in training.
        expected: usize,
        /// Features here.
        got: usize,
    },
    /// No file of a known name.
    #[error("has no {what}; looked for {looked_for}")]
    NoFile {
        /// What is missing.
        what: &'static str,
        /// The names looked for.
        looked_for: String,
    },
}

/// Characters of a file's text that a message quotes.
pub const EXCERPT_CHARS: usize = 40;

impl Problem {
    /// An [`Problem::Unexpected`] that quotes the beginning of what is there.
    pub(crate) fn unexpected(expected: &'static str, got: &[u8]) -> Self {
        let head = &got[..got.len().min(EXCERPT_CHARS * 4)];
        Self::Unexpected { expected, got: String::from_utf8_lossy(head).chars().take(EXCERPT_CHARS).collect() }
    }
}

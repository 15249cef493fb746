//! libsvm text: `label index:value index:value ...`, one example a line.
//!
//! Blank lines, `#` comments, LF and CRLF are understood; indices ascend strictly within a line, as the format has it.
//! Values that are not stated are 0. Features of a test file beyond the training file's are dropped, which is exact:
//! no example ever moved their weights from 0.

use super::error::{Error, Place, Problem};
use super::examples::{Examples, Features, Shape, Sparse};
use super::labels::{Labels, parse_label};
use super::source::Source;
use super::{FEATURES_MAX, LINE_BYTES_MAX, Options, Partition, next_example, parse_number};
use std::path::Path;

/// Reads a part of a file; a test set with the shape of its training set.
pub(crate) fn read(path: &Path, part: Partition, options: &Options, shape: Option<&Shape>) -> Result<Examples, Error> {
    let mut source = Source::open(path)?;
    let at_file = |problem| Error::new(path, Place::Whole, problem);
    let mut reader = Reader::new(options, shape).map_err(at_file)?;
    let mut total = 0;
    let mut line = Vec::new();
    let mut number = 0;
    while source.read_line(&mut line, LINE_BYTES_MAX)? {
        number += 1;
        let content = content(&line);
        if content.is_empty() {
            continue;
        }
        next_example(&mut total)
            .and_then(|example| reader.example(content, part.owns(example)))
            .map_err(|problem| Error::new(path, Place::Line(number), problem))?;
    }
    if total == 0 {
        return Err(at_file(Problem::Empty));
    }
    reader.finish(total, options, shape).map_err(at_file)
}

/// A line without comment and surrounding blanks.
fn content(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| *byte == b'#').unwrap_or(line.len());
    line[..end].trim_ascii()
}

struct Reader {
    labels: Labels,
    sparse: Sparse,
    scale: f32,
    /// The least index there may be.
    least: u64,
    zero_seen: bool,
    greatest: Option<u64>,
}

impl Reader {
    fn new(options: &Options, shape: Option<&Shape>) -> Result<Self, Problem> {
        Ok(Self {
            labels: Labels::new(options, shape)?,
            sparse: Sparse::default(),
            scale: options.scale,
            least: shape.map(|s| s.index_base).or(options.index_base).unwrap_or(0),
            zero_seen: false,
            greatest: None,
        })
    }

    fn example(&mut self, line: &[u8], own: bool) -> Result<(), Problem> {
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let label = parse_label(fields.next().unwrap_or_default())?;
        self.labels.see(label, own)?;
        if own {
            let mut least = self.least;
            for field in fields {
                let (index, value) = pair(field)?;
                least = self.index(index, least)? + 1;
                let value = parse_number(value, self.scale)?;
                let column = u32::try_from(index).expect("indices are below FEATURES_MAX + 1");
                self.sparse.push(column, value);
            }
            self.sparse.end_row();
        } else if let Some(first) = fields.next() {
            // Indices ascend, so the first and the last tell base and width.
            let least = self.index(pair(first)?.0, self.least)?;
            let last = line.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
            self.index(pair(last)?.0, least)?;
        }
        Ok(())
    }

    /// Takes note of an index, or says what is wrong with it.
    fn index(&mut self, index: u64, least: u64) -> Result<u64, Problem> {
        if index < least {
            return Err(Problem::IndexOrder { got: index, least });
        }
        if index > FEATURES_MAX as u64 {
            return Err(Problem::Limit { what: "as a feature index", got: index, limit: FEATURES_MAX as u64 });
        }
        self.zero_seen |= index == 0;
        self.greatest = self.greatest.max(Some(index));
        Ok(index)
    }

    fn finish(mut self, total: u64, options: &Options, shape: Option<&Shape>) -> Result<Examples, Problem> {
        let base = shape.map(|s| s.index_base).or(options.index_base);
        let index_base = base.unwrap_or(u64::from(!self.zero_seen));
        if index_base == 1 {
            self.sparse.shift_columns();
        }
        let seen = self.greatest.map_or(0, |greatest| greatest + 1 - index_base);
        let seen = usize::try_from(seen).expect("at most FEATURES_MAX + 1");
        let features = match (shape, options.features) {
            (Some(shape), _) => {
                self.sparse.truncate_columns(shape.features);
                shape.features
            }
            (None, Some(limit)) if seen > limit => {
                return Err(Problem::Limit { what: "features", got: seen as u64, limit: limit as u64 });
            }
            (None, features) => features.unwrap_or(seen),
        };
        if features > FEATURES_MAX {
            let limit = FEATURES_MAX as u64;
            return Err(Problem::Limit { what: "features", got: features as u64, limit });
        }
        let (labels, classes) = self.labels.finish(false);
        let shape = Shape { features, labels, index_base };
        let center = vec![0.0; features];
        Ok(Examples { shape, total, center, features: Features::Sparse(self.sparse), classes })
    }
}

/// The two halves of `index:value`.
fn pair(field: &[u8]) -> Result<(u64, &[u8]), Problem> {
    let split = field.iter().position(|byte| *byte == b':').map(|colon| (&field[..colon], &field[colon + 1..]));
    split
        .and_then(|(index, value)| Some((std::str::from_utf8(index).ok()?.parse().ok()?, value)))
        .ok_or_else(|| Problem::unexpected("index:value", field))
}

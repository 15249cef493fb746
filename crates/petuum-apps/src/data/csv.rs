//! CSV: numbers separated by commas, one example a record; one column is the label.
//!
//! Quoted fields, blanks around fields, LF and CRLF, empty lines and lines that start with `#` are understood. Every
//! record has as many columns as the first. A record is one line: line breaks inside quotes, which no table of numbers
//! has, are refused, so that a quote that is never closed does not swallow the file.

use super::error::{Error, Place, Problem};
use super::examples::{Center, Dense, Examples, Features, Shape};
use super::labels::{Labels, parse_label};
use super::source::Source;
use super::{FEATURES_MAX, LINE_BYTES_MAX, LabelColumn, Options, Partition, next_example, parse_number};
use std::borrow::Cow;
use std::path::Path;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads a part of a file; a test set with the shape of its training set.
pub(crate) fn read(path: &Path, part: Partition, options: &Options, shape: Option<&Shape>) -> Result<Examples, Error> {
    let mut source = Source::open(path)?;
    let mut columns = None;
    let (mut total, mut number) = (0, 0);
    let mut line = Vec::new();
    while source.read_line(&mut line, LINE_BYTES_MAX)? {
        number += 1;
        let content = if number == 1 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line) } else { &line };
        if content.trim_ascii().is_empty() || content.starts_with(b"#") {
            continue;
        }
        let mut record = |content| {
            let fields = fields(content)?;
            if columns.is_none() {
                let header = options.header.unwrap_or_else(|| fields.iter().any(|f| parse_number(f, 1.0).is_err()));
                columns = Some(Columns::new(&fields, header, options, shape)?);
                if header {
                    return Ok(());
                }
            }
            let columns = columns.as_mut().expect("set above");
            let example = next_example(&mut total)?;
            columns.example(&fields, part.owns(example), Center::wants(example))
        };
        record(content).map_err(|problem| Error::new(path, Place::Line(number), problem))?;
    }
    match columns {
        Some(columns) if total > 0 => Ok(columns.finish(total)),
        _ => Err(Error::new(path, Place::Whole, Problem::Empty)),
    }
}

/// The fields of a record, without quotes and surrounding blanks.
fn fields(line: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, Problem> {
    if !line.contains(&b'"') {
        return Ok(line.split(|byte| *byte == b',').map(|field| Cow::Borrowed(field.trim_ascii())).collect());
    }
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let field = rest.trim_ascii_start();
        let after = match field.strip_prefix(b"\"") {
            Some(quoted) => {
                let (content, after) = unquote(quoted).ok_or_else(|| Problem::unexpected("a closing quote", field))?;
                fields.push(Cow::Owned(content));
                after.trim_ascii_start()
            }
            None => {
                let (content, after) = field.split_at(field.iter().position(|b| *b == b',').unwrap_or(field.len()));
                fields.push(Cow::Borrowed(content.trim_ascii_end()));
                after
            }
        };
        match after {
            [] => return Ok(fields),
            [b',', more @ ..] => rest = more,
            _ => return Err(Problem::unexpected("a comma after a closing quote", after)),
        }
    }
}

/// Splits after the closing quote; a doubled quote is one.
fn unquote(quoted: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut content = Vec::new();
    let mut rest = quoted;
    loop {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        content.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(b"\"") {
            Some(more) => {
                content.push(b'"');
                rest = more;
            }
            None => return Some((content, rest)),
        }
    }
}

type Record<'a> = [Cow<'a, [u8]>];

struct Columns {
    count: usize,
    label: usize,
    scale: f32,
    labels: Labels,
    dense: Dense,
    center: Center,
}

impl Columns {
    fn new(first: &Record<'_>, header: bool, options: &Options, shape: Option<&Shape>) -> Result<Self, Problem> {
        let count = first.len();
        let label = label_column(first, header, &options.label_column)?;
        let features = count - 1;
        if features > FEATURES_MAX {
            let limit = FEATURES_MAX as u64;
            return Err(Problem::Limit { what: "features", got: features as u64, limit });
        }
        if let Some(expected) = shape.map(|s| s.features).filter(|expected| *expected != features) {
            return Err(Problem::OtherShape { expected, got: features });
        }
        let labels = Labels::new(options, shape)?;
        Ok(Self {
            count,
            label,
            scale: options.scale,
            labels,
            dense: Dense::new(features),
            center: Center::new(features),
        })
    }

    fn example(&mut self, record: &Record<'_>, own: bool, centers: bool) -> Result<(), Problem> {
        if record.len() != self.count {
            return Err(Problem::Columns { expected: self.count, got: record.len() });
        }
        self.labels.see(parse_label(&record[self.label])?, own)?;
        if own || centers {
            let fields = record.iter().enumerate().filter(|(column, _)| *column != self.label);
            let row = fields.map(|(_, field)| parse_number(field, self.scale)).collect::<Result<Vec<f32>, _>>()?;
            if centers {
                self.center.add(&row);
            }
            if own {
                self.dense.push(row);
            }
        }
        Ok(())
    }

    fn finish(self, total: u64) -> Examples {
        let (labels, classes) = self.labels.finish(false);
        let shape = Shape { features: self.count - 1, labels, index_base: 0 };
        Examples { shape, total, center: self.center.mean(), features: Features::Dense(self.dense), classes }
    }
}

fn label_column(first: &Record<'_>, header: bool, wanted: &LabelColumn) -> Result<usize, Problem> {
    let columns = first.len();
    let named = |names: &[&str]| {
        let is = |heading: &[u8]| names.iter().any(|name| heading.eq_ignore_ascii_case(name.as_bytes()));
        first.iter().position(|heading| header && is(heading.as_ref()))
    };
    let (found, wanted) = match wanted {
        LabelColumn::Auto => (named(&["label", "class", "target"]).or_else(|| columns.checked_sub(1)), "last".into()),
        LabelColumn::Last => (columns.checked_sub(1), "last".into()),
        LabelColumn::Number(number) => (Some(*number), number.to_string()),
        LabelColumn::Name(name) => (named(&[name]), format!("named {name:?} in its first line")),
    };
    found.filter(|column| *column < columns).ok_or(Problem::NoLabelColumn { wanted, columns })
}

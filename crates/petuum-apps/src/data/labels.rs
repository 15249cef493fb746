//! Labels of a file while it is read, and the classes they become.

use super::error::Problem;
use super::examples::Shape;
use super::{CLASSES_MAX, Options};
use std::collections::BTreeSet;

/// Integers up to which f64 holds each exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Collects labels. In training any label is a class, unless the number of classes was given; a test set has the
/// training set's.
pub(crate) struct Labels {
    known: Option<Vec<i64>>,
    seen: BTreeSet<i64>,
    own: Vec<i64>,
}

impl Labels {
    pub(crate) fn new(options: &Options, shape: Option<&Shape>) -> Result<Self, Problem> {
        let known = match (shape, options.classes) {
            (Some(shape), _) => Some(shape.labels.clone()),
            (None, Some(classes)) if classes as usize > CLASSES_MAX => return Err(too_many(u64::from(classes))),
            (None, classes) => classes.map(|classes| (0..i64::from(classes)).collect()),
        };
        Ok(Self { known, seen: BTreeSet::new(), own: Vec::new() })
    }

    /// Takes note of a label of the file; keeps it if the example is this part's.
    pub(crate) fn see(&mut self, label: i64, own: bool) -> Result<(), Problem> {
        match &self.known {
            Some(known) if known.binary_search(&label).is_err() => {
                return Err(Problem::LabelOutOfRange { got: label, expected: describe(known) });
            }
            Some(_) => {}
            None => {
                self.seen.insert(label);
                if self.seen.len() > CLASSES_MAX {
                    return Err(too_many(self.seen.len() as u64));
                }
            }
        }
        if own {
            self.own.push(label);
        }
        Ok(())
    }

    /// The labels of all classes, and the class of each own example. `contiguous`: labels count from 0, and those
    /// below the greatest are classes even if they do not occur.
    pub(crate) fn finish(self, contiguous: bool) -> (Vec<i64>, Vec<u32>) {
        let labels = match (self.known, contiguous) {
            (Some(known), _) => known,
            (None, true) => (0..=self.seen.last().copied().unwrap_or(0)).collect(),
            (None, false) => self.seen.into_iter().collect(),
        };
        let class = |label| labels.binary_search(label).ok().and_then(|class| u32::try_from(class).ok());
        let classes = self.own.iter().map(|label| class(label).expect("every label seen is a class")).collect();
        (labels, classes)
    }
}

fn too_many(got: u64) -> Problem {
    Problem::Limit { what: "or more classes (is this the label column?)", got, limit: CLASSES_MAX as u64 }
}

fn describe(known: &[i64]) -> String {
    match known {
        [] => "none".to_owned(),
        [first, .., last] if *last - *first == known.len() as i64 - 1 => format!("{first} to {last}"),
        _ if known.len() <= 10 => format!("one of {known:?}"),
        [first, .., last] => format!("one of the {} labels from {first} to {last} seen in training", known.len()),
        [only] => only.to_string(),
    }
}

/// A whole number, written as one (`3`, `+1`) or as a float (`1.0`).
pub(crate) fn parse_label(text: &[u8]) -> Result<i64, Problem> {
    let parse = |text: &str| {
        let float = || text.parse::<f64>().ok().filter(|x| x.fract() == 0.0 && x.abs() <= EXACT);
        #[expect(clippy::cast_possible_truncation, reason = "whole and at most 2^53")]
        text.parse::<i64>().ok().or_else(|| float().map(|x| x as i64))
    };
    std::str::from_utf8(text)
        .ok()
        .and_then(parse)
        .ok_or_else(|| Problem::unexpected("a label that is a whole number", text))
}

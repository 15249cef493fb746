//! How to read data files: what cannot be told from the files themselves, and what overrides what can.

use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::str::FromStr;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Images and labels in two IDX files; pixels are scaled to `0..=1`.
    Idx,
    /// `label index:value ...`, one example a line, `#` starts a comment.
    Libsvm,
    /// Comma-separated numbers, one example a line; lines that start with `#` are passed over.
    Csv,
}

/// Which column of a CSV file has the label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelColumn {
    /// The first column whose heading is `label`, `class` or `target` in any case, else the last column.
    #[default]
    Auto,
    /// The last column.
    Last,
    /// A column by position, from 0.
    Number(usize),
    /// A column by heading.
    Name(String),
}

impl FromStr for LabelColumn {
    type Err = Infallible;

    /// `auto`, `first`, `last`, a position from 0, or a heading.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "auto" => Self::Auto,
            "first" => Self::Number(0),
            "last" => Self::Last,
            _ => text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Number),
        })
    }
}

/// Options of the readers. The default fits most files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The format; by default told from file names.
    pub format: Option<Format>,
    /// libsvm: the least feature index, 0 or 1; by default 0 if index 0 occurs in the training file, else 1.
    pub index_base: Option<u64>,
    /// CSV: which column has the label.
    pub label_column: LabelColumn,
    /// CSV: whether the first record is headings; by default if it has a field that is no number.
    pub header: Option<bool>,
    /// CSV and libsvm: every feature is multiplied by this, for example 1/255 for pixels. Default 1, finite.
    pub scale: f32,
    /// How many classes there are; labels are then `0..classes`. By default the distinct labels of the training file
    /// (for IDX: 0 to the greatest label).
    pub classes: Option<u32>,
    /// libsvm: how many features there are; by default as many as the training file mentions.
    pub features: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            index_base: None,
            label_column: LabelColumn::Auto,
            header: None,
            scale: 1.0,
            classes: None,
            features: None,
        }
    }
}

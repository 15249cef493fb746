//! Which files are the training and the test set.
//!
//! ```text
//!   IDX      train-images-idx3-ubyte, train-labels-idx1-ubyte; t10k-... or test-...; also train-images.idx3-ubyte
//!   libsvm   train.libsvm, train.svm, train.txt; test....
//!   CSV      train.csv; test.csv
//! ```
//!
//! Each with or without `.gz`, in one folder; or one file, which is then the training set.

use super::error::{Error, Place, Problem};
use super::examples::{Examples, Shape};
use super::{Format, Options, Partition, csv, idx, libsvm};
use std::path::{Path, PathBuf};

const TRAIN: [&str; 1] = ["train"];
const TEST: [&str; 2] = ["t10k", "test"];

/// A training set and perhaps a test set, by their files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    train: Set,
    test: Option<Set>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Set {
    Idx { images: PathBuf, labels: PathBuf },
    Libsvm(PathBuf),
    Csv(PathBuf),
}

impl Files {
    /// Finds the files of a folder, or takes one file as the training set.
    ///
    /// # Errors
    /// [`Problem::NoFile`] with the names that were looked for.
    pub fn find(path: &Path, options: &Options) -> Result<Self, Error> {
        if !path.is_dir() {
            return Ok(Self { train: Set::of_file(path, options)?, test: None });
        }
        let found = |stems| formats(options).iter().find_map(|format| Set::in_folder(path, *format, stems));
        let train = found(&TRAIN).ok_or_else(|| {
            let looked_for = formats(options).iter().flat_map(|format| names(*format, "train")).collect::<Vec<_>>();
            let looked_for = format!("{} (each also with .gz)", looked_for.join(", "));
            Error::new(path, Place::Whole, Problem::NoFile { what: "training set", looked_for })
        })?;
        Ok(Self { test: Set::in_folder(path, train.format(), &TEST), train })
    }

    /// The same training set with another test set: a libsvm or CSV file.
    ///
    /// # Errors
    /// As [`Files::find`].
    pub fn with_test(self, path: &Path, options: &Options) -> Result<Self, Error> {
        Ok(Self { test: Some(Set::of_file(path, options)?), ..self })
    }

    /// Whether there is a test set.
    #[must_use]
    pub const fn has_test(&self) -> bool {
        self.test.is_some()
    }

    /// What the training set looks like; reads all of it but keeps nothing.
    ///
    /// # Errors
    /// As [`Files::train`].
    pub fn shape(&self, options: &Options) -> Result<Shape, Error> {
        self.train(Partition::NONE, options).map(|examples| examples.shape)
    }

    /// Reads a part of the training set.
    ///
    /// # Errors
    /// What is wrong with a file, and where.
    pub fn train(&self, part: Partition, options: &Options) -> Result<Examples, Error> {
        self.train.read(part, options, None)
    }

    /// Reads a part of the test set, which must have the training set's shape; `None` if there is none.
    ///
    /// # Errors
    /// As [`Files::train`].
    pub fn test(&self, part: Partition, options: &Options, shape: &Shape) -> Result<Option<Examples>, Error> {
        self.test.as_ref().map(|set| set.read(part, options, Some(shape))).transpose()
    }
}

/// The formats to look for, in order.
fn formats(options: &Options) -> &'static [Format] {
    match options.format {
        None => &[Format::Idx, Format::Libsvm, Format::Csv],
        Some(Format::Idx) => &[Format::Idx],
        Some(Format::Libsvm) => &[Format::Libsvm],
        Some(Format::Csv) => &[Format::Csv],
    }
}

/// Names that a set's first file may have.
fn names(format: Format, stem: &str) -> Vec<String> {
    match format {
        Format::Idx => vec![format!("{stem}-images-idx3-ubyte"), format!("{stem}-images.idx3-ubyte")],
        Format::Libsvm => ["libsvm", "svm", "txt"].iter().map(|end| format!("{stem}.{end}")).collect(),
        Format::Csv => vec![format!("{stem}.csv")],
    }
}

fn existing(folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(name), folder.join(format!("{name}.gz"))].into_iter().find(|path| path.is_file())
}

impl Set {
    const fn format(&self) -> Format {
        match self {
            Self::Idx { .. } => Format::Idx,
            Self::Libsvm(_) => Format::Libsvm,
            Self::Csv(_) => Format::Csv,
        }
    }

    fn in_folder(folder: &Path, format: Format, stems: &[&str]) -> Option<Self> {
        let mut names = stems.iter().flat_map(|stem| names(format, stem));
        names.find_map(|name| {
            let file = existing(folder, &name)?;
            Some(match format {
                Format::Idx => {
                    let labels = existing(folder, &name.replace("images", "labels").replace("idx3", "idx1"))?;
                    Self::Idx { images: file, labels }
                }
                Format::Libsvm => Self::Libsvm(file),
                Format::Csv => Self::Csv(file),
            })
        })
    }

    /// A single file, CSV if its name says so, else libsvm.
    fn of_file(path: &Path, options: &Options) -> Result<Self, Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let csv = name.trim_end_matches(".gz").ends_with(".csv");
        match options.format {
            Some(Format::Idx) => {
                let looked_for = "a folder with images and labels".to_owned();
                Err(Error::new(path, Place::Whole, Problem::NoFile { what: "IDX pair", looked_for }))
            }
            Some(Format::Csv) => Ok(Self::Csv(path.to_owned())),
            None if csv => Ok(Self::Csv(path.to_owned())),
            Some(Format::Libsvm) | None => Ok(Self::Libsvm(path.to_owned())),
        }
    }

    fn read(&self, part: Partition, options: &Options, shape: Option<&Shape>) -> Result<Examples, Error> {
        match self {
            Self::Idx { images, labels } => idx::read(images, labels, part, options, shape),
            Self::Libsvm(path) => libsvm::read(path, part, options, shape),
            Self::Csv(path) => csv::read(path, part, options, shape),
        }
    }
}

//! Examples in memory: feature rows, dense or sparse, and the class of each.
//!
//! Invariants: dense rows are padded to whole lanes, with a 1 (the bias) after the last feature and zeros behind it, so
//! that a model's inner loops need no special cases; sparse rows have ascending columns below the number of features;
//! every class is below the number of classes; every value is finite.

/// Dense rows are padded to a multiple of this many values.
pub const LANES: usize = 4;

/// What every part of a data set has in common; a test set is read with the training set's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Features of an example, without the bias.
    pub features: usize,
    /// The label of each class in the files, ascending.
    pub labels: Vec<i64>,
    /// The least feature index in libsvm files: 0 or 1.
    pub index_base: u64,
}

impl Shape {
    /// How many classes there are.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.labels.len()
    }

    /// The class of a label, if there is one.
    #[must_use]
    pub fn class_of(&self, label: i64) -> Option<u32> {
        self.labels.binary_search(&label).ok().and_then(|class| u32::try_from(class).ok())
    }
}

/// A part of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Examples {
    /// Common to all parts.
    pub shape: Shape,
    /// How many examples all parts have together.
    pub total: u64,
    /// About the mean of dense features over the whole data set, the same in every part: the mean of its first
    /// [`CENTER_EXAMPLES`]. Zeros for sparse features.
    pub center: Vec<f32>,
    pub(crate) features: Features,
    pub(crate) classes: Vec<u32>,
}

/// Examples that every part looks at, its own or not, to agree on a centre.
pub const CENTER_EXAMPLES: u64 = 1_000;

/// The mean of the first rows of a file.
pub(crate) struct Center {
    sums: Vec<f64>,
    rows: u32,
}

impl Center {
    pub(crate) fn new(width: usize) -> Self {
        Self { sums: vec![0.0; width], rows: 0 }
    }

    /// Whether this example, by its place in the file, is one of them.
    pub(crate) const fn wants(example: u64) -> bool {
        example < CENTER_EXAMPLES
    }

    pub(crate) fn add(&mut self, row: &[f32]) {
        self.sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        self.rows += 1;
    }

    #[expect(clippy::cast_possible_truncation, reason = "a mean of f32 values is in their range; rounding is meant")]
    pub(crate) fn mean(&self) -> Vec<f32> {
        self.sums.iter().map(|sum| (sum / f64::from(self.rows.max(1))) as f32).collect()
    }
}

impl Examples {
    /// How many examples this part has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether this part has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The feature rows.
    #[must_use]
    pub const fn features(&self) -> &Features {
        &self.features
    }

    /// The class of each example.
    #[must_use]
    pub fn classes(&self) -> &[u32] {
        &self.classes
    }
}

/// Feature rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Features {
    /// Every value is kept.
    Dense(Dense),
    /// Only values that a file states are kept.
    Sparse(Sparse),
}

/// Dense rows one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    width: usize,
    values: Vec<f32>,
}

impl Dense {
    /// No rows yet, of `width` features.
    #[must_use]
    pub const fn new(width: usize) -> Self {
        Self { width, values: Vec::new() }
    }

    /// Values from one row to the next: the features, the bias and the padding.
    #[must_use]
    pub const fn stride(&self) -> usize {
        stride(self.width)
    }

    /// Appends a row.
    ///
    /// # Panics
    /// Unless it has exactly the width.
    pub fn push(&mut self, row: impl IntoIterator<Item = f32>) {
        let start = self.values.len();
        self.values.extend(row);
        assert_eq!(self.values.len() - start, self.width, "a row has the width of its matrix");
        self.values.push(1.0);
        self.values.resize(start + self.stride(), 0.0);
    }

    /// A row's features.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.padded(row)[..self.width]
    }

    /// A row's features, a 1 and zeros, [`Dense::stride`] values in all.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn padded(&self, row: usize) -> &[f32] {
        &self.values[row * self.stride()..][..self.stride()]
    }
}

/// Values from one row to the next when a row has `width` features and a bias.
#[must_use]
pub const fn stride(width: usize) -> usize {
    (width + 1).next_multiple_of(LANES)
}

/// Sparse rows (compressed sparse row).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sparse {
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Sparse {
    /// Appends a value to the row under construction.
    pub fn push(&mut self, column: u32, value: f32) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// Ends the row under construction.
    pub fn end_row(&mut self) {
        self.ends.push(self.columns.len());
    }

    /// A row's columns, ascending, and their values.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        let range = start..self.ends[row];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Drops values of columns that are not below `width`.
    pub(crate) fn truncate_columns(&mut self, width: usize) {
        let mut kept = Self::default();
        for row in 0..self.ends.len() {
            let (columns, values) = self.row(row);
            columns.iter().zip(values).filter(|(c, _)| (**c as usize) < width).for_each(|(c, v)| kept.push(*c, *v));
            kept.end_row();
        }
        *self = kept;
    }

    /// Lowers every column by one.
    pub(crate) fn shift_columns(&mut self) {
        self.columns.iter_mut().for_each(|column| *column -= 1);
    }
}

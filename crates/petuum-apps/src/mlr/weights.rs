//! The model in memory: one row per class of weights, a bias and padding.
//!
//! Invariant: the padding is 0, as it is in the examples' rows, so that it never contributes.

use crate::data::{LANES, stride};

/// Weights, or a gradient by them.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    classes: usize,
    features: usize,
    values: Vec<f32>,
}

impl Weights {
    /// All zero.
    #[must_use]
    pub fn zeros(classes: usize, features: usize) -> Self {
        Self { classes, features, values: vec![0.0; classes * stride(features)] }
    }

    /// Rows.
    #[must_use]
    pub const fn classes(&self) -> usize {
        self.classes
    }

    /// Weights of a row, without the bias.
    #[must_use]
    pub const fn features(&self) -> usize {
        self.features
    }

    /// A class's weights and, last, its bias: what a row of the table holds.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn row(&self, class: usize) -> &[f32] {
        &self.padded(class)[..=self.features]
    }

    /// The same to change.
    ///
    /// # Panics
    /// If there is no such class.
    pub fn row_mut(&mut self, class: usize) -> &mut [f32] {
        let stride = stride(self.features);
        &mut self.values[class * stride..][..=self.features]
    }

    /// A row and its padding.
    pub(super) fn padded(&self, class: usize) -> &[f32] {
        let stride = stride(self.features);
        &self.values[class * stride..][..stride]
    }

    /// A row and its padding in lanes.
    pub(super) fn lanes(&self, class: usize) -> &[[f32; LANES]] {
        self.padded(class).as_chunks().0
    }

    /// `count` rows and their padding in lanes, one after the other.
    pub(super) fn lanes_mut(&mut self, class: usize, count: usize) -> &mut [[f32; LANES]] {
        let stride = stride(self.features);
        self.values[class * stride..][..count * stride].as_chunks_mut().0
    }

    /// Everything back to zero.
    pub(super) fn clear(&mut self) {
        self.values.fill(0.0);
    }
}

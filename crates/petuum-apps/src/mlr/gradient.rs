//! Loss and gradient of softmax regression over a batch.
//!
//! For an example x of class y with probabilities p = softmax(W x + b), the loss is -ln p_y and the gradient of row k is
//! (p_k - 1[y = k]) x.
//!
//! Dense batches go in blocks of [`BLOCK`] examples that fit the first cache: products of two examples with up to
//! [`TILE`] classes at a time, four lanes wide, then the outer products of the same block. Written so that the compiler
//! turns it into vector code for any CPU; sums run in one fixed order, without contraction, so the bits are the same
//! on every CPU. Not a general matrix product.

use super::Weights;
use crate::data::{Dense, Examples, Features, LANES, Sparse};

/// Examples of a block.
const BLOCK: usize = 8;
/// Classes whose sums are kept in registers together.
const TILE: usize = 5;

type Lanes = [f32; LANES];
type Block<'a> = [&'a [Lanes]; BLOCK];

/// What a batch or a test set came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Examples.
    pub examples: u64,
    /// How many of them the model puts into their class; of equal scores the lowest class wins.
    pub correct: u64,
    /// Sum of -ln p over the examples, without regularisation.
    pub loss_sum: f64,
}

impl Tally {
    /// The mean loss, or 0 of nothing.
    #[must_use]
    pub fn loss(&self) -> f64 {
        self.mean(self.loss_sum)
    }

    /// The share of correct examples, or 0 of nothing.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 examples")]
        self.mean(self.correct as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 examples")]
    fn mean(&self, sum: f64) -> f64 {
        if self.examples == 0 { 0.0 } else { sum / self.examples as f64 }
    }
}

/// Buffers for batches of one model.
#[derive(Clone, Debug)]
pub struct Gradient {
    sum: Weights,
    /// Scores of a block, then (p - 1[y = k]), by class.
    scores: Vec<[f32; BLOCK]>,
}

impl Gradient {
    /// Buffers for a model of this size.
    #[must_use]
    pub fn new(classes: usize, features: usize) -> Self {
        Self { sum: Weights::zeros(classes, features), scores: vec![[0.0; BLOCK]; classes] }
    }

    /// The gradient of the last batch, summed over its examples.
    #[must_use]
    pub const fn sum(&self) -> &Weights {
        &self.sum
    }

    /// Computes the gradient at `weights` over the examples at these positions.
    ///
    /// # Panics
    /// Unless model, buffers and examples have one shape, and every position is an example's.
    pub fn compute(&mut self, weights: &Weights, examples: &Examples, batch: &[u32]) -> Tally {
        self.sum.clear();
        self.pass(weights, examples, batch, true)
    }

    /// Only the loss and the correct examples.
    ///
    /// # Panics
    /// As [`Gradient::compute`].
    pub fn evaluate(&mut self, weights: &Weights, examples: &Examples, batch: &[u32]) -> Tally {
        self.pass(weights, examples, batch, false)
    }

    fn pass(&mut self, weights: &Weights, examples: &Examples, batch: &[u32], gradient: bool) -> Tally {
        let shape = (examples.shape.classes(), examples.shape.features);
        assert_eq!((weights.classes(), weights.features()), shape, "the model has the shape of the examples");
        assert_eq!((self.sum.classes(), self.sum.features()), shape, "the buffers have the shape of the examples");
        let mut tally = Tally::default();
        for block in batch.chunks(BLOCK) {
            match examples.features() {
                Features::Dense(dense) => self.dense(weights, dense, block, (&mut tally, examples.classes(), gradient)),
                Features::Sparse(sparse) => {
                    self.sparse(weights, sparse, block, (&mut tally, examples.classes(), gradient));
                }
            }
        }
        tally
    }

    fn dense(&mut self, weights: &Weights, dense: &Dense, block: &[u32], (tally, classes, gradient): Sink<'_>) {
        // A short block repeats its last example; the repeats weigh 0.
        let rows: Block<'_> = std::array::from_fn(|i| {
            let example = block[i.min(block.len() - 1)];
            dense.padded(example as usize).as_chunks().0
        });
        for class in (0..self.scores.len()).step_by(TILE) {
            let scores = &mut self.scores[class..];
            match scores.len() {
                1 => products::<1>(weights, class, &rows, scores),
                2 => products::<2>(weights, class, &rows, scores),
                3 => products::<3>(weights, class, &rows, scores),
                4 => products::<4>(weights, class, &rows, scores),
                _ => products::<TILE>(weights, class, &rows, scores),
            }
        }
        self.softmax(block, classes, tally);
        for class in (0..self.scores.len()).step_by(TILE).take_while(|_| gradient) {
            let scores = &self.scores[class..];
            match scores.len() {
                1 => outer_products::<1>(&mut self.sum, class, &rows, scores),
                2 => outer_products::<2>(&mut self.sum, class, &rows, scores),
                3 => outer_products::<3>(&mut self.sum, class, &rows, scores),
                4 => outer_products::<4>(&mut self.sum, class, &rows, scores),
                _ => outer_products::<TILE>(&mut self.sum, class, &rows, scores),
            }
        }
    }

    fn sparse(&mut self, weights: &Weights, sparse: &Sparse, block: &[u32], (tally, classes, gradient): Sink<'_>) {
        let bias = weights.features();
        for (i, example) in block.iter().enumerate() {
            let (columns, values) = sparse.row(*example as usize);
            for (class, scores) in self.scores.iter_mut().enumerate() {
                let row = weights.row(class);
                scores[i] = columns.iter().zip(values).fold(row[bias], |sum, (c, v)| sum + row[*c as usize] * v);
            }
        }
        self.softmax(block, classes, tally);
        for (i, example) in block.iter().enumerate().take_while(|_| gradient) {
            let (columns, values) = sparse.row(*example as usize);
            for (class, scores) in self.scores.iter().enumerate() {
                let row = self.sum.row_mut(class);
                columns.iter().zip(values).for_each(|(c, v)| row[*c as usize] += scores[i] * v);
                row[bias] += scores[i];
            }
        }
    }

    /// Turns a block's scores into p - 1[y = k], and those of repeats into 0.
    fn softmax(&mut self, block: &[u32], classes: &[u32], tally: &mut Tally) {
        for i in 0..BLOCK {
            let Some(example) = block.get(i) else {
                self.scores.iter_mut().for_each(|scores| scores[i] = 0.0);
                continue;
            };
            let class = classes[*example as usize] as usize;
            let (mut best, mut best_score) = (0, f32::NEG_INFINITY);
            for (class, scores) in self.scores.iter().enumerate() {
                if scores[i] > best_score {
                    (best, best_score) = (class, scores[i]);
                }
            }
            let own_score = self.scores[class][i];
            let mut total = 0.0;
            for scores in &mut self.scores {
                // Subtracting the greatest score keeps exp from overflowing and changes no probability.
                scores[i] = libm::expf(scores[i] - best_score);
                total += scores[i];
            }
            self.scores.iter_mut().for_each(|scores| scores[i] /= total);
            self.scores[class][i] -= 1.0;
            tally.examples += 1;
            tally.correct += u64::from(best == class);
            tally.loss_sum += libm::log(f64::from(total)) + f64::from(best_score) - f64::from(own_score);
        }
    }
}

/// Where results go: the tally, the examples' classes, and whether a gradient is wanted.
type Sink<'a> = (&'a mut Tally, &'a [u32], bool);

/// `scores[k][i] = W[class + k] . rows[i]`.
fn products<const C: usize>(weights: &Weights, class: usize, rows: &Block<'_>, scores: &mut [[f32; BLOCK]]) {
    let weights: [&[Lanes]; C] = std::array::from_fn(|k| weights.lanes(class + k));
    for (pair, [a, b]) in rows.as_chunks::<2>().0.iter().enumerate() {
        let sums = two_products(weights, a, b);
        for (scores, [a, b]) in scores.iter_mut().zip(sums) {
            scores[2 * pair] = a;
            scores[2 * pair + 1] = b;
        }
    }
}

fn two_products<const C: usize>(weights: [&[Lanes]; C], a: &[Lanes], b: &[Lanes]) -> [[f32; 2]; C] {
    let length = a.len();
    let b = &b[..length];
    let weights = weights.map(|row| &row[..length]);
    let mut sums = [[[0.0f32; LANES]; 2]; C];
    for j in 0..length {
        for (sums, row) in sums.iter_mut().zip(&weights) {
            for lane in 0..LANES {
                sums[0][lane] += row[j][lane] * a[j][lane];
            }
            for lane in 0..LANES {
                sums[1][lane] += row[j][lane] * b[j][lane];
            }
        }
    }
    sums.map(|pair| pair.map(|[a, b, c, d]| (a + b) + (c + d)))
}

/// `sum[class + k] += scores[k][i] * rows[i]` for every example of the block.
fn outer_products<const C: usize>(sum: &mut Weights, class: usize, rows: &Block<'_>, scores: &[[f32; BLOCK]]) {
    let length = rows[0].len();
    let rows = rows.map(|row| &row[..length]);
    let mut sums = sum.lanes_mut(class, C).chunks_exact_mut(length);
    let mut sums: [&mut [Lanes]; C] = std::array::from_fn(|_| sums.next().expect("C rows were asked for"));
    // Each factor in all lanes, so that the inner loop need not spread it.
    let factors: [[Lanes; BLOCK]; C] = std::array::from_fn(|k| scores[k].map(|factor| [factor; LANES]));
    for j in 0..length {
        let mut tile: [Lanes; C] = std::array::from_fn(|k| sums[k][j]);
        for (i, row) in rows.iter().enumerate() {
            let x = row[j];
            for (tile, factors) in tile.iter_mut().zip(&factors) {
                for lane in 0..LANES {
                    tile[lane] += factors[i][lane] * x[lane];
                }
            }
        }
        for (sums, tile) in sums.iter_mut().zip(tile) {
            sums[j] = tile;
        }
    }
}

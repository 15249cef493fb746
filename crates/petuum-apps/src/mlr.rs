//! Softmax regression (multi-class logistic regression) by mini-batch stochastic gradient descent.
//!
//! The model is a table of one row per class: D weights and, last, a bias. In each clock a worker reads all rows,
//! computes the gradient over its mini-batch, adds its share of the step and ends the clock:
//!
//! ```text
//!   R_k  = sum over its batch of (p_k - 1[y = k])            G_k = sum over its batch of (p_k - 1[y = k]) x
//!   w_k += dw = -step(epoch) * ( (G_k - R_k m) / B  +  lambda * share * w_k )
//!   b_k += -step(epoch) * R_k / B  -  m . dw
//!   B     = examples of the whole data set / clocks per epoch
//!   share = its examples / examples of the whole data set
//!   m     = the data's centre, the same for every worker (0 for sparse data)
//! ```
//!
//! That is gradient descent in the centred parameters w and c = b + m . w, written for w and b. Any m has the same
//! optimum and the same table; the features' mean makes the way there shorter, because it takes away the one direction
//! in which all examples agree and which alone would bound the step (LeCun et al. 1998, *Efficient BackProp*, 4.3).
//! With m = 0 it is the plain rule.
//!
//! Dividing by B, the batch of all workers together, instead of by one's own, makes the steps of a clock add up to one
//! step on the mean over all workers' batches: N workers with batches of b do what one does with a batch of N b, and
//! the step size need not change with their number. The shares of the lambda term add up to 1 likewise.
//!
//! A run keeps no state of its own: what it does next is a pure function of the settings, the data and
//! [`Worker::now`], so a restarted worker goes on at its committed clock with the batch it would have had.

mod cursor;
mod gradient;
mod run;
mod settings;
#[cfg(test)]
mod tests;
mod weights;

pub use cursor::{Cursor, ThreadPlace};
pub use gradient::{Gradient, Tally};
pub use run::{ClockReport, Error, Observer, Summary, Tables, evaluate, read_weights, run};
pub use settings::{Schedule, Settings, SettingsError};
pub use weights::Weights;

#[cfg(doc)]
use petuum_client::Worker;

//! P1: what a worker's threads add, per clock, until it lies encoded in parts.
//!
//! Reading order: `scalar` (the two value types), `delta` (one row's additions), [`UpdateBuffer`] (one
//! thread's), [`ClockUpdates`] (one clock's), [`cut`] (parts). Not here: where parts go and when ([`crate::commit`]).

mod buffer;
mod clock;
mod cut;
mod delta;
mod scalar;
#[cfg(test)]
pub(crate) mod tests;

pub use buffer::UpdateBuffer;
pub use clock::ClockUpdates;
pub use cut::cut;
pub use scalar::{Scalar, ValuesRef};

//! What a seed comes to: what a run is made of, and which faults it has.

use petuum_chaos::{Buggify, Failpoint};

use super::faults::Kind;
use super::setup::Shape;

/// Where the product is clumsy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clumsy {
    /// At none of its places.
    Nowhere,
    /// At about half of them.
    Drawn,
    /// At these.
    At(&'static [Buggify]),
}

/// Which faults a run has.
pub(super) struct Plan {
    pub(super) faults: Vec<Kind>,
    pub(super) clumsy: Clumsy,
    /// Points at which the power may go.
    pub(super) points: &'static [Failpoint],
}

/// What a seed comes to.
pub(super) struct Drawn {
    pub(super) shape: Shape,
    pub(super) plan: Plan,
}

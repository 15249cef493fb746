//! What a seed comes to: what a run is made of, and which faults it has.

use super::faults::Kind;
use super::setup::Shape;

/// Which faults a run has.
pub(super) struct Plan {
    pub(super) faults: Vec<Kind>,
    /// Whether the product is clumsy at some of its places.
    pub(super) clumsy: bool,
}

/// What a seed comes to.
pub(super) struct Drawn {
    pub(super) shape: Shape,
    pub(super) plan: Plan,
}

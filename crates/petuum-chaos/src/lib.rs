//! Points inside the product at which a simulation can act.
//!
//! * A [`Failpoint`] stands on each side of a step that is durable or that others see. Reaching one tells the simulation,
//!   which may take the machine's power right there.
//! * A [`Buggify`] is a place that may lawfully be clumsy: lose a stream, send twice, cut small.
//! * A [`Mutant`] is a defect planted on the very line that keeps a rule. A test harness that does not notice it is blind
//!   for that rule.
//!
//! Without the feature `active`, which only the simulator switches on, [`reached`] does nothing, [`clumsy`] and [`mutated`]
//! are `false` at compile time: what users build has none of them. With it, they act on the calling thread alone, and only while a
//! simulation has [installed](install) a handler or [planted](plant) a mutant there; other threads and real processes go
//! on as if it were off.

mod buggify;
mod catalogue;
mod failpoint;
mod mutant;

pub use buggify::Buggify;
pub use failpoint::Failpoint;
pub use mutant::{Guarantee, Mutant};

#[cfg(feature = "active")]
mod active;
#[cfg(feature = "active")]
pub use active::{Handler, Installed, Planted, clumsy, install, mutated, plant, reached};

/// Says that a failpoint was reached.
#[cfg(not(feature = "active"))]
#[inline]
pub const fn reached(_: Failpoint) {}

/// Whether to be clumsy here, this time.
#[cfg(not(feature = "active"))]
#[inline]
#[must_use]
pub const fn clumsy(_: Buggify) -> bool {
    false
}

/// Whether this defect is planted here.
#[cfg(not(feature = "active"))]
#[inline]
#[must_use]
pub const fn mutated(_: Mutant) -> bool {
    false
}

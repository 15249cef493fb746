//! What a worker may show to a reader (P10, G4, G5), and which clock each of its threads is in.
//!
//! [`Workspace`] is what the client keeps behind one lock: the threads' clocks and buffers, the updates that answers do
//! not contain yet, and the cache. Reading order: [`ThreadClocks`], [`RowCache`], `own` (updates on their way),
//! [`Workspace`].

mod cache;
mod own;
#[cfg(test)]
mod tests;
mod threads;
mod workspace;

pub use cache::{CacheSettings, RowCache};
pub use threads::ThreadClocks;
pub use workspace::{Requirement, Workspace};

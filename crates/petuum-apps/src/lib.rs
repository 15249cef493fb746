//! Learning programs and data loaders on the public client.
//!
//! ```text
//!   files ── data ──> Examples (a worker's part) ──┐
//!                                                  ├─> mlr::run ──> get_many, inc_dense, clock   (petuum_client)
//!   mlr::Settings ─────────────────────────────────┘       └──────> Observer ──> report
//! ```
//!
//! Reading order: [`data`] (IDX, libsvm and CSV; each worker keeps only its part), [`mlr`] (softmax regression),
//! [`counter`] (rows that show whether every clock counted once), [`report`] (what a run leaves behind).
//!
//! Programs know no network, no threads and no wall clock: they see one [`petuum_client::Worker`], so that the same
//! program runs in processes, in threads and in the simulator. Invariants: a program's data order is a pure function of
//! its settings and its clock, and arithmetic is element-wise in one fixed order with transcendental functions from
//! `libm`, so that the same reads give the same updates, bit for bit, on every CPU.
//!
//! Tests: beside each module; `mlr/tests.rs` trains on an in-memory cluster whose reads are as stale as allowed.

pub mod counter;
pub mod data;
pub mod mlr;
pub mod report;
#[cfg(test)]
mod testing;

//! A cluster in a simulated network, on simulated disks, from one seed.
//!
//! ```text
//!   Simulation ── turmoil: hosts, links, virtual tokio time        (simulation.rs)
//!     ├── VirtualClock: what the system's clocks say meanwhile     (clock.rs)
//!     ├── SimCluster: real nodes, their deaths and links, views    (cluster/)
//!     ├── Faults: what strikes it when, from the seed              (faults/)
//!     ├── UnitVectors: what reads may show under staleness         (oracle/)
//!     ├── SimListener, SimConnector: petuum-net's seams            (net.rs)
//!     ├── Failpoints: the power goes inside a step                (failpoints.rs)
//!     ├── History: what happened, and a drawing of it             (history/)
//!     ├── Disk: RocksDB's files, power failures, I/O errors        (disk/)
//!     ├── what a panic says of where it happened                   (panics.rs)
//!     ├── Trace: everything that is logged, in virtual time        (trace.rs)
//!     └── meta: one seed, two processes, equal traces              (meta.rs)
//! ```
//!
//! One seed gives one run, byte for byte, as long as the code in the hosts takes its time from tokio, its randomness from
//! a seed, starts no threads and does not branch on what RocksDB's threads have done (sizes, properties, file counts).
//! This crate is not part of any node: nothing that users install depends on it.
//!
//! Users of this crate must build with `--cfg tokio_unstable`: turmoil seeds tokio's scheduler only then.

#[cfg(not(any(tokio_unstable, doc)))]
compile_error!(
    "petuum-sim needs tokio's seeded scheduler: put `rustflags = [\"--cfg\", \"tokio_unstable\"]` under [build] in \
     .cargo/config.toml, and unset RUSTFLAGS, which would replace it. Without it one seed would not give one run."
);

pub mod clock;
pub mod cluster;
pub mod disk;
mod failpoints;
pub mod faults;
pub mod history;
pub mod meta;
mod net;
pub mod oracle;
mod panics;
mod simulation;
mod trace;

pub use cluster::{ClusterBuilder, SimCluster, client_options};
pub use petuum_server::NodeSettings;

pub use failpoints::{Failpoints, Struck};
pub use faults::{Faults, Kind as FaultKind};
pub use history::History;
pub use net::{SimConnector, SimListener};
pub use panics::draw_if_it_panics;
pub use simulation::{Error, Settings, Simulation, TICK};
pub use trace::Trace;

/// Virtual time of the simulation that the caller runs in; none outside of one.
#[must_use]
pub fn now() -> Option<std::time::Duration> {
    turmoil::sim_elapsed()
}

/// What the software of a host ends with.
pub type HostResult = turmoil::Result;

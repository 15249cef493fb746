//! What the workers of a scenario and its runner share: what may be read, who is to stop where, what was counted.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use petuum_sim::oracle::UnitVectors;
use petuum_types::RowId;

use super::report::Work;

/// The job's name.
pub(super) const JOB: &str = "job";
/// The table's name.
pub(super) const TABLE: &str = "units";
/// A table of `f32` that refuses what is not finite.
pub(super) const FRAGILE: &str = "fragile";

/// Where a worker can be stopped inside a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    /// Its updates are buffered, `clock()` is not called.
    BeforeClock,
    /// `clock()` has returned: parts are on their way, ticks may be.
    AfterClock,
}

/// What workers and the runner share.
pub(super) struct Shared {
    /// What may be read.
    pub(super) oracle: UnitVectors,
    /// The rows, at least one in every shard.
    pub(super) rows: Vec<RowId>,
    /// Clocks to finish; set once all faults have happened.
    pub(super) target: u64,
    /// By worker: where it is to stop, and whether it has.
    pub(super) stops: BTreeMap<u32, (Point, bool)>,
    /// By worker: what each of its clocks takes longer.
    pub(super) slow: BTreeMap<u32, Duration>,
    /// By worker: the host of its latest session.
    pub(super) latest: BTreeMap<u32, String>,
    /// Second hosts of workers that may register.
    pub(super) takes_over: BTreeSet<String>,
    /// By worker: whether it has finished all clocks, and everything of them is ticked everywhere.
    pub(super) finished: BTreeMap<u32, bool>,
    /// By worker: the clock at which it has left the job.
    pub(super) left: BTreeMap<u32, u64>,
    /// By worker and incarnation: when the session surely still had a whole lease.
    pub(super) renewed: BTreeMap<(u32, u64), Duration>,
    /// By worker and incarnation.
    pub(super) work: BTreeMap<(u32, u64), Work>,
    /// Sessions that followed another of the same worker.
    pub(super) takeovers: u64,
    /// Reads without a session that were answered.
    pub(super) latest_reads: u64,
    /// Clocks that were refused and given up.
    pub(super) given_up: u64,
    /// Sessions of workers that had been removed.
    pub(super) rejoins: u64,
    /// Workers that left in the midst of their work.
    pub(super) leaves: u64,
    /// Set when workers may leave.
    pub(super) over: bool,
}

/// Handle on what is shared; nobody holds it across an await.
pub(super) type Handle = Rc<RefCell<Shared>>;

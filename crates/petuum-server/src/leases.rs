//! The leases of the control group's leader (P16): soft state, timed by its monotonic clock.

use petuum_chaos::{Mutant, mutated};
use petuum_control::{Control, ControlCommand, Leases};
use petuum_types::{Incarnation, JobId, WorkerId};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The leases of a control leader, with the instant its time counts from. A new leader has none (P16).
#[derive(Default)]
pub(crate) struct LeaseTable {
    current: Option<(Instant, Leases)>,
    /// When a majority last confirmed that this node leads.
    confirmed: Option<Instant>,
}

impl LeaseTable {
    pub(crate) fn begin(&mut self) {
        if self.current.is_some() && mutated(Mutant::LeaseKeptOverFailover) {
            return;
        }
        self.current = Some((Instant::now(), Leases::new()));
    }

    pub(crate) fn end(&mut self) {
        self.confirmed = None;
        if !mutated(Mutant::LeaseKeptOverFailover) {
            self.current = None;
        }
    }

    /// Whether a majority has confirmed within `age` that this node leads.
    pub(crate) fn is_confirmed(&self, age: Duration) -> bool {
        self.confirmed.is_some_and(|at| at.elapsed() < age)
    }

    /// A majority has confirmed it, when asked at this instant.
    pub(crate) fn confirm(&mut self, at: Instant) {
        self.confirmed = Some(at);
    }

    /// Counts a heartbeat, if this node leads. False if the lease has ended and the worker is being removed.
    #[must_use]
    pub(crate) fn heartbeat(
        &mut self,
        job: JobId,
        worker: WorkerId,
        incarnation: Incarnation,
        lease: Duration,
    ) -> bool {
        let Some((start, leases)) = &mut self.current else { return true };
        leases.heartbeat((job, worker), incarnation, lease, start.elapsed())
    }

    /// What is left of the lease of a job's workers; of nobody, if this node does not lead.
    pub(crate) fn left(&self, state: &Control, job: JobId) -> BTreeMap<WorkerId, Duration> {
        let left = self.current.as_ref().map(|(start, leases)| leases.left(state, job, start.elapsed()));
        left.unwrap_or_default()
    }

    pub(crate) fn expired(&mut self, state: &Control) -> Vec<ControlCommand> {
        let Some((start, leases)) = &mut self.current else { return Vec::new() };
        let now = start.elapsed();
        leases.sync(state, now);
        let expired = leases.expired(state, now);
        expired.into_iter().map(|(job, worker, i)| ControlCommand::lease_expired(job, worker, i)).collect()
    }
}

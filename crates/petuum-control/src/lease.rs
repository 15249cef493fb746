//! Worker leases: a control leader's soft state, timed by its monotonic clock (P16).
//!
//! Nothing of this is in the log. A new leader starts with `Leases::new()`, so everybody gets a full lease; what a lease's
//! end leads to is an ordinary eviction that names the incarnation, so it never touches a successor.
//!
//! Only live workers of a started job have leases. Before the start nobody waits for a worker's ticks, so a silent one
//! holds nobody up; and a process that waits for the other N - 1 need not fear to be evicted for waiting (P18).

use crate::state::{Control, Job};
use crate::worker::Phase;
use petuum_types::{Incarnation, JobId, WorkerId};
use std::collections::BTreeMap;
use std::time::Duration;

/// When each live worker was heard last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Leases {
    heard: BTreeMap<(JobId, WorkerId), (Incarnation, Duration)>,
    /// When this leader looked last.
    looked: Option<Duration>,
}

/// A leader that has not looked for longer than this stood still itself, and heard nobody.
const STOOD_STILL: Duration = Duration::from_secs(1);

impl Leases {
    /// Has heard nobody.
    #[must_use]
    pub const fn new() -> Self {
        Self { heard: BTreeMap::new(), looked: None }
    }

    /// A heartbeat at `now`, a time since any fixed instant of this leader. One of another incarnation than the lease's
    /// is not counted: a replaced process does not keep its successor alive. False if its `lease` has ended: the worker is
    /// being removed, and whoever is told that it lives must not be removed after it.
    #[must_use]
    pub fn heartbeat(
        &mut self,
        key: (JobId, WorkerId),
        incarnation: Incarnation,
        lease: Duration,
        now: Duration,
    ) -> bool {
        let away = self.away(now);
        match self.heard.get_mut(&key) {
            Some((holder, heard)) if *holder == incarnation => {
                let in_time = now.saturating_sub(*heard) < lease + away;
                *heard = if in_time { now.max(*heard) } else { *heard };
                in_time
            }
            _ => true,
        }
    }

    /// Gives a full lease to each worker, or incarnation of one, that has become live, and ends those of the others. To be
    /// called often: time in which it was not, because the leader's process or its disk stood still, counts for no lease.
    pub fn sync(&mut self, state: &Control, now: Duration) {
        let away = self.away(now);
        self.looked = Some(now);
        let mut old = std::mem::take(&mut self.heard);
        old.values_mut().for_each(|(_, heard)| *heard = now.min(*heard + away));
        self.heard = leased(state)
            .map(|(key, incarnation, _)| {
                let kept = old.get(&key).filter(|(holder, _)| *holder == incarnation);
                (key, kept.copied().unwrap_or((incarnation, now)))
            })
            .collect();
    }

    /// How long this leader stood still before `now`.
    fn away(&self, now: Duration) -> Duration {
        let since = self.looked.map_or(Duration::ZERO, |looked| now.saturating_sub(looked));
        since.saturating_sub(STOOD_STILL)
    }

    /// Who has been silent for a whole lease; [`crate::ControlCommand::lease_expired`] is what to propose.
    #[must_use]
    pub fn expired(&self, state: &Control, now: Duration) -> Vec<(JobId, WorkerId, Incarnation)> {
        leased(state)
            .filter(|(key, incarnation, lease)| {
                // Without an entry it has become live since the last sync, and has a full lease.
                self.heard
                    .get(key)
                    .is_some_and(|(holder, heard)| holder == incarnation && now.saturating_sub(*heard) >= *lease)
            })
            .map(|((job, worker), incarnation, _)| (job, worker, incarnation))
            .collect()
    }

    /// What is left of the lease of a job's workers at `now`; without those that have none.
    pub fn left(&self, state: &Control, job: JobId, now: Duration) -> BTreeMap<WorkerId, Duration> {
        let leased = leased(state).filter(|((of, _), ..)| *of == job);
        let left = leased.map(|(key, incarnation, lease)| {
            let heard =
                self.heard.get(&key).filter(|(holder, _)| *holder == incarnation).map_or(now, |(_, heard)| *heard);
            (key.1, lease.saturating_sub(now.saturating_sub(heard)))
        });
        left.collect()
    }
}

fn leased(state: &Control) -> impl Iterator<Item = ((JobId, WorkerId), Incarnation, Duration)> {
    let started = state.jobs().filter(|(_, job)| job.has_started());
    started.flat_map(|(id, job): (JobId, &Job)| {
        let lease = Duration::from_millis(job.settings().lease_ms);
        job.workers().filter_map(move |(worker, record)| match *record.phase() {
            Phase::Live { incarnation, .. } => Some(((id, worker), incarnation, lease)),
            Phase::Transition(_) | Phase::Removed { .. } => None,
        })
    })
}

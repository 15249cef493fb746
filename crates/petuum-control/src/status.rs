//! What a registered process, or one that asks for it, is told of itself (P17, P18).
//!
//! Reads only. A registration is answered when its worker is live and the job has started; a heartbeat is answered by
//! whether its incarnation still speaks for the worker.

use crate::state::{Control, Job};
use crate::worker::{Phase, Transition, Worker};
use petuum_types::{Clock, Generation, Incarnation, JobId, RequestId, WorkerId};

/// Workers named in a text before the rest are counted.
const NAMED_MAX: usize = 8;

/// How far a registration is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RegistrationStatus {
    /// Not yet; ask again.
    Pending {
        /// For whom or what, for people.
        waiting_for: String,
    },
    /// Done: the process may go on.
    Ready {
        /// What it is.
        incarnation: Incarnation,
        /// The job's generation.
        generation: Generation,
        /// C: the clock it starts at.
        start: Clock,
    },
    /// Another process has registered as this worker since; end (P17).
    Replaced {
        /// The successor.
        by: Incarnation,
    },
    /// The worker has been removed since.
    Evicted {
        /// Its clock everywhere; its updates from here on are lost.
        at: Clock,
    },
    /// No such registration: of another job or worker, not applied yet, or forgotten.
    Unknown,
}

/// Whether an incarnation speaks for its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It does.
    Live,
    /// It is being removed; at which clock is not known yet.
    Removing,
    /// Another process has registered as this worker; end (P17).
    Replaced {
        /// The successor.
        by: Incarnation,
    },
    /// The worker was removed.
    Evicted {
        /// Its clock everywhere; its updates from here on are lost.
        at: Clock,
    },
    /// Never given to a process of this worker.
    Unknown,
}

impl Control {
    /// How far the registration that carried `request` is. The same request is told the same, as long as no other
    /// process has registered and nobody has removed the worker (P17).
    #[must_use]
    pub fn registration(&self, job: JobId, worker: WorkerId, request: RequestId) -> RegistrationStatus {
        let Some(job) = self.job(job) else {
            return RegistrationStatus::Unknown;
        };
        let Some((record, incarnation)) =
            job.worker(worker).and_then(|record| Some((record, record.registered_by(request)?)))
        else {
            return RegistrationStatus::Unknown;
        };
        let by = record.speaker();
        if incarnation < by {
            return RegistrationStatus::Replaced { by };
        }
        match record.phase {
            Phase::Transition(transition) if transition.is_removal() => match transition.clock {
                Some(at) => RegistrationStatus::Evicted { at },
                None => pending("its removal: a shard has not fenced it yet"),
            },
            Phase::Transition(Transition { clock: None, .. }) if !job.is_open() => {
                pending("the job: a shard has not opened it yet")
            }
            Phase::Transition(Transition { clock: None, .. }) => pending("a shard that has not fenced it yet"),
            Phase::Transition(Transition { clock: Some(_), .. }) => pending("a shard that has not settled it yet"),
            Phase::Live { .. } if !job.has_started() => {
                RegistrationStatus::Pending { waiting_for: missing_workers(job) }
            }
            Phase::Live { start, .. } => RegistrationStatus::Ready { incarnation, generation: job.generation(), start },
            Phase::Removed { at, .. } => RegistrationStatus::Evicted { at },
        }
    }

    /// Whether `incarnation` speaks for the worker: what a heartbeat is answered.
    #[must_use]
    pub fn standing(&self, job: JobId, worker: WorkerId, incarnation: Incarnation) -> Standing {
        let Some(record) = self.worker(job, worker) else {
            return Standing::Unknown;
        };
        let by = record.speaker();
        if incarnation == Incarnation(0) || incarnation > by {
            return Standing::Unknown;
        }
        if incarnation < by {
            return Standing::Replaced { by };
        }
        match record.phase {
            Phase::Removed { at, .. } => Standing::Evicted { at },
            Phase::Transition(transition) if transition.is_removal() => {
                transition.clock.map_or(Standing::Removing, |at| Standing::Evicted { at })
            }
            Phase::Transition(_) | Phase::Live { .. } => Standing::Live,
        }
    }
}

fn pending(waiting_for: &str) -> RegistrationStatus {
    RegistrationStatus::Pending { waiting_for: waiting_for.into() }
}

/// Which workers keep the job from starting (P18), for people.
fn missing_workers(job: &Job) -> String {
    let missing = (0..job.size()).map(WorkerId).filter(|id| !job.worker(*id).is_some_and(Worker::was_settled));
    let state = |id: WorkerId| match job.worker(id).map(Worker::phase) {
        None => "has not registered",
        Some(Phase::Removed { .. }) => "was removed before it began",
        Some(Phase::Transition(transition)) if transition.is_removal() => "is being removed",
        Some(_) => "is not settled yet",
    };
    let (named, rest): (Vec<_>, Vec<_>) = missing.enumerate().partition(|(i, _)| *i < NAMED_MAX);
    let mut text: Vec<String> = named.into_iter().map(|(_, id)| format!("{id} {}", state(id))).collect();
    if !rest.is_empty() {
        text.push(format!("and {} more", rest.len()));
    }
    text.join(", ")
}

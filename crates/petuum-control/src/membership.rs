//! Who is in a job: registrations and removals (P5, P15, P17).
//!
//! Not here: what a worker's phases are and how they follow each other ([`crate::worker`]); how a transition ends
//! ([`crate::duty`], [`crate::driver`]).

use crate::command::{ControlAnswer, EvictReason};
use crate::decision::{Decision, Refusal, refuse};
use crate::state::{Control, Job};
use crate::worker::{Phase, Transition, TransitionKind, Worker};
use petuum_chaos::{Mutant, mutated};
use petuum_types::{ErrorKind, Incarnation, JobId, RequestId, WorkerId};

/// Who and how a call registers.
#[derive(Clone, Copy)]
pub(crate) struct Registering {
    pub(crate) request: RequestId,
    pub(crate) job: JobId,
    pub(crate) worker: WorkerId,
    pub(crate) rejoin: bool,
}

/// Whom and why a call evicts.
#[derive(Clone, Copy)]
pub(crate) struct Evicting {
    pub(crate) job: JobId,
    pub(crate) worker: WorkerId,
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) reason: EvictReason,
}

impl Control {
    /// A join, or a takeover of the process before (P5, P15, P17).
    pub(crate) fn register(&mut self, call: Registering) -> Decision {
        let Registering { request, job: job_id, worker: id, rejoin } = call;
        let job = self.job_mut(job_id)?;
        check_worker(job, id)?;
        let Some(worker) = job.workers.get(&id) else {
            let incarnation = job.next_incarnation();
            job.workers.insert(id, Worker::joining(request, incarnation));
            return Ok(ControlAnswer::Registered { incarnation });
        };
        if let Some(incarnation) = worker.registered_by(request) {
            return Ok(ControlAnswer::Registered { incarnation });
        }
        match worker.phase {
            Phase::Transition(Transition { kind: TransitionKind::Remove { .. }, .. }) => refuse(
                ErrorKind::Unavailable,
                format!("{id} of job `{}` is being removed; try again when every shard has confirmed it", job.name),
            ),
            Phase::Removed { at, reason, .. } if !rejoin => refuse(
                ErrorKind::Evicted,
                format!(
                    "{id} of job `{}` was removed at {at} ({reason:?}): its clocks from {} on are lost; re-join explicitly",
                    job.name, at.0
                ),
            ),
            Phase::Transition(_) | Phase::Live { .. } | Phase::Removed { .. } => {
                let incarnation = job.next_incarnation();
                let worker = job.workers.get_mut(&id).expect("found above");
                worker.register(request, incarnation);
                Ok(ControlAnswer::Registered { incarnation })
            }
        }
    }

    /// A removal; never of a successor of the incarnation it names (P16, P17).
    pub(crate) fn evict(&mut self, call: Evicting) -> Decision {
        let Evicting { job: job_id, worker: id, incarnation: named, reason } = call;
        let job = self.job_mut(job_id)?;
        check_worker(job, id)?;
        if named.is_none() && reason != EvictReason::Operator {
            return refuse(ErrorKind::InvalidArgument, format!("removing {id} ({reason:?}) without its incarnation"));
        }
        let Some(worker) = job.workers.get(&id) else {
            return refuse(ErrorKind::NotFound, format!("{id} of job `{}` has never registered", job.name));
        };
        let speaker = worker.speaker();
        match named {
            Some(named) if named < speaker && !mutated(Mutant::StaleEvictHonoured) => {
                return refuse(
                    ErrorKind::Replaced,
                    format!("{id} of job `{}` is {speaker} now; {named} was replaced", job.name),
                );
            }
            Some(named) if named > speaker => {
                return refuse(ErrorKind::NotFound, format!("{id} of job `{}` is {speaker}; got {named}", job.name));
            }
            _ => {}
        }
        let version = worker.phase.incarnation();
        if version > speaker {
            return Ok(ControlAnswer::Removing { incarnation: version });
        }
        let incarnation = job.next_incarnation();
        job.workers.get_mut(&id).expect("found above").remove(reason, incarnation);
        Ok(ControlAnswer::Removing { incarnation })
    }
}

fn check_worker(job: &Job, worker: WorkerId) -> Result<(), Refusal> {
    if worker.0 < job.size {
        return Ok(());
    }
    refuse(
        ErrorKind::InvalidArgument,
        format!("{worker} of job `{}`; expected a worker from 0 to {}", job.name, job.size - 1),
    )
}

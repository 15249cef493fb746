//! What the shards still have to be told, read from the control group's state alone (P5, P15, P18).
//!
//! Any control leader, at any time, derives the same duties from the same state; so a later one finishes what an earlier
//! one began, and two that overlap send the same commands. Order is kept by what a duty waits for:
//!
//! ```text
//! Own (the map) ──► OpenJob ──► CreateTable / DropTable
//!                      └──────► Fence ──C recorded──► Settle
//! ```
//! Not here: which shards have answered ([`crate::driver`]).

use crate::state::{Control, Table, TablePhase};
use crate::worker::{Transition, TransitionKind};
use petuum_types::command::{ShardCommand, WorkerKey};
use petuum_types::{Generation, Incarnation, JobId, MapEpoch, ShardId, TableId};

/// Names one piece of work for ever: a duty that is over never comes back under the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DutyId {
    /// Every shard owns its slots.
    Own {
        /// Of this map.
        epoch: MapEpoch,
    },
    /// Every shard has the job.
    OpenJob {
        /// The job.
        job: JobId,
        /// Its generation.
        generation: Generation,
    },
    /// Every shard has the table.
    CreateTable {
        /// The table.
        table: TableId,
    },
    /// Every shard has dropped the table.
    DropTable {
        /// The table.
        table: TableId,
    },
    /// Every shard has fenced a transition's worker and said its clock.
    Fence {
        /// Whose.
        worker: WorkerKey,
        /// The transition's.
        incarnation: Incarnation,
    },
    /// Every shard has settled the worker at C.
    Settle {
        /// Whose.
        worker: WorkerKey,
        /// The transition's.
        incarnation: Incarnation,
    },
}

/// One piece of work and what each shard of the current map has to be told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Duty {
    /// Which.
    pub id: DutyId,
    /// In order of shards.
    pub commands: Vec<(ShardId, ShardCommand)>,
}

/// All outstanding work, in order.
#[must_use]
pub fn duties(state: &Control) -> Vec<Duty> {
    let Some(map) = state.map() else {
        return Vec::new();
    };
    let duty = |id: DutyId| Duty {
        id,
        commands: map
            .shards
            .keys()
            .map(|shard| (*shard, command(state, &id, *shard).expect("an outstanding duty has every shard to tell")))
            .collect(),
    };
    outstanding(state).into_iter().map(duty).collect()
}

/// The names of all outstanding work, in order.
pub(crate) fn outstanding(state: &Control) -> Vec<DutyId> {
    let Some(map) = state.map() else {
        return Vec::new();
    };
    let mut ids = Vec::new();
    if !state.map_is_ready() {
        ids.push(DutyId::Own { epoch: map.epoch });
    }
    let opening = state.jobs().filter(|(_, job)| state.map_is_ready() && !job.is_open());
    ids.extend(opening.map(|(id, job)| DutyId::OpenJob { job: id, generation: job.generation() }));
    let is_open = |job: JobId| state.job(job).is_some_and(|job| job.is_open());
    ids.extend(state.tables.iter().filter(|(_, table)| is_open(table.schema.job)).filter_map(|(id, table)| {
        match table.phase {
            TablePhase::Creating => Some(DutyId::CreateTable { table: *id }),
            TablePhase::Dropping => Some(DutyId::DropTable { table: *id }),
            TablePhase::Ready => None,
        }
    }));
    for (id, job) in state.jobs().filter(|(_, job)| job.is_open()) {
        let under_way = job.workers().filter_map(|(w, record)| Some((w, record.phase().transition()?)));
        ids.extend(under_way.map(|(worker, transition)| {
            transition_duty(WorkerKey { job: id, generation: job.generation(), worker }, transition)
        }));
    }
    ids.sort_unstable();
    ids
}

const fn transition_duty(worker: WorkerKey, transition: &Transition) -> DutyId {
    let incarnation = transition.incarnation;
    match transition.clock {
        None => DutyId::Fence { worker, incarnation },
        Some(_) => DutyId::Settle { worker, incarnation },
    }
}

/// What a shard has to be told, or `None` if the duty is not outstanding or the shard is not in the current map.
pub(crate) fn command(state: &Control, id: &DutyId, shard: ShardId) -> Option<ShardCommand> {
    let map = state.map()?;
    let place = map.shards.get(&shard)?;
    match *id {
        DutyId::Own { epoch } => (epoch == map.epoch && !state.map_is_ready())
            .then(|| ShardCommand::Own { epoch, slots: place.slots.clone() }),
        DutyId::OpenJob { job, generation } => {
            let record = state.job(job).filter(|job| !job.is_open() && job.generation() == generation)?;
            state.map_is_ready().then_some(ShardCommand::OpenJob { job, generation, workers: record.size() })
        }
        DutyId::CreateTable { table } => {
            let record = open_table(state, table, TablePhase::Creating)?;
            Some(ShardCommand::CreateTable(record.schema.clone()))
        }
        DutyId::DropTable { table } => {
            open_table(state, table, TablePhase::Dropping).map(|_| ShardCommand::DropTable(table))
        }
        DutyId::Fence { worker, incarnation } => {
            let transition = open_transition(state, worker, incarnation)?;
            let admit = transition.kind == TransitionKind::Join;
            transition.clock.is_none().then_some(ShardCommand::Fence { worker, incarnation, admit })
        }
        DutyId::Settle { worker, incarnation } => {
            let transition = open_transition(state, worker, incarnation)?;
            let keep = !transition.is_removal();
            transition.clock.map(|clock| ShardCommand::Settle { worker, incarnation, clock, keep })
        }
    }
}

fn open_table(state: &Control, table: TableId, phase: TablePhase) -> Option<&Table> {
    let record = state.table(table).filter(|record| record.phase == phase)?;
    state.job(record.schema.job).filter(|job| job.is_open()).map(|_| record)
}

fn open_transition(state: &Control, worker: WorkerKey, incarnation: Incarnation) -> Option<&Transition> {
    state.job(worker.job).filter(|job| job.is_open())?;
    state.keyed(worker)?.phase().transition().filter(|transition| transition.incarnation == incarnation)
}

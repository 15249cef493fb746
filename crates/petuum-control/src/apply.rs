//! Applying one entry of the control group's log, and the records of drivers.
//!
//! Pure and deterministic: no time, lease or timeout is looked at (P16). Every member decides the same from the same state
//! and command, and a refusal changes nothing. Records of drivers are checked here again, since several drivers may
//! overlap and a map may have changed under one (P5). Calls of clients are decided in `calls` and `membership`.

use crate::command::{ControlAnswer, ControlCommand};
use crate::decision::Decision;
use crate::membership::{Evicting, Registering};
use crate::state::{Control, TablePhase};
use crate::worker::Worker;
use petuum_types::command::WorkerKey;
use petuum_types::{Clock, Incarnation, JobId, LogIndex, MapEpoch, TableId, TableSchema};

impl Control {
    /// Applies the entry at `index` and answers it. A repeated call gets the answer it got first (P17).
    ///
    /// # Panics
    /// If entries come out of order, or an invariant of the state is broken: a defect, in which the member must stop.
    pub fn apply(&mut self, index: LogIndex, command: &ControlCommand) -> ControlAnswer {
        assert!(index >= self.applied, "G6: entry {index} after {}", self.applied);
        self.applied = index;
        if let Some(answer) = self.answers.recall(command) {
            return answer;
        }
        let answer = self.decide(command).unwrap_or_else(|(kind, message)| ControlAnswer::Refused { kind, message });
        self.answers.remember(command, &answer);
        answer
    }

    fn decide(&mut self, command: &ControlCommand) -> Decision {
        match command.clone() {
            ControlCommand::Form { cluster, map } => self.form(cluster, map),
            ControlCommand::CreateJob { request: _, name, workers, settings } => {
                self.create_job(name, workers, settings)
            }
            ControlCommand::CreateTable {
                request: _,
                job,
                name,
                width,
                value_type,
                initial,
                seed,
                non_finite,
                staleness,
            } => {
                let id = TableId(0);
                self.create_table(TableSchema {
                    id,
                    job,
                    name,
                    width,
                    value_type,
                    initial,
                    seed,
                    non_finite,
                    staleness,
                })
            }
            ControlCommand::DropTable { request: _, job, name } => self.drop_table(job, &name),
            ControlCommand::Register { request, job, worker, rejoin } => {
                self.register(Registering { request, job, worker, rejoin })
            }
            ControlCommand::Evict { request: _, job, worker, incarnation, reason } => {
                self.evict(Evicting { job, worker, incarnation, reason })
            }
            ControlCommand::MapReady { epoch } => Ok(recorded(self.map_ready(epoch))),
            ControlCommand::JobReady { job, epoch } => Ok(recorded(self.job_ready(job, epoch))),
            ControlCommand::TableReady { table, epoch } => Ok(recorded(self.table_ready(table, epoch))),
            ControlCommand::TableGone { table, epoch } => Ok(recorded(self.table_gone(table, epoch))),
            ControlCommand::RecordClock { key, incarnation, clock, epoch } => {
                Ok(recorded(self.record_clock(key, incarnation, clock, epoch)))
            }
            ControlCommand::RecordSettled { key, incarnation, epoch } => {
                Ok(recorded(self.record_settled(key, incarnation, epoch)))
            }
        }
    }

    /// Whether a driver's record was made under the current map (P5: every shard of the *current* map).
    fn is_current(&self, epoch: MapEpoch) -> bool {
        self.map().is_some_and(|map| map.epoch == epoch)
    }

    fn map_ready(&mut self, epoch: MapEpoch) -> bool {
        match &mut self.cluster {
            Some(cluster) if cluster.map.epoch == epoch && cluster.owned != Some(epoch) => {
                cluster.owned = Some(epoch);
                true
            }
            _ => false,
        }
    }

    fn job_ready(&mut self, job: JobId, epoch: MapEpoch) -> bool {
        let current = self.is_current(epoch);
        match self.jobs.get_mut(&job) {
            Some(job) if current && !job.open => {
                job.open = true;
                true
            }
            _ => false,
        }
    }

    fn table_ready(&mut self, table: TableId, epoch: MapEpoch) -> bool {
        let current = self.is_current(epoch);
        match self.tables.get_mut(&table) {
            Some(table) if current && table.phase == TablePhase::Creating => {
                table.phase = TablePhase::Ready;
                true
            }
            _ => false,
        }
    }

    fn table_gone(&mut self, table: TableId, epoch: MapEpoch) -> bool {
        let dropping = self.table(table).is_some_and(|table| table.phase == TablePhase::Dropping);
        let gone = dropping && self.is_current(epoch);
        if gone {
            self.tables.remove(&table);
        }
        gone
    }

    fn record_clock(&mut self, key: WorkerKey, incarnation: Incarnation, clock: Clock, epoch: MapEpoch) -> bool {
        let current = self.is_current(epoch);
        current && self.keyed_mut(key).is_some_and(|worker| worker.record_clock(incarnation, clock))
    }

    fn record_settled(&mut self, key: WorkerKey, incarnation: Incarnation, epoch: MapEpoch) -> bool {
        let settled =
            self.is_current(epoch) && self.keyed_mut(key).is_some_and(|worker| worker.record_settled(incarnation));
        if settled {
            self.jobs.get_mut(&key.job).expect("it has this worker").start_if_complete();
        }
        settled
    }

    fn keyed_mut(&mut self, key: WorkerKey) -> Option<&mut Worker> {
        let job = self.jobs.get_mut(&key.job).filter(|job| job.generation == key.generation)?;
        job.workers.get_mut(&key.worker)
    }
}

const fn recorded(taken: bool) -> ControlAnswer {
    if taken { ControlAnswer::Recorded } else { ControlAnswer::Ignored }
}

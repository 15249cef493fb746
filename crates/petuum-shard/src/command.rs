//! Commands of the control group's drivers that are not transitions: slots, jobs and tables (P18). Each may arrive late,
//! twice or out of order.

use crate::job::Job;
use crate::shard::Shard;
use crate::table::Touched;
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::slot::SLOTS;
use petuum_types::{Generation, JobId, LogIndex, MapEpoch, TableId, TableSchema, limits};
use std::ops::Range;

impl Shard {
    pub(crate) fn apply_command(&mut self, index: LogIndex, c: &ShardCommand, touched: &mut Touched) -> ShardAnswer {
        match c {
            ShardCommand::Own { epoch, slots } => self.own(*epoch, slots),
            ShardCommand::OpenJob { job, generation, workers } => self.open_job(*job, *generation, *workers),
            ShardCommand::CreateTable(schema) => self.create_table(schema),
            ShardCommand::DropTable(table) => self.drop_table(*table),
            ShardCommand::Fence { worker, incarnation, admit } => self.fence(*worker, *incarnation, *admit),
            ShardCommand::Settle { worker, incarnation, clock, keep } => {
                let goal = crate::transition::Goal { incarnation: *incarnation, clock: *clock, keep: *keep };
                self.settle(index, *worker, goal, touched)
            }
        }
    }

    fn own(&mut self, epoch: MapEpoch, slots: &Range<u16>) -> ShardAnswer {
        if epoch <= self.epoch {
            return ShardAnswer::Done;
        }
        if slots.start >= slots.end || slots.end > SLOTS {
            return ShardAnswer::Refused(format!("slots {slots:?}; expected a range within 0..{SLOTS}"));
        }
        if self.epoch > MapEpoch(0) && *slots != self.slots {
            let ours = &self.slots;
            return ShardAnswer::Refused(format!("slots {slots:?} for {ours:?}; this version does not move slots"));
        }
        self.epoch = epoch;
        self.slots = slots.clone();
        // Clients renumber at a new epoch (P4): what they sent before under these numbers was cut for another map.
        for member in self.jobs.values_mut().flat_map(|job| job.members.values_mut()) {
            member.floor = member.next;
        }
        ShardAnswer::Done
    }

    fn open_job(&mut self, id: JobId, generation: Generation, workers: u32) -> ShardAnswer {
        if workers == 0 || workers > limits::WORKERS_MAX {
            let most = limits::WORKERS_MAX;
            return ShardAnswer::Refused(format!("{id} with {workers} workers; expected 1 to {most}"));
        }
        match self.jobs.get(&id) {
            Some(job) if (job.generation, job.workers) == (generation, workers) => ShardAnswer::Done,
            Some(job) => ShardAnswer::Refused(format!(
                "{id} is open at {} with {} workers; got {generation} with {workers}",
                job.generation, job.workers
            )),
            None if self.jobs.len() >= limits::JOBS_MAX => {
                ShardAnswer::Refused(format!("{id} would be more than {} jobs", limits::JOBS_MAX))
            }
            None => {
                self.jobs.insert(id, Job::new(generation, workers));
                ShardAnswer::Done
            }
        }
    }

    fn create_table(&mut self, schema: &TableSchema) -> ShardAnswer {
        let id = schema.id;
        match self.tables.schema(id) {
            Some(ours) if ours == schema => return ShardAnswer::Done,
            Some(_) => return ShardAnswer::Refused(format!("{id} exists with another schema")),
            // A late repeat: it was created and dropped, or dropped before it could be created.
            None if self.tables.was_dropped(id) => return ShardAnswer::Done,
            None => {}
        }
        if let Err(reason) = schema.validate() {
            return ShardAnswer::Refused(format!("{id}: {reason}"));
        }
        if !self.jobs.contains_key(&schema.job) {
            return ShardAnswer::Refused(format!("{id} belongs to {}, which is not open here", schema.job));
        }
        if self.tables.count() >= limits::TABLES_MAX {
            return ShardAnswer::Refused(format!("{id} would be more than {} tables", limits::TABLES_MAX));
        }
        self.tables.create(schema.clone());
        ShardAnswer::Done
    }

    /// Rows go at once. Parts staged for the table stay until their tick, which passes over them: the drop was asked for
    /// after they were, and the clock they belong to must not fail for it.
    fn drop_table(&mut self, table: TableId) -> ShardAnswer {
        self.tables.drop_table(table);
        ShardAnswer::Done
    }
}

//! Reads (P10, P12, P13): answered from the applied state of any replica, or told what to wait for. Never changes
//! anything.

use crate::shard::Shard;
use crate::table::Table;
use petuum_chaos::{Mutant, mutated};
use petuum_kernels::initial_row;
use petuum_types::outcome::Fence;
use petuum_types::read::{Read, ReadAnswer, ReadRefusal, RowAnswer};
use petuum_types::{Clock, Initial, JobId, LogIndex, RowId, TableId, Values, WorkerId};
use std::sync::Arc;

/// What a replica says to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The rows, all as of one applied index.
    Answer(ReadAnswer),
    /// This replica has not applied enough yet; park the read or send it elsewhere.
    Wait,
    /// It cannot be answered here as the state is.
    Refused(ReadRefusal),
}

/// The first thing a waiting read waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Blocked {
    /// A command: a map, a job's generation or a registration that has not arrived here.
    Command,
    /// An applied index.
    Index(LogIndex),
    /// A min clock.
    MinClock(JobId, Clock),
    /// The reader's own clock.
    OwnClock(JobId, WorkerId, Clock),
}

/// Why a read has no answer yet.
enum Unready {
    Blocked(Blocked),
    Refused(ReadRefusal),
}

impl From<ReadRefusal> for Unready {
    fn from(refusal: ReadRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Shard {
    /// Answers a read, or says that it has to wait here, or why it never can.
    #[must_use]
    pub fn read(&self, read: &Read) -> ReadOutcome {
        match self.ready(read).and_then(|own_clock| self.answer(read, own_clock)) {
            Ok(answer) => ReadOutcome::Answer(answer),
            Err(Unready::Blocked(_)) => ReadOutcome::Wait,
            Err(Unready::Refused(refusal)) => ReadOutcome::Refused(refusal),
        }
    }

    /// Bytes of values that an answer to this read would carry; 0 if the table is unknown here. For admission, before
    /// the answer is made.
    #[must_use]
    pub fn read_bytes(&self, read: &Read) -> u64 {
        self.tables.schema(read.table).map_or(0, |schema| schema.row_bytes() as u64 * read.rows.len() as u64)
    }

    /// What a read that waits is waiting for; `None` if it need not.
    pub(crate) fn blocked(&self, read: &Read) -> Option<Blocked> {
        match self.ready(read) {
            Err(Unready::Blocked(blocked)) => Some(blocked),
            Ok(_) | Err(Unready::Refused(_)) => None,
        }
    }

    /// Whether what a read waited for has come.
    pub(crate) fn has_come(&self, blocked: Blocked) -> bool {
        match blocked {
            Blocked::Command => false,
            Blocked::Index(index) => self.applied >= index,
            Blocked::MinClock(job, clock) => self.min_clock(job).is_some_and(|min| min >= clock),
            Blocked::OwnClock(job, worker, clock) => {
                let member = self.jobs.get(&job).and_then(|job| job.members.get(&worker));
                member.is_some_and(|m| m.clock >= clock)
            }
        }
    }

    /// Checks everything but tables and rows, and gives the reader's own clock.
    ///
    /// Fences first: they are final whatever else is missing. Then what only a replica that lags can lack, so that it
    /// waits rather than denying what others know.
    fn ready(&self, read: &Read) -> Result<Clock, Unready> {
        let blocked = |blocked| Err(Unready::Blocked(blocked));
        let job = self.jobs.get(&read.job);
        if let Some(job) = job.filter(|job| read.generation < job.generation) {
            return Err(ReadRefusal::from(Fence::OldGeneration { current: job.generation }).into());
        }
        let member = job.zip(read.reader).and_then(|(job, (worker, _))| job.members.get(&worker));
        if let Some(fence) = member.zip(read.reader).and_then(|(m, (_, incarnation))| m.fence(incarnation)) {
            return Err(ReadRefusal::from(fence).into());
        }
        if self.applied < read.min_index {
            return blocked(Blocked::Index(read.min_index));
        }
        if read.epoch < self.epoch {
            return Err(ReadRefusal::Epoch { ours: self.epoch, theirs: read.epoch }.into());
        }
        if read.epoch > self.epoch {
            return blocked(Blocked::Command);
        }
        let job = job.ok_or(ReadRefusal::UnknownJob { job: read.job })?;
        if read.generation > job.generation {
            return blocked(Blocked::Command);
        }
        if job.min_clock < read.min_clock && !mutated(Mutant::FollowerAnswersEarly) {
            return blocked(Blocked::MinClock(read.job, read.min_clock));
        }
        let Some((worker, incarnation)) = read.reader else { return Ok(Clock::ZERO) };
        match member {
            // Not fenced, so it is this incarnation, settled and live, or one whose registration is still to come.
            Some(m) if m.incarnation == incarnation && m.settled => {
                let own = Blocked::OwnClock(read.job, worker, read.own_clock);
                if m.clock < read.own_clock { blocked(own) } else { Ok(m.clock) }
            }
            _ => blocked(Blocked::Command),
        }
    }

    fn answer(&self, read: &Read, own_clock: Clock) -> Result<ReadAnswer, Unready> {
        let rows = if read.rows.is_empty() { Vec::new() } else { self.rows(read)? };
        let mut min_clock = self.min_clock(read.job).expect("a ready read's job is open");
        if mutated(Mutant::FollowerAnswersEarly) {
            min_clock = min_clock.max(read.min_clock);
        }
        Ok(ReadAnswer { index: self.applied, min_clock, own_clock, rows })
    }

    fn rows(&self, read: &Read) -> Result<Vec<RowAnswer>, ReadRefusal> {
        let table = self.table_for(read.job, read.table)?;
        if let Some(row) = read.rows.iter().find(|row| !self.owns(read.table, **row)) {
            return Err(ReadRefusal::WrongShard { table: read.table, row: *row });
        }
        let mut untouched = Untouched { table, shared: None };
        let answer = |&row: &RowId| match table.row(row) {
            Some(found) => RowAnswer { row, changed: found.changed, values: Arc::clone(&found.values) },
            None => RowAnswer { row, changed: LogIndex(0), values: untouched.values(row) },
        };
        Ok(read.rows.iter().map(answer).collect())
    }

    fn table_for(&self, job: JobId, table: TableId) -> Result<&Table, ReadRefusal> {
        match self.tables.live.get(&table) {
            Some(found) if found.schema.job == job => Ok(found),
            Some(_) => Err(ReadRefusal::ForeignTable { table }),
            None if self.tables.was_dropped(table) => Err(ReadRefusal::ForeignTable { table }),
            None => Err(ReadRefusal::UnknownTable { table }),
        }
    }
}

/// Rows that no update has reached: computed on the fly (P13), and one for all where they are all alike.
struct Untouched<'a> {
    table: &'a Table,
    shared: Option<Arc<Values>>,
}

impl Untouched<'_> {
    fn values(&mut self, row: RowId) -> Arc<Values> {
        let schema = &self.table.schema;
        match schema.initial {
            Initial::Zero | Initial::Constant(_) => {
                Arc::clone(self.shared.get_or_insert_with(|| Arc::new(initial_row(schema, row))))
            }
            Initial::Uniform { .. } | Initial::Normal { .. } => Arc::new(initial_row(schema, row)),
        }
    }
}

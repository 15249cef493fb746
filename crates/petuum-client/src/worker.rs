//! The interface that programs are written against, once: on real machines, in threads, in the simulator.

use petuum_types::{Clock, Error, RowId, TableSchema, Values, WorkerId};
use std::future::Future;
use std::sync::Arc;

/// A table as a worker holds it: a cheap handle on its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    schema: Arc<TableSchema>,
}

impl Table {
    /// A handle on this definition.
    #[must_use]
    pub fn new(schema: TableSchema) -> Self {
        Self { schema: Arc::new(schema) }
    }

    /// The table's definition.
    #[must_use]
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }
}

/// Updates of consecutive columns.
#[derive(Clone, Copy, Debug)]
pub enum Deltas<'a> {
    /// For an f32 table.
    F32(&'a [f32]),
    /// For an i64 table.
    I64(&'a [i64]),
}

impl<'a> From<&'a [f32]> for Deltas<'a> {
    fn from(deltas: &'a [f32]) -> Self {
        Self::F32(deltas)
    }
}

impl<'a> From<&'a [i64]> for Deltas<'a> {
    fn from(deltas: &'a [i64]) -> Self {
        Self::I64(deltas)
    }
}

/// One cell's update.
#[derive(Clone, Copy, Debug)]
pub enum Delta {
    /// For an f32 table.
    F32(f32),
    /// For an i64 table.
    I64(i64),
}

impl From<f32> for Delta {
    fn from(delta: f32) -> Self {
        Self::F32(delta)
    }
}

impl From<i64> for Delta {
    fn from(delta: i64) -> Self {
        Self::I64(delta)
    }
}

/// One thread of a worker.
///
/// While its clock is `c` it computes iteration `c`: reads see every update with timestamp `<= c - s - 1` of every
/// worker and all of its own; [`Worker::clock`] ends the iteration. Every wait has a deadline and ends in a typed
/// error; an error leaves what was queued in place, and the same call may be made again. What errors mean, of every call:
///
/// | kind | what has happened | what to do |
/// |---|---|---|
/// | `InvalidArgument` of a call's own arguments | nothing | mend the program |
/// | `InvalidArgument` naming a clock that was given up | a server refused its updates (a sum that is not finite, say); it and every clock after it has no effect. Each thread is told once, by whatever it calls next, and [`Worker::now`] is that clock again | read anew and compute it again |
/// | `DeadlineExceeded`, `Unavailable` | it says for whom it waited and how long; nothing is lost | call again |
/// | `Replaced`, `Evicted`, `OldGeneration` | another process is this worker now, or it was removed, or the job was restored; nothing can be done in this session | end, or register anew (after a removal with `WorkerOptions::rejoin`) |
/// | `Internal`, `Incompatible` | a defect, or a server of another version | end the process |
///
/// A process that ends without [`Worker::flush`] or [`Worker::leave`] may leave its last clocks uncommitted, which is no
/// error: started again, it goes on at the first of them. One that does not come back holds the others up until its lease
/// ends; [`Worker::leave`] spares them that.
pub trait Worker: Send {
    /// The worker's place in its job, `0..workers`.
    fn id(&self) -> WorkerId;
    /// How many workers the job has.
    fn workers(&self) -> u32;
    /// This thread's place in its worker, `0..threads`.
    fn thread(&self) -> u32;
    /// How many threads the worker has.
    fn threads(&self) -> u32;
    /// The iteration this thread computes; after a restart the first one that has not been committed.
    fn now(&self) -> Clock;

    /// One row under the table's staleness.
    ///
    /// # Errors
    /// `NotFound` if the table was dropped; see the trait.
    fn get(&mut self, table: &Table, row: RowId) -> impl Future<Output = Result<Values, Error>> + Send;
    /// Several rows, in the order asked; each shard's part is of one applied index.
    ///
    /// # Errors
    /// As [`Worker::get`].
    fn get_many(&mut self, table: &Table, rows: &[RowId]) -> impl Future<Output = Result<Vec<Values>, Error>> + Send;
    /// Adds to consecutive columns of a row, visible to this worker at once.
    ///
    /// # Errors
    /// [`petuum_types::ErrorKind::InvalidArgument`] for a wrong type, column or a value the table refuses; nothing is
    /// changed then.
    fn inc_dense<'a>(
        &mut self,
        table: &Table,
        row: RowId,
        first_column: u32,
        deltas: impl Into<Deltas<'a>>,
    ) -> Result<(), Error>;
    /// Adds to one cell.
    ///
    /// # Errors
    /// As [`Worker::inc_dense`].
    fn inc(&mut self, table: &Table, row: RowId, column: u32, delta: impl Into<Delta>) -> Result<(), Error> {
        match delta.into() {
            Delta::F32(delta) => self.inc_dense(table, row, column, Deltas::F32(&[delta])),
            Delta::I64(delta) => self.inc_dense(table, row, column, Deltas::I64(&[delta])),
        }
    }
    /// Ends this thread's iteration and returns the next one's number. When the last thread of the worker ends it, the
    /// updates are queued for commit; the call waits only while too much is unacknowledged, or while other workers are
    /// further behind than staleness allows (P6).
    ///
    /// # Errors
    /// After one the iteration has not ended; see the trait.
    fn clock(&mut self) -> impl Future<Output = Result<Clock, Error>> + Send;
    /// Waits until every shard has ticked every clock this worker has ended.
    ///
    /// # Errors
    /// See the trait.
    fn flush(&mut self) -> impl Future<Output = Result<(), Error>> + Send;
    /// Waits until every shard's min clock has reached this thread's clock; reads after it contain every update of earlier
    /// clocks, also where the table's staleness would allow less. Does not end the iteration.
    ///
    /// # Errors
    /// See the trait.
    fn barrier(&mut self) -> impl Future<Output = Result<(), Error>> + Send;
    /// Leaves the job, after a flush; returns the worker's last clock. For the last thread of the worker.
    ///
    /// # Errors
    /// See the trait; the worker is in its job still, or its leaving is not known to have arrived.
    fn leave(self) -> impl Future<Output = Result<Clock, Error>> + Send;
}

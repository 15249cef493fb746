//! A worker's memory: threads' clocks and buffers, own updates on their way, cached rows; behind one lock in the client.
//!
//! Not here: sending anything. A lookup that misses is answered by [`Workspace::requirement`], which says what a read
//! must ask for (P10), and by [`Workspace::receive`], which takes the answer.
//!
//! Invariants: a row that is shown contains every update that its reader's clock and the table's staleness demand (G4),
//! and every update of this worker, of all its threads, each exactly once (G5).

use super::cache::{CacheSettings, CachedRow, RowCache};
use super::own::OwnUpdates;
use super::threads::ThreadClocks;
use crate::updates::{ClockUpdates, Scalar, UpdateBuffer, ValuesRef};
use petuum_chaos::{Mutant, mutated};
use petuum_types::read::{ReadAnswer, RowAnswer};
use petuum_types::{Clock, Error, ErrorKind, LogIndex, RowId, ShardId, Staleness, TableId, TableSchema, Values};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a read must ask for, to build a [`petuum_types::read::Read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The least min clock (G4).
    pub min_clock: Clock,
    /// The worker's own clock that must be contained (G5).
    pub own_clock: Clock,
    /// The least applied index (G5).
    pub min_index: LogIndex,
}

/// What the threads of a worker share.
#[derive(Clone, Debug)]
pub struct Workspace {
    staleness_max: Staleness,
    clocks: ThreadClocks,
    buffers: Vec<UpdateBuffer>,
    /// Clocks that some threads have ended and others not.
    ended: BTreeMap<Clock, BTreeMap<usize, ClockUpdates>>,
    own: OwnUpdates,
    cache: RowCache,
    differentials: BTreeMap<i64, u64>,
    /// The clock of the last barrier: what has been waited for is also shown.
    barrier: Clock,
}

impl Workspace {
    /// A worker that starts at this clock, with nothing read and nothing written. `staleness_max` is the greatest of the
    /// job's tables.
    ///
    /// # Panics
    /// Without a thread; so do all methods on a thread that is none of them.
    #[must_use]
    pub fn new(threads: usize, start: Clock, staleness_max: Staleness, settings: &CacheSettings) -> Self {
        Self {
            staleness_max,
            clocks: ThreadClocks::new(threads, start),
            buffers: vec![UpdateBuffer::default(); threads],
            ended: BTreeMap::new(),
            own: OwnUpdates::new(settings.own_bytes, start),
            cache: RowCache::new(settings.cache_bytes),
            differentials: BTreeMap::new(),
            barrier: Clock::ZERO,
        }
    }

    /// The threads' clocks.
    #[must_use]
    pub const fn clocks(&self) -> &ThreadClocks {
        &self.clocks
    }

    /// The cached rows.
    #[must_use]
    pub const fn cache(&self) -> &RowCache {
        &self.cache
    }

    /// Bytes of updates of finished clocks that answers may lack.
    #[must_use]
    pub const fn own_bytes(&self) -> usize {
        self.own.bytes()
    }

    /// How often a row was shown whose min clock minus its reader's clock was the key: never below minus the staleness
    /// of its table.
    #[must_use]
    pub const fn differentials(&self) -> &BTreeMap<i64, u64> {
        &self.differentials
    }

    /// Adds one value to a column, in the thread's clock.
    ///
    /// # Errors
    /// As [`UpdateBuffer::inc`].
    pub fn inc(
        &mut self,
        thread: usize,
        schema: &TableSchema,
        row: RowId,
        column: u32,
        value: impl Into<Scalar>,
    ) -> Result<(), Error> {
        self.buffers[thread].inc(schema, row, column, value)
    }

    /// Adds to consecutive columns, in the thread's clock.
    ///
    /// # Errors
    /// As [`UpdateBuffer::inc`].
    pub fn inc_dense<'a>(
        &mut self,
        thread: usize,
        schema: &TableSchema,
        row: RowId,
        first_column: u32,
        values: impl Into<ValuesRef<'a>>,
    ) -> Result<(), Error> {
        self.buffers[thread].inc_dense(schema, row, first_column, values)
    }

    /// The thread ends its clock. If it was the last thread in it, the clock is finished, and its updates, merged in
    /// thread order (P1), are to be cut and committed.
    pub fn tick(&mut self, thread: usize) -> Option<(Clock, Arc<ClockUpdates>)> {
        let ended = self.buffers[thread].take();
        self.ended.entry(self.clocks.clock(thread)).or_default().insert(thread, ended);
        let clock = self.clocks.tick(thread)?;
        let threads = self.ended.remove(&clock).expect("every thread has ended this clock");
        let along = mutated(Mutant::BatchTakesOpenBuffers);
        let open = self.buffers.iter_mut().filter(|_| along).map(UpdateBuffer::take);
        let updates = Arc::new(ClockUpdates::merge(threads.into_values().chain(open)));
        self.own.push(clock, Arc::clone(&updates));
        // A row that any thread may be shown has a min clock, and with it an own clock, of at least this (G4).
        self.own.forget_below(self.clocks.least().needs(self.staleness_max));
        Some((clock, updates))
    }

    /// P4: `clock` and every later one were given up. All threads are in `clock` again, with no update of it or later;
    /// what they had read stays.
    pub fn give_up(&mut self, clock: Clock) {
        self.own.forget_from(clock);
        self.ended.clear();
        self.buffers.iter_mut().for_each(|buffer| drop(buffer.take()));
        self.clocks.restart(clock);
    }

    /// P6: every shard's min clock has reached `clock`. Reads from here on contain every update of earlier clocks, whatever
    /// the table's staleness and the cache: nobody waits for a barrier to be shown what was there before it.
    pub fn passed_barrier(&mut self, clock: Clock) {
        self.barrier = clock.max(self.barrier);
    }

    /// The row as the thread may see it, if the cache can answer (P10): at the thread's clock, with the worker's own
    /// updates on top. Shared with the cache unless there are such.
    pub fn lookup(&mut self, thread: usize, schema: &TableSchema, row: RowId) -> Option<Arc<Values>> {
        let needs = self.needs(thread, schema);
        let floor = self.own.floor();
        let never_stale = mutated(Mutant::CacheNeverStale);
        let fits = |row: &&CachedRow| (row.min_clock >= needs || never_stale) && row.own_clock >= floor;
        let cached = self.cache.get(schema.id, row).filter(fits)?;
        let cached = cached.clone();
        Some(self.show(thread, (schema.id, row), &cached))
    }

    /// What a read of rows of one shard must ask for, so that its answer can be shown to the thread and no row goes back.
    #[must_use]
    pub fn requirement(&self, thread: usize, shard: ShardId, schema: &TableSchema, rows: &[RowId]) -> Requirement {
        let min_clock = self.needs(thread, schema);
        let min_index = rows.iter().map(|row| self.cache.min_index(shard, schema.id, *row)).max();
        Requirement { min_clock, own_clock: self.own.floor(), min_index: min_index.unwrap_or_default() }
    }

    /// Takes a shard's answer and gives its rows, in its order, as the thread may see them. `None` for a row that must
    /// be read again with a new requirement: while the read was on its way, another thread has read a newer state that
    /// is not cached any more, or own updates that the answer lacks had to be let go.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for rows of another width or type than the table's; nothing is cached then.
    pub fn receive(
        &mut self,
        thread: usize,
        shard: ShardId,
        schema: &TableSchema,
        answer: &ReadAnswer,
    ) -> Result<Vec<Option<Arc<Values>>>, Error> {
        answer.rows.iter().try_for_each(|row| check(schema, shard, row))?;
        let needs = self.needs(thread, schema);
        let mut shown = Vec::with_capacity(answer.rows.len());
        for row in &answer.rows {
            let newest = self.cache.insert(shard, schema.id, answer, row);
            let newest = newest.filter(|row| row.min_clock >= needs && row.own_clock >= self.own.floor());
            shown.push(newest.map(|cached| self.show(thread, (schema.id, row.row), &cached)));
        }
        self.cache.shrink();
        Ok(shown)
    }

    fn needs(&self, thread: usize, schema: &TableSchema) -> Clock {
        let needs = self.clocks.clock(thread).needs(schema.staleness);
        let needs = if mutated(Mutant::NeedsOneClockLess) { Clock(needs.0.saturating_sub(1)) } else { needs };
        needs.max(self.barrier)
    }

    fn show(&mut self, thread: usize, (table, row): (TableId, RowId), cached: &CachedRow) -> Arc<Values> {
        let behind = i128::from(cached.min_clock.0) - i128::from(self.clocks.clock(thread).0);
        let differential = i64::try_from(behind).unwrap_or(if behind < 0 { i64::MIN } else { i64::MAX });
        *self.differentials.entry(differential).or_default() += 1;
        let mut values = Arc::clone(&cached.values);
        if self.own.touches(cached.own_clock, table, row) {
            self.own.overlay(cached.own_clock, table, row, Arc::make_mut(&mut values));
        }
        for updates in self.ended.values().flat_map(BTreeMap::values).filter(|updates| updates.touches(table, row)) {
            updates.overlay(table, row, Arc::make_mut(&mut values));
        }
        for buffer in self.buffers.iter().filter(|buffer| buffer.touches(table, row)) {
            buffer.overlay(table, row, Arc::make_mut(&mut values));
        }
        values
    }
}

fn check(schema: &TableSchema, shard: ShardId, row: &RowAnswer) -> Result<(), Error> {
    let (len, value_type) = (row.values.len(), row.values.value_type());
    if len == schema.width as usize && value_type == schema.value_type {
        return Ok(());
    }
    let message = format!(
        "table \"{}\", {}: {shard} answered {len} values of type {value_type}; expected {} of type {}",
        schema.name, row.row, schema.width, schema.value_type
    );
    Err(Error::new(ErrorKind::Internal, message))
}

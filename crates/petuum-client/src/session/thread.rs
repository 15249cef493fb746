//! One thread of a worker: the async side of the [`Worker`] interface.

use super::core::{Core, State};
use super::reader;
use super::running::Running;
use crate::fetch::rows_per_request;
use crate::worker::{Deltas, Table, Worker};
use futures::future::try_join_all;
use petuum_chaos::{Failpoint, Mutant, mutated, reached};
use petuum_net::convert;
use petuum_net::wire;
use petuum_net::wire::session_client::SessionClient;
use petuum_session::{ValuesRef, may_start};
use petuum_types::read::Read;
use petuum_types::{Clock, Error, ErrorKind, RowId, ShardId, Values, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

/// One thread of a worker. Dropping the last one ends what is under way: flush or leave before ([`Worker`]).
pub struct WorkerThread {
    running: Arc<Running>,
    thread: u32,
    /// How many aborts this thread has reported.
    aborts_seen: u64,
}

impl WorkerThread {
    pub(super) fn new(running: Arc<Running>, thread: u32) -> Self {
        let aborts_seen = running.core.lock().aborts.0;
        Self { running, thread, aborts_seen }
    }

    fn core(&self) -> &Core {
        &self.running.core
    }

    fn index(&self) -> usize {
        self.thread as usize
    }

    /// The session's end, or a clock that was given up since this thread looked last.
    fn check(&mut self) -> Result<(), Error> {
        self.running.core.lock().check_heard(&mut self.aborts_seen)
    }

    /// Waits for `look`; the end of the session and a clock given up end the wait.
    async fn until<T>(
        &mut self,
        mut look: impl FnMut(&mut State) -> Option<T> + Send,
        whom: impl Fn(&State) -> String + Send,
    ) -> Result<T, Error> {
        self.check()?;
        let seen = self.aborts_seen;
        let found = self
            .core()
            .until(
                |state| {
                    state.check()?;
                    // Given up meanwhile: reported below, once.
                    if state.aborts.0 != seen { Ok(Some(None)) } else { Ok(look(state).map(Some)) }
                },
                whom,
            )
            .await?;
        match found {
            Some(found) => Ok(found),
            None => Err(self.check().expect_err("a clock was given up")),
        }
    }

    /// Waits until every shard's min clock is known to have reached `clock`; the end of the session and a clock given up
    /// end the wait.
    async fn min_clocks(&mut self, clock: Clock) -> Result<(), Error> {
        let running = self.running.clone();
        let core = &running.core;
        let below: Vec<ShardId> = core.lock().min_clocks.below(clock).map(|(shard, _)| shard).collect();
        let reached = try_join_all(below.into_iter().map(|shard| reader::min_clock(core, shard, clock)));
        match core.unless_given_up(self.aborts_seen, reached).await {
            Some(reached) => reached.map(drop),
            None => Err(self.check().expect_err("a clock was given up")),
        }
    }

    /// Reads rows of one shard that the cache could not show, and shows them.
    async fn fetch(&self, table: &Table, shard: ShardId, rows: Vec<RowId>) -> Result<Vec<(RowId, Arc<Values>)>, Error> {
        let (core, schema) = (self.core(), table.schema());
        let mut shown = Vec::with_capacity(rows.len());
        let mut missing = rows;
        while !missing.is_empty() {
            let needs = core.lock().workspace.requirement(self.index(), shard, schema, &missing);
            let read = Read {
                job: core.job,
                generation: core.registration.generation,
                epoch: core.map.epoch,
                reader: Some((core.registration.worker, core.registration.incarnation)),
                table: schema.id,
                rows: missing,
                min_clock: needs.min_clock,
                own_clock: needs.own_clock,
                min_index: needs.min_index,
            };
            let answer = reader::read(core, shard, &read, schema.value_type).await?;
            let mut state = core.lock();
            state.check()?;
            state.min_clocks.note_min_clock(shard, answer.min_clock);
            state.rows_read += answer.rows.len() as u64;
            let received = state.workspace.receive(self.index(), shard, schema, &answer)?;
            missing = Vec::new();
            for (row, values) in read.rows.into_iter().zip(received) {
                match values {
                    Some(values) => shown.push((row, values)),
                    None => missing.push(row),
                }
            }
        }
        Ok(shown)
    }

    /// Rows in the order asked, from the cache where it can show them.
    async fn rows(&mut self, table: &Table, rows: &[RowId]) -> Result<Vec<Arc<Values>>, Error> {
        self.check()?;
        let core = self.core();
        let schema = table.schema();
        let mut found: BTreeMap<RowId, Arc<Values>> = BTreeMap::new();
        let mut missing: BTreeMap<ShardId, Vec<RowId>> = BTreeMap::new();
        {
            let mut state = core.lock();
            for row in rows {
                match state.workspace.lookup(self.index(), schema, *row) {
                    Some(values) => {
                        state.rows_cached += 1;
                        found.insert(*row, values);
                    }
                    None => missing.entry(core.map.shard_of(schema.id, *row)).or_default().push(*row),
                }
            }
        }
        for rows in missing.values_mut() {
            rows.sort_unstable();
            rows.dedup();
        }
        let requests = missing.into_iter().flat_map(|(shard, rows)| {
            let requests: Vec<_> = rows.chunks(rows_per_request(schema)).map(<[RowId]>::to_vec).collect();
            requests.into_iter().map(move |rows| (shard, rows))
        });
        let fetched = try_join_all(requests.map(|(shard, rows)| self.fetch(table, shard, rows)));
        // A read may wait for the worker's own clock.
        let fetched = core.unless_given_up(self.aborts_seen, fetched).await;
        let Some(fetched) = fetched else { return Err(self.check().expect_err("a clock was given up")) };
        fetched?.into_iter().for_each(|rows| found.extend(rows));
        // Without the updates of a clock given up meanwhile they are not what this thread's clock should see.
        self.check()?;
        Ok(rows.iter().map(|row| found[row].clone()).collect())
    }
}

impl Worker for WorkerThread {
    fn id(&self) -> WorkerId {
        self.core().registration.worker
    }

    fn workers(&self) -> u32 {
        self.core().workers
    }

    fn thread(&self) -> u32 {
        self.thread
    }

    fn threads(&self) -> u32 {
        self.core().options.threads
    }

    fn now(&self) -> Clock {
        self.core().lock().workspace.clocks().clock(self.index())
    }

    async fn get(&mut self, table: &Table, row: RowId) -> Result<Values, Error> {
        let mut rows = self.rows(table, &[row]).await?;
        Ok(Arc::unwrap_or_clone(rows.pop().expect("one row was asked for")))
    }

    async fn get_many(&mut self, table: &Table, rows: &[RowId]) -> Result<Vec<Values>, Error> {
        Ok(self.rows(table, rows).await?.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    fn inc_dense<'a>(
        &mut self,
        table: &Table,
        row: RowId,
        first_column: u32,
        deltas: impl Into<Deltas<'a>>,
    ) -> Result<(), Error> {
        let deltas = match deltas.into() {
            Deltas::F32(values) => ValuesRef::F32(values),
            Deltas::I64(values) => ValuesRef::I64(values),
        };
        let index = self.index();
        // Looked at and added to under one lock: else an update of a clock given up in between would be one of the next
        // attempt.
        let mut state = self.running.core.lock();
        state.check_heard(&mut self.aborts_seen)?;
        state.workspace.inc_dense(index, table.schema(), row, first_column, deltas)
    }

    async fn clock(&mut self) -> Result<Clock, Error> {
        let called = Instant::now();
        self.check()?;
        let next = self.now().next();
        let staleness = self.core().staleness;
        // P6, second half: before the clock is ended, so that an error here leaves everything in place.
        let needed = Clock(next.0.saturating_sub(u64::from(staleness.0) + 1));
        let gate = self.core().lock().min_clocks.least();
        if !may_start(next, staleness, gate) {
            self.min_clocks(needed).await?;
        }
        let room = |state: &mut State| state.committer.room().then_some(());
        self.until(room, State::waiting_for).await?;
        // Between the look and the tick another thread may have taken the room: then this one waits again.
        loop {
            reached(Failpoint::ClockBeforeEnd);
            match self.running.core.tick(self.index(), called, &mut self.aborts_seen) {
                Ok(()) => {
                    reached(Failpoint::ClockAfterEnd);
                    return Ok(self.now());
                }
                Err(error) if error.kind() == ErrorKind::ResourceExhausted => {
                    self.until(room, State::waiting_for).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let target = self.core().lock().workspace.clocks().least();
        let ticked = move |state: &mut State| {
            let first = mutated(Mutant::FlushBelievesFirstTick);
            let ticked = if first { state.committer.acked() } else { state.committer.ticked_everywhere() };
            (ticked >= target).then_some(())
        };
        self.until(ticked, State::waiting_for).await
    }

    async fn barrier(&mut self) -> Result<(), Error> {
        self.check()?;
        let clock = self.now();
        self.min_clocks(clock).await?;
        self.core().lock().workspace.passed_barrier(clock);
        Ok(())
    }

    async fn leave(mut self) -> Result<Clock, Error> {
        self.flush().await?;
        reached(Failpoint::LeaveBeforeSend);
        let core = self.core();
        let request = wire::LeaveRequest {
            format: petuum_net::FORMAT,
            request_id: convert::request_id_bytes(core.cluster.new_request()),
            job: core.job.0,
            worker: core.registration.worker.0,
            incarnation: core.registration.incarnation.0,
            wait_ms: 0,
        };
        let left = core.cluster.control(|channel, wait_ms| {
            let request = wire::LeaveRequest { wait_ms, ..request.clone() };
            async move { SessionClient::new(channel).leave(request).await }
        });
        let answer = left.await?;
        reached(Failpoint::LeaveAfterAnswer);
        core.end(Error::new(ErrorKind::FailedPrecondition, "this worker has left its job"));
        Ok(Clock(answer.clock))
    }
}

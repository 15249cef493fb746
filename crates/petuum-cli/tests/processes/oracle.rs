//! The unit-vector oracle: each worker adds 1 in its own column, in rows of several shards, once per clock. A read then
//! says of every worker which clocks it contains, and what it must contain is known.

use petuum_client::{Table, Worker};
use petuum_types::{RowId, Staleness};
use std::sync::atomic::{AtomicI64, Ordering};

/// What all workers of a test know of each other's clocks.
pub(crate) struct Oracle {
    pub(crate) rows: Vec<RowId>,
    pub(crate) staleness: Staleness,
    /// Clocks each worker has begun to end: no read may show more.
    attempted: Vec<AtomicI64>,
}

impl Oracle {
    pub(crate) fn new(rows: Vec<RowId>, workers: usize, staleness: u32) -> Self {
        let attempted = (0..workers).map(|_| AtomicI64::new(0)).collect();
        Self { rows, staleness: Staleness(staleness), attempted }
    }

    /// One clock of a worker: reads and checks every row, adds its unit vector to each, ends the clock.
    pub(crate) async fn step<W: Worker>(&self, worker: &mut W, table: &Table, seen: &mut [Vec<i64>]) {
        let me = worker.id().0 as usize;
        let clock = worker.now();
        let floor = i64::try_from(clock.needs(self.staleness).0).unwrap();
        let own = i64::try_from(clock.0).unwrap();
        let rows = worker.get_many(table, &self.rows).await.unwrap();
        for (row, (values, seen)) in rows.iter().zip(seen.iter_mut()).enumerate() {
            let values = values.as_i64().unwrap();
            for (column, value) in values.iter().enumerate() {
                let attempted = self.attempted[column].load(Ordering::SeqCst);
                // G4: no staler than s. G2: nothing twice. G5: own writes, and never back.
                assert!(*value >= floor, "{clock}: row {row} has {value} of worker {column}; expected {floor} or more");
                assert!(
                    *value <= attempted,
                    "{clock}: row {row} has {value} of worker {column}, which made {attempted}"
                );
                assert!(*value >= seen[column], "{clock}: row {row} went back from {} to {value}", seen[column]);
                seen[column] = *value;
            }
            assert_eq!(values[me], own, "{clock}: row {row} shows the worker's own clocks");
        }
        for row in &self.rows {
            worker.inc(table, *row, u32::try_from(me).unwrap(), 1i64).unwrap();
        }
        self.attempted[me].fetch_add(1, Ordering::SeqCst);
        worker.clock().await.unwrap();
    }

    /// At rest every row holds exactly `clocks` of every worker.
    pub(crate) async fn assert_final<W: Worker>(&self, worker: &mut W, table: &Table, clocks: i64) {
        worker.barrier().await.unwrap();
        for (row, values) in worker.get_many(table, &self.rows).await.unwrap().iter().enumerate() {
            let values = values.as_i64().unwrap();
            assert!(
                values.iter().all(|v| *v == clocks),
                "row {row} holds {values:?}; expected {clocks} of each worker"
            );
        }
    }
}

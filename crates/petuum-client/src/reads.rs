//! Reads without a session (P12): for inference, notebooks and operators. Nobody waits for the reader, and it has no own
//! writes; it says how fresh it needs the rows and is told how fresh they are.

use crate::client::Job;
use crate::fetch::{Ask, fetch, malformed, rows_per_request};
use crate::worker::Table;
use futures::future::try_join_all;
use petuum_types::read::Read;
use petuum_types::{Clock, Error, LogIndex, RowId, ShardId, Values};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How fresh rows have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// As new as what each shard had acknowledged when it was asked. The shard's leader answers, once a majority has
    /// confirmed that it leads. A worker's clock is acknowledged when one shard has applied it; after the worker's `flush`
    /// or `leave` every shard has.
    Latest,
    /// Every update of every worker's clocks below this one, and perhaps some newer: the min clock has reached it. Any
    /// replica answers; one that lags holds the read until it has caught up. `Clock(0)` takes what there is.
    Clock(Clock),
}

/// A row, and how fresh it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRead {
    /// Which.
    pub row: RowId,
    /// Its values.
    pub values: Arc<Values>,
    /// The min clock of its shard: every update of the clocks below is in `values`.
    pub min_clock: Clock,
    /// The log index of its shard as of which it was read. Rows of one shard that one request holds (64 MiB of values)
    /// have the same.
    pub index: LogIndex,
    /// The log index that last changed it; 0 if nothing has.
    pub changed: LogIndex,
}

impl Job {
    /// Rows of a table in the order asked, without a session. Each shard's part is of one applied index.
    ///
    /// # Errors
    /// `NotFound` if the job has no such table (any more), `OldGeneration` if it was restored since this handle was made,
    /// `DeadlineExceeded` naming the shard and what it waits for: the min clock, a leader, a majority.
    pub async fn read(&self, table: &Table, rows: &[RowId], from: ReadFrom) -> Result<Vec<RowRead>, Error> {
        let (map, schema) = (self.client().map(), table.schema());
        let mut by_shard: BTreeMap<ShardId, Vec<RowId>> = BTreeMap::new();
        for row in rows {
            by_shard.entry(map.shard_of(schema.id, *row)).or_default().push(*row);
        }
        for rows in by_shard.values_mut() {
            rows.sort_unstable();
            rows.dedup();
        }
        let per_request = rows_per_request(schema);
        let requests = by_shard
            .iter()
            .flat_map(|(shard, rows)| rows.chunks(per_request).map(|rows| self.read_shard(table, *shard, rows, from)));
        let mut found = BTreeMap::new();
        for rows in try_join_all(requests).await? {
            found.extend(rows.into_iter().map(|row| (row.row, row)));
        }
        Ok(rows.iter().map(|row| found[row].clone()).collect())
    }

    async fn read_shard(
        &self,
        table: &Table,
        shard: ShardId,
        rows: &[RowId],
        from: ReadFrom,
    ) -> Result<Vec<RowRead>, Error> {
        let (client, schema) = (self.client(), table.schema());
        let (latest, min_clock) = match from {
            ReadFrom::Latest => (true, Clock::ZERO),
            ReadFrom::Clock(clock) => (false, clock),
        };
        let read = Read {
            job: self.info().id,
            generation: self.info().generation,
            epoch: client.map().epoch,
            reader: None,
            table: schema.id,
            rows: rows.to_vec(),
            min_clock,
            own_clock: Clock::ZERO,
            min_index: LogIndex(0),
        };
        let ask = Ask { shard, read: &read, value_type: schema.value_type, latest };
        let cluster = client.cluster();
        let (answer, node) = fetch(cluster, client.map(), cluster.leader(shard), &ask).await?;
        if latest {
            cluster.note_leader(shard, node);
        }
        let (min_clock, index) = (answer.min_clock, answer.index);
        let rows = answer.rows.into_iter().map(|row| {
            if row.values.len() != schema.width as usize {
                return Err(malformed("a row of another width than the table's"));
            }
            Ok(RowRead { row: row.row, values: row.values, min_clock, index, changed: row.changed })
        });
        rows.collect()
    }
}

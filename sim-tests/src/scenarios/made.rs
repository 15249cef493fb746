//! What a scenario's job and table are, as its first client finds out.

use std::collections::BTreeMap;

use petuum_types::read::Read;
use petuum_types::{Clock, Generation, JobId, LogIndex, MapEpoch, RowId, ShardId, TableId};

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) job: JobId,
    pub(super) generation: Generation,
    pub(super) table: TableId,
    pub(super) epoch: MapEpoch,
    /// Rows and their shards.
    pub(super) rows: BTreeMap<RowId, ShardId>,
}

impl Made {
    /// A read of all rows that a shard has, once its min clock is there.
    pub(super) fn read_of(&self, shard: ShardId, min_clock: Clock) -> Read {
        Read {
            job: self.job,
            generation: self.generation,
            epoch: self.epoch,
            reader: None,
            table: self.table,
            rows: self.rows.iter().filter(|(_, of)| **of == shard).map(|(row, _)| *row).collect(),
            min_clock,
            own_clock: Clock::ZERO,
            min_index: LogIndex(0),
        }
    }
}
